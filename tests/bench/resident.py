"""How long does a resident evaluator take to judge one change? p50 and p99 by kind of change; memory.

`bench.resident [NODES APPS ROUNDS]`. Prints `name<TAB>value` lines. The site is that of `support.sites.large`: 20
replicas an application with required anti-affinity, spread and node affinity, a few misplaced. Times are CPU times: a
loaded machine changes little. The mappings know the keys that changed, as those of whoever keeps the site's tables do.
A node comes and goes with its VM's host, as in the pipeline.
"""

import gc
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from support.sites import large
from support.sites.large import LargeSite

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.pipeline.event_loop import COLLECT
from underhost.agents.site.changes import Tracked
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Host

JOINING = 10  # nodes of one scale-up


class Site:
    """Mutable mappings under one snapshot after another: a copy of 150,000 references would be timed otherwise."""

    def __init__(self, size: LargeSite) -> None:
        self.size = size
        self.pick = random.Random(7)
        nodes: dict[str, k8s.Node] = {}
        pods: dict[str, k8s.Pod] = {}
        for one in size.objects():
            if one["kind"] == "Node":
                nodes[one["metadata"]["name"]] = _read(one, k8s.Node)
            else:
                pod = _read(one, k8s.Pod)
                pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        self.nodes, self.pods = Tracked(nodes), Tracked(pods)
        self.keys = list(self.pods)
        self.names = list(self.nodes)
        hosts = {f"host-{at}": Host(f"esx-{at}", f"host-{at}", cluster=f"C{at // 32}") for at in range(size.hosts)}
        self.node_hosts = Tracked({name: self._joined(name, size.host_of(at)) for at, name in enumerate(self.names)})
        self.snapshot = Snapshot(
            nodes=self.nodes,
            pods=self.pods,
            workloads=Tracked({}),
            hosts=hosts,
            node_hosts=self.node_hosts,
            vsphere=True,
        )
        self.number = 0
        self.spare: list[str] = []

    @staticmethod
    def _joined(name: str, host: int) -> NodeHost:
        return NodeHost(name, f"vm-{name}", f"host-{host}", f"esx-{host}", "name")

    def apply(self, **changes: dict[str, Any]) -> Snapshot:
        """The snapshot after a change: by mapping, the new value of each key, None to remove it."""
        fields: dict[str, Any] = {}
        for mapping, values in changes.items():
            before = getattr(self.snapshot, mapping)
            changed = fields[mapping] = Tracked(before, before, values)
            for key, value in values.items():
                if value is None:
                    changed.pop(key, None)
                else:
                    changed[key] = value
        self.snapshot = replace(self.snapshot, **fields)
        return self.snapshot

    def a_pod(self) -> tuple[str, k8s.Pod]:
        """Some pod."""
        while True:
            key = self.pick.choice(self.keys)
            if key in self.snapshot.pods:
                return key, self.snapshot.pods[key]

    def a_node(self) -> tuple[str, k8s.Node]:
        """Some node."""
        while True:
            name = self.pick.choice(self.names)
            if name in self.snapshot.nodes:
                return name, self.snapshot.nodes[name]

    # ---------------------------------------------------------------------------------------------------- changes
    def pod_moved(self) -> Snapshot:
        """The replica is on another node."""
        key, pod = self.a_pod()
        spec = msgspec.structs.replace(pod.spec, node_name=self.pick.choice(self.names))
        return self.apply(pods={key: msgspec.structs.replace(pod, spec=spec)})

    def pod_added(self) -> Snapshot:
        """One more replica of an application."""
        _, pod = self.a_pod()
        self.number += 1
        name = f"more-{self.number}"
        labels = {**json.loads(bytes(pod.metadata.labels)), "statefulset.kubernetes.io/pod-name": name}
        raw = msgspec.Raw(json.dumps(labels).encode())
        metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"uid-{name}", labels=raw)
        spec = msgspec.structs.replace(pod.spec, node_name=self.pick.choice(self.names))
        added = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        return self.apply(pods={f"{metadata.namespace}/{name}": added})

    def pod_removed(self) -> Snapshot:
        """A replica is gone."""
        return self.apply(pods={self.a_pod()[0]: None})

    def pod_deleting(self) -> Snapshot:
        """A replica is being deleted."""
        key, pod = self.a_pod()
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        return self.apply(pods={key: msgspec.structs.replace(pod, metadata=metadata)})

    def pod_unready(self) -> Snapshot:
        """Only the readiness of a replica changes."""
        key, pod = self.a_pod()
        status = msgspec.structs.replace(pod.status, conditions=[k8s.Condition("Ready", "False")])
        return self.apply(pods={key: msgspec.structs.replace(pod, status=status)})

    def pod_of_new_application(self) -> Snapshot:
        """The first pod of an application: a class and a selector that were not there."""
        self.number += 1
        name = self.pick.choice(self.names)
        raw = large.pod(1_000_000 + self.number, 0, name, large.spec_of(1_000_000 + self.number))
        pod = _read(raw, k8s.Pod)
        return self.apply(pods={f"{pod.metadata.namespace}/{pod.metadata.name}": pod})

    def node_moved(self) -> Snapshot:
        """The node's VM is on another host."""
        name, _ = self.a_node()
        return self.apply(node_hosts={name: self._joined(name, self.pick.randrange(self.size.hosts))})

    def node_rezoned(self) -> Snapshot:
        """The label of a topology key that spread and anti-affinity use."""
        return self._labelled(large.ZONE, f"z{self.pick.randrange(10)}")

    def node_labelled(self) -> Snapshot:
        """A label that no rule reads."""
        return self._labelled("team", str(self.pick.random()))

    def _labelled(self, key: str, value: str) -> Snapshot:
        name, node = self.a_node()
        labels = {**json.loads(bytes(node.metadata.labels)), key: value}
        metadata = msgspec.structs.replace(node.metadata, labels=msgspec.Raw(json.dumps(labels).encode()))
        return self.apply(nodes={name: msgspec.structs.replace(node, metadata=metadata)})

    def node_cordoned(self) -> Snapshot:
        """The node is cordoned, or no longer."""
        name, node = self.a_node()
        spec = msgspec.structs.replace(node.spec, unschedulable=not node.spec.unschedulable)
        return self.apply(nodes={name: msgspec.structs.replace(node, spec=spec)})

    def node_added(self) -> Snapshot:
        """One more node."""
        return self._joining(1)

    def nodes_added(self) -> Snapshot:
        """A scale-up: several nodes in one snapshot."""
        return self._joining(JOINING)

    def _joining(self, count: int) -> Snapshot:
        nodes, node_hosts = {}, {}
        for _ in range(count):
            self.number += 1
            name = f"{self.pick.choice('amnz')}{self.pick.randrange(10_000):04d}-{self.number}"
            nodes[name] = _read(large.node(name, f"z{self.pick.randrange(10)}"), k8s.Node)
            node_hosts[name] = self._joined(name, self.pick.randrange(self.size.hosts))
            self.spare.append(name)
        return self.apply(nodes=nodes, node_hosts=node_hosts)

    def node_removed(self) -> Snapshot:
        """A node that was drained before it went."""
        name = self.spare.pop(self.pick.randrange(len(self.spare)))
        return self.apply(nodes={name: None}, node_hosts={name: None})

    def node_lost(self) -> Snapshot:
        """A node that went with some 30 pods still bound to it."""
        name, _ = self.a_node()
        return self.apply(nodes={name: None}, node_hosts={name: None})


