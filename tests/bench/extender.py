"""Answers to kube-scheduler over HTTP, by node name, for a large site whose pods change all the time.

5,000 nodes on 1,250 ESXi hosts with 50,000 pods: 10,000 applications of five replicas, apart by hostname. This process
is kube-scheduler: it asks filter and prioritize about one more replica after another (every fifth of an application
that was never seen), takes a node of the best and binds it there. The worker, a process of its own, evaluates and
publishes findings meanwhile; its Kubernetes source is told of the pods, and moves others about at a given rate.
Prints `name<TAB>value` lines. Arguments: nodes, pods, questions, changes a second.
"""

import asyncio
import gc
import http.client
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw

from underhost.agents.pipeline import event_loop
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.event_loop import COLLECT
from underhost.agents.worker import run_worker
from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import Metadata, Node, NodeSpec, NodeStatus, Pod, PodSpec, PodStatus, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import HOSTS, KUBERNETES_TOPICS, NODES, PODS, VMS, VSPHERE_TOPICS
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings, WebSettings
from underhost.streams.watching.records import marker_of, outgoing_of

SITE, NODES_PER_HOST, REPLICAS = "bench", 4, 5


def replica(application: str, number: int, node: str = "", version: int = 1) -> Pod:
    """Of an application whose replicas keep apart by hostname; waiting where no node is given."""
    term = f'{{"labelSelector":{{"matchLabels":{{"app":"{application}"}}}},"topologyKey":"kubernetes.io/hostname"}}'
    affinity = f'{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{term}]}}}}'
    name, labels = f"{application}-{number}", Raw(f'{{"app":"{application}"}}'.encode())
    metadata = Metadata(name=name, namespace="bench", uid=f"uid-{name}", resource_version=str(version), labels=labels)
    return Pod(
        metadata, PodSpec(node_name=node, affinity=Raw(affinity.encode())), PodStatus("Running" if node else "Pending")
    )


class Site:
    """Which pods are where. Both processes have one, of the same seed."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.nodes = [f"node-{number:04d}" for number in range(nodes)]
        hosts = nodes // NODES_PER_HOST
        self.host_of = {name: number // NODES_PER_HOST for number, name in enumerate(self.nodes)}
        self.placed: dict[tuple[str, int], str] = {}
        for number in range(pods):
            application, one = divmod(number, REPLICAS)
            host = (application + one * (hosts // REPLICAS)) % hosts
            self.placed[f"app-{application}", one] = self.nodes[host * NODES_PER_HOST + application % NODES_PER_HOST]

    def kubernetes(self) -> list[Outgoing]:
        """What the first list publishes."""
        found = []
        for number, name in enumerate(self.nodes):
            labels = Raw(f'{{"kubernetes.io/hostname":"{name}"}}'.encode())
            metadata = Metadata(name=name, uid=name, resource_version="0", labels=labels)
            status = NodeStatus(allocatable=Raw(b'{"cpu":"64","memory":"256Gi","pods":"110"}'))
            node = Node(metadata, NodeSpec(provider_id=f"vsphere://{number:032x}"), status)
            found.append(outgoing_of(NODES, object_key(SITE, "node", name), node))
        return found + [told(replica(*which, node)) for which, node in self.placed.items()]

    def vsphere(self) -> list[Outgoing]:
        """What the first list publishes."""
        found = []
        for number in sorted(set(self.host_of.values())):
            host = Host(name=f"esx-{number}", id=f"host-{number}", uid=f"host-{number}", resource_version="0")
            found.append(outgoing_of(HOSTS, object_key(SITE, "host", host.id), host))
        for number, name in enumerate(self.nodes):
            at = f"host-{self.host_of[name]}"
            vm = Vm(
                name=name, id=f"vm-{number}", uuid=f"{number:032x}", host=at, uid=f"vm-{number}", resource_version="0"
            )
            found.append(outgoing_of(VMS, object_key(SITE, "vm", vm.id), vm))
        return found


def told(pod: Pod) -> Outgoing:
    """The record of a pod."""
    return outgoing_of(PODS, object_key(SITE, "pod", pod.metadata.name, "bench"), pod)


# ----------------------------------------------------------------------------------------------------------- the worker
class ChangeFeed(Source):
    """A ports.Source that lists; the Kubernetes one then publishes what it reads from stdin, and moves pods about."""

    def __init__(self, name: str, publisher: Publisher, listed: list[Outgoing], site: Site, rate: int) -> None:
        self.name, self.epoch = name, int(time.time() * 1000)
        self._publisher, self._listed, self._site, self._rate = publisher, listed, site, rate
        self._version = 1

    async def run(self) -> None:
        """List, mark, and go on."""
        for first in range(0, len(self._listed), 500):
            await self._publisher.publish(*self._listed[first : first + 500])
        marker = Listed(self.epoch, len(self._listed))
        topics = KUBERNETES_TOPICS if self.name == "kubernetes" else VSPHERE_TOPICS
        await self._publisher.publish(*(marker_of(SITE, self.name, topic, marker) for topic in topics))
        if self.name == "kubernetes":
            await asyncio.gather(self._obey(), *([self._move()] if self._rate else []))
        await asyncio.Event().wait()

    async def _obey(self) -> None:
        """`APPLICATION NUMBER [NODE]`: a pod that waits, or is bound."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            application, number, *node = line.decode().split()
            self._version += 1
            await self._publisher.publish(told(replica(application, int(number), *node, version=self._version)))

    async def _move(self) -> None:
        """Other pods come to other nodes, at a steady rate."""
        pick, which = random.Random(7), list(self._site.placed)
        while True:
            await asyncio.sleep(1 / self._rate)
            self._version += 1
            moved = replica(*pick.choice(which), pick.choice(self._site.nodes), version=self._version)
            await self._publisher.publish(told(moved))


