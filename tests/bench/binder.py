"""The binder beside the real kube-scheduler: pods bound per second on one real API server.

kube-apiserver and etcd with nodes that KWOK keeps alive (`NODES` of them, four on an ESXi host); the same 3,000 pods,
plain, and as replicas that required anti-affinity keeps off one another's host. kube-scheduler binds them, its client's
QPS and burst lifted to 5,000, then twice `underhost run`, embedded transport, with the inventory of the hosts, and then
kube-scheduler again; in the next round the other way round. Figures are the mean of both. Each runs, has listed
everything and has bound a pod; then its process is stopped (SIGSTOP), all pods are created, and it is let go on
(SIGCONT): the clock runs from there to the last binding in the API server's audit log. So what creates the pods takes
no processor from either, and reading, deciding and binding are all measured. KWOK leaves the pods as they are bound:
what kubelets would do to them is no part of either. Then a worker that only watches and binds plain pods
(`bare_binder.py`): less than that a worker in this language cannot take. Last, in one process of ours, plain pods in a
namespace whose bindings carry the host label and in one that is labelled not to get it. Prints `name<TAB>value` lines,
those of each round behind `run`.

Arguments: the folder of the real parts, then optionally nodes, pods and rounds.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from bench.rounds import tell
from bench.usage import cpu_of, peak_of
from support.processes.crowd import Object, WriteLog, create, inventory
from support.processes.kube import Kube, start_kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod, uuid_of
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import KubeApi, eventually, helpers

from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.sinks.labels.selected import SWITCH

NODES_PER_HOST, REPLICAS = 4, 5
STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml")
LEASE = 200
"""Seconds of a node's lease: a quarter of it is how often it is renewed. Kubelets of 1,000 nodes renew 100 a second,
which two cores cannot spare."""
LIFTED = 5000
RATE, CPU, SERVER_CPU, WRITES = "pods/s", "its own CPU, s", "CPU of the API server and etcd, s", "bindings"
MEMORY = "memory at most, MiB"
BARE = "bare"


class Bench:
    """One API server with its nodes."""

    def __init__(self, folder: Path, parts: Path, kube: Kube, log: WriteLog, nodes: int) -> None:
        self.folder, self.parts, self.kube, self.log = folder, parts, kube, log
        self.api = KubeApi(kube)
        self.nodes = [
            kwok_node(f"node-{at:04d}", uuid_of(at), host=f"esx-{at // NODES_PER_HOST:03d}") for at in range(nodes)
        ]
        eventually("the API server serves namespaces", lambda: self.api.ask("GET", "/api/v1/namespaces/kube-system"))
        create(kube, "/api/v1/nodes", self.nodes)
        eventually("every node is free of taints", self._untainted, 300)

    def _untainted(self) -> bool:
        time.sleep(1)
        nodes = self.api.ask("GET", "/api/v1/nodes")["items"]
        return len(nodes) == len(self.nodes) and not any(node["spec"].get("taints") for node in nodes)

    @contextmanager
    def upstream(self) -> Iterator[str]:
        """A running kube-scheduler; the name that pods ask for it by."""
        config = self.folder / "scheduler.json"
        access = {"kubeconfig": str(self.kube.kubeconfig), "qps": LIFTED, "burst": LIFTED}
        tree = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": access,
        }
        config.write_text(json.dumps(tree))
        kubeconfig = f"kubeconfig={self.kube.kubeconfig}"
        flags = [f"--config={config}", f"--authentication-{kubeconfig}", f"--authorization-{kubeconfig}"]
        yield from self._run([str(self.parts / "kube-scheduler"), *flags, "--secure-port=0"], "default-scheduler")

    @contextmanager
    def ours(self, command: str = UNDERHOST) -> Iterator[str]:
        """A running `underhost run`, of this tree if no other `command` is given; the name that pods ask for it by."""
        hosts = self.folder / "inventory.json"
        hosts.write_text(json.dumps(inventory(self.nodes)))
        config = self.folder / "underhost.yaml"
        tree = {
            "apiVersion": "underhost/v1",
            "kind": "Config",
            "site": "bench",
            "kafka": {"embedded": str(self.folder / f"{time.monotonic_ns()}.db")},
            "kubernetes": {"kubeconfig": str(self.kube.kubeconfig)},
            "vsphere": {"inventory": str(hosts)},
            "sinks": {"bindings": True, "events": True},  # as kube-scheduler tells them
            "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
        }
        config.write_text(json.dumps(tree))
        yield from self._run([command, "run", "--config", str(config)], "underhost")

    @contextmanager
    def bare(self) -> Iterator[str]:
        """A running worker that only watches and binds; the name that pods ask for it by."""
        names = [node["metadata"]["name"] for node in self.nodes]
        script = Path(__file__).with_name("bare_binder.py")
        yield from self._run([sys.executable, str(script), str(self.kube.kubeconfig), BARE, *names], BARE)

    def _run(self, command: list[str], name: str) -> Iterator[str]:
        with (self.folder / f"{name}.log").open("ab") as out:
            process = self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder)
        try:
            yield name
            assert process.poll() is None, (self.folder / f"{name}.log").read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(30)

    def measure(self, scheduler: str, apart: bool, pods: int, told: bool = True) -> dict[str, float]:
        """Create the pods in a namespace of their own, wait until all are bound, delete them.

        `told`: whether our bindings tell the pods their hosts.
        """
        namespace = f"{scheduler}-{'apart' if apart else 'plain'}-{time.monotonic_ns()}"
        labels = {} if told else {SWITCH: "false"}
        self.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
        path = f"/api/v1/namespaces/{namespace}/pods"
        create(self.kube, path, [kwok_pod("first", scheduler)])
        eventually("a first pod is bound", lambda: self._bound(namespace) == 1, 120)
        bodies = [
            kwok_pod(f"pod-{at:05d}", scheduler, app=f"app-{at // REPLICAS}" if apart else "") for at in range(pods)
        ]
        self.process.send_signal(signal.SIGSTOP)
        create(self.kube, path, bodies)
        before, begin = self._cpu(), time.time()
        self.process.send_signal(signal.SIGCONT)
        eventually("every pod is bound", lambda: self._bound(namespace) == pods + 1, 600)
        used = [after - at for after, at in zip(self._cpu(), before, strict=True)]
        bindings = self.log.writes("create", "pods/binding", namespace)[1:]
        first = min(_time(event.request_received_timestamp) for event in bindings)
        last = max(_time(event.stage_timestamp) for event in bindings)
        self._check(namespace, apart, pods + 1, told and scheduler == OUR_SCHEDULER)
        figures = {
            RATE: pods / (last - begin),
            "until the first binding, s": first - begin,
            "until the last, s": last - begin,
            CPU: used[0],
            SERVER_CPU: used[1],
            MEMORY: peak_of(self.process.pid),
            WRITES: float(len(self.log.writes("create", "pods/binding", namespace))),
            "events": float(len(self.log.writes("create", "events", namespace))),
        }
        for left in (path, f"/api/v1/namespaces/{namespace}/events"):  # else each round's server would hold more
            eventually(f"{left} are gone", lambda left=left: self._delete(left), 300)
        return figures

    def labels(self, pods: int, number: int) -> dict[str, float]:
        """What it costs to tell each pod its host: ratios within one process of ours."""
        with self.ours() as scheduler:
            found = {told: self.measure(scheduler, False, pods, told) for told in (number % 2 == 0, number % 2 == 1)}
        return {what: found[True][what] / found[False][what] for what in (CPU, SERVER_CPU, WRITES)}

    def _delete(self, path: str) -> bool:
        with suppress(OSError):  # deleting thousands takes the server longer than a request may last
            self.api.ask("DELETE", f"{path}?gracePeriodSeconds=0")
        return not self.api.ask("GET", f"{path}?limit=1")["items"]

    def _cpu(self) -> list[float]:
        """CPU seconds so far of the scheduler, and of the server and its store together."""
        return [cpu_of(self.process.pid), cpu_of(*self.kube.pids())]

    def _bound(self, namespace: str) -> int:
        time.sleep(0.2)  # looking costs, and the clock is the server's
        return len(self.log.writes("create", "pods/binding", namespace))

    def _check(self, namespace: str, apart: bool, pods: int, told: bool) -> None:
        """A figure counts only if the placement is right, and each pod is told its host, or none is."""
        items: list[Object] = self.api.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        hosts = {node["metadata"]["name"]: node["metadata"]["labels"][HOST_LABEL] for node in self.nodes}
        assert len(items) == pods and all(item["spec"].get("nodeName") for item in items)
        seats = [
            (item["metadata"]["labels"]["app"], hosts[item["spec"]["nodeName"]])
            for item in items
            if "app" in item["metadata"].get("labels", {})
        ]
        carried = [item["metadata"].get("labels", {}).get(HOST_LABEL) for item in items]
        assert carried == [hosts[item["spec"]["nodeName"]] if told else None for item in items], "pods' host labels"
        assert bool(seats) == apart and len(set(seats)) == len(seats), "no two pods of an app share a host"


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@contextmanager
def one_server(parts: Path, nodes: int) -> Iterator[Bench]:
    """A real API server with so many nodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = WriteLog(folder / "audit.log")
        renewals = [f"--node-lease-duration-seconds={LEASE}"]
        with (
            start_kube(folder / "kube", parts, *log.flags()) as kube,
            helpers(parts, kube, stages=STAGES, flags=renewals),
        ):
            yield Bench(folder, parts, kube, log, nodes)