def _read(built: dict[str, Any], kind: type[Any]) -> Any:
    return k8s.decode(json.dumps(built).encode(), kind)


def main() -> None:
    """Measure and print."""
    sizes = [int(argument) for argument in sys.argv[1:]]
    size = LargeSite.of(sizes[0], sizes[1]) if sizes else LargeSite()
    rounds = sizes[2] if len(sizes) > 2 else 200
    made, options = Site(size), Options()
    resident = Evaluator(options)
    gc.freeze()
    gc.set_threshold(*COLLECT)  # as a worker does
    begin = time.perf_counter()
    found = resident.update(made.snapshot)
    print(f"pods\t{len(made.pods)}")
    print(f"findings\t{len(found.findings)}")
    print(f"first report, s\t{time.perf_counter() - begin:.2f}")
    kinds: list[Callable[[], Snapshot]] = [
        made.pod_moved,
        made.pod_added,
        made.pod_removed,
        made.pod_deleting,
        made.pod_unready,
        made.pod_of_new_application,
        made.node_moved,
        made.node_rezoned,
        made.node_labelled,
        made.node_cordoned,
        made.node_added,
        made.nodes_added,
        made.node_removed,
        made.node_lost,
    ]
    few = (made.nodes_added, made.node_lost)
    for kind in kinds:
        times = []
        for _ in range(rounds if kind not in few else max(3, rounds // 4)):
            before = made.snapshot  # freeing its 150,000 references is not what is measured
            snapshot = kind()
            begin = time.process_time()
            found = resident.update(snapshot)
            times.append(time.process_time() - begin)
            del before
        times.sort()
        name = kind.__name__.replace("_", " ")
        print(f"{name}, p50 ms\t{times[len(times) // 2] * 1e3:.2f}")
        print(f"{name}, p99 ms\t{times[int(len(times) * 0.99)] * 1e3:.2f}")
    print(f"memory, MiB\t{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    print(f"compiled anew\t{resident.rebuilt - 1}")
    begin = time.perf_counter()
    full = check(replace(made.snapshot), options)
    print(f"full check, s\t{time.perf_counter() - begin:.2f}")
    if full != found:
        sys.exit("the resident evaluator and the full check disagree")


if __name__ == "__main__":
    main()