async def work(nodes: int, pods: int, rate: int) -> None:
    """The worker; says its address, and at the end its memory."""
    site = Site(nodes, pods)

    def sources(name: str, publisher: Publisher, reader: TopicReader) -> Sequence[ChangeFeed]:
        return [
            ChangeFeed("vsphere", publisher, site.vsphere(), site, 0),
            ChangeFeed("kubernetes", publisher, site.kubernetes(), site, rate),
        ]

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            site=SITE,
            kafka=KafkaSettings(embedded=Path(folder) / "bench.db"),
            vsphere=VSphereSettings(inventory=Path("bench")),
            web=WebSettings(listen="127.0.0.1:0"),
        )
        await run_worker(
            settings,
            roles={"kubernetes", "vsphere", "evaluator", "web"},
            connections=Connections(sources),
            on_listening=lambda address: print(address, flush=True),
        )
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}", flush=True)


# ------------------------------------------------------------------------------------------------------- the scheduler
class Scheduler:
    """kube-scheduler: one connection that stays, one question after another."""

    def __init__(self, site: Site, worker: "subprocess.Popen[str]", address: str) -> None:
        self._site, self._worker, self._pick = site, worker, random.Random(3)
        host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=120)
        self.seconds: dict[str, list[float]] = {"filter": [], "prioritize": [], "no question": []}

    def ask(self, verb: str, pod: Pod, names: list[str]) -> Any:
        """The answer, its time noted."""
        body = b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (encode(pod), json.dumps(names).encode())
        begin = time.perf_counter()
        self._connection.request("POST", f"/extender/{verb}", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        data = answer.read()
        self.seconds[verb].append(time.perf_counter() - begin)
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {data.decode()}")
        return json.loads(data)

    def rest(self) -> None:
        """What a request takes that asks nothing: the machine's own noise, and that of the evaluations."""
        begin = time.perf_counter()
        self._connection.request("GET", "/healthz")
        self._connection.getresponse().read()
        self.seconds["no question"].append(time.perf_counter() - begin)

    def metrics(self) -> dict[str, float]:
        """The worker's own counts of the site."""
        self._connection.request("GET", "/metrics")
        lines = self._connection.getresponse().read().decode().splitlines()
        mine = [line.rpartition(" ") for line in lines if f'{{site="{SITE}"}}' in line]
        return {name.partition("{")[0]: float(value) for name, _, value in mine}

    def place(self, number: int) -> None:
        """One more replica: of an application that is there, or every fifth time of a new one."""
        application = (
            f"new-{number // 10}"
            if number % 5 == 0
            else f"app-{self._pick.randrange(len(self._site.placed) // REPLICAS)}"
        )
        pod = replica(application, 100 + number)
        self._tell(application, number, "")
        own = {node for (name, _), node in self._site.placed.items() if name == application}
        names = [name for name in self._site.nodes if name not in own]
        left = self.ask("filter", pod, names)["NodeNames"]
        scores = self.ask("prioritize", pod, left)
        best = [one["Host"] for one in scores if one["Score"] == 10]
        node = self._pick.choice(best)
        self._site.placed[application, 100 + number] = node
        self._tell(application, number, node)

    def _tell(self, application: str, number: int, node: str) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.write(f"{application} {100 + number} {node}\n")
        self._worker.stdin.flush()


def begin(nodes: int, pods: int, rate: int) -> tuple["subprocess.Popen[str]", str]:
    """A worker that is ready, and its address."""
    command = [sys.executable, "-m", "bench.extender", "worker", str(nodes), str(pods), str(rate)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    address = worker.stdout.readline().strip()
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    while True:
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.request("GET", "/extender/readyz")
        if connection.getresponse().status == 200:
            return worker, address
        time.sleep(0.2)


def _spent(process: int) -> float:
    """CPU seconds of the process's first thread, which runs the event loop: answers, and whatever goes in and out."""
    fields = Path(f"/proc/{process}/task/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(nodes: int, pods: int, questions: int, rate: int) -> None:
    """Ask, and print."""
    worker, address = begin(nodes, pods, rate)
    site = Site(nodes, pods)
    scheduler = Scheduler(site, worker, address)
    started = time.perf_counter()
    scheduler.ask("filter", replica("app-0", 99), site.nodes)
    print(f"first answer (compiles the site), s\t{time.perf_counter() - started:.2f}")
    scheduler.seconds["filter"].clear()
    started, spent = time.perf_counter(), _spent(worker.pid)
    for number in range(questions):
        scheduler.place(number)
        scheduler.rest()
    took = time.perf_counter() - started
    for verb, seconds in scheduler.seconds.items():
        seconds.sort()
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            print(f"{verb} {name}, ms\t{seconds[int(len(seconds) * share)] * 1e3:.1f}")
        print(f"{verb} worst, ms\t{seconds[-1] * 1e3:.1f}")
    used = (_spent(worker.pid) - spent) / (2 * questions)
    print(f"CPU of the event loop for each, ms\t{used * 1e3:.1f}")
    print(f"pods asked about per second\t{questions / took:.0f}")
    counted = scheduler.metrics()
    print(f"evaluations meanwhile\t{counted['underhost_evaluation_seconds_count']:.0f}")
    print(f"share of the time that one ran, %\t{100 * counted['underhost_evaluation_seconds_sum'] / took:.0f}")
    worker.terminate()
    out, _ = worker.communicate(timeout=60)
    print(f"worker's memory, MiB\t{out.split()[-1]}")


def main() -> None:
    """The scheduler, or with `worker` the worker."""
    logging.basicConfig(level=logging.WARNING)
    if sys.argv[1] == "worker":
        gc.set_threshold(*COLLECT)  # as a worker does
        event_loop.run(work(*map(int, sys.argv[2:])))
    else:
        measure(*map(int, sys.argv[1:]))


if __name__ == "__main__":
    main()