def main() -> None:
    """Measure and print each round."""
    parts = Path(sys.argv[1])
    nodes, pods, rounds = map(int, sys.argv[2:5] or ("1000", "3000", "3"))
    with one_server(parts, nodes) as bench:
        tell([one_round(bench, pods, number) for number in range(rounds)])


def one_round(bench: Bench, pods: int, number: int) -> dict[str, float]:
    """The figures of one round, by the name of their line."""
    found: dict[str, float] = {}
    order = (("kube-scheduler", bench.upstream), ("underhost", bench.ours))
    order = order if number % 2 == 0 else order[::-1]
    for apart, title in ((False, "plain"), (True, "host anti-affinity")):
        # There and back: what else the machine does changes, and whoever is second meets a server that is warm.
        measured: dict[str, list[dict[str, float]]] = {name: [] for name, _ in order}
        for name, who in (*order, *order[::-1]):
            with who() as scheduler:
                measured[name].append(bench.measure(scheduler, apart, pods))
        mean = {name: _mean(*both) for name, both in measured.items()}
        for name, figures in mean.items():
            found |= {f"{title}: {name}, {what}": value for what, value in figures.items()}
            found[f"{title}: {name}, its own CPU, ms a pod"] = figures[CPU] / pods * 1e3
        ours, theirs = mean["underhost"], mean["kube-scheduler"]
        found[f"{title}: ratio"] = ours[RATE] / theirs[RATE]
        found[f"{title}: ratio of own CPU"] = ours[CPU] / theirs[CPU]
    with bench.bare() as scheduler:
        found["plain: a bare binder, its own CPU, ms a pod"] = bench.measure(scheduler, False, pods)[CPU] / pods * 1e3
    labels = bench.labels(pods, number)
    return found | {f"labels in bindings: {what}, with to without": ratio for what, ratio in labels.items()}


def _mean(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """The figures of both together."""
    return {what: (one[what] + other[what]) / 2 for what in one} | {MEMORY: max(one[MEMORY], other[MEMORY])}


if __name__ == "__main__":
    main()
