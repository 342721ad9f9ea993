"""The workloads of upstream's scheduler_perf, decided by upstream's own loop and by ours: 5,000 nodes each.

Arguments: names of workloads (all by default). Prints `name<TAB>value` lines. Upstream decides twice: with
kube-scheduler's defaults, which look for nodes only until about a tenth of 5,000 fit, and over all nodes as we do;
there the placements must be equal. Sizes and templates are those of `test/integration/scheduler_perf` of Kubernetes
1.36, its variants named `5000Nodes`; the pods that it schedules first are on nodes here.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.placement.timed import placed
from oracle import upstream

NODES = 5_000
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
IN_BOTH = ["sched-1", "sched-0"]
DEFAULTS, ALL = "kube-scheduler's defaults", "all nodes"
Json = dict[str, Any]


class Template(NamedTuple):
    """Pods of one kind: their labels, and what their spec says besides the container."""

    labels: dict[str, str]
    spec: Json


class Pods(NamedTuple):
    """So many pods of a template, in a namespace."""

    template: Template
    count: int
    namespace: str


class Workload(NamedTuple):
    """The zones of the nodes in turn, the pods that run, those to be decided, and the labels of every namespace."""

    zones: list[str]
    running: list[Pods]
    pending: Pods
    labels: Mapping[str, str] = MappingProxyType({})


def main() -> None:
    """Measure and print."""
    try:
        binary = upstream.build()
    except upstream.NoOracle as error:
        sys.exit(str(error))
    for name in sys.argv[1:] or WORKLOADS:
        document = json.dumps({"kind": "List", "apiVersion": "v1", "items": list(_objects(WORKLOADS[name]))}).encode()
        [sampled] = upstream.ask(binary, [document], "-bench", "1", "-sample")
        [whole] = upstream.ask(binary, [document], "-bench", "1")
        ours = placed(document)
        if ours.placements != whole["placements"]:
            sys.exit(f"{name}: the placements differ from upstream's")
        print(f"{name}: our loop, s\t{ours.loop:.3f}")
        print(f"{name}: underhost schedule, s\t{ours.seconds:.2f}")
        for title, theirs in ((DEFAULTS, sampled), (ALL, whole)):
            seconds = theirs["loop_s"][0]
            print(f"{name}, {title}: upstream's loop, s\t{seconds:.2f}")
            print(f"{name}, {title}: loop, times as fast\t{seconds / ours.loop:.1f}")
            print(f"{name}, {title}: whole command, times as fast\t{seconds / ours.seconds:.1f}")


def _objects(workload: Workload) -> Iterator[Json]:
    spaces = dict.fromkeys(pods.namespace for pods in (*workload.running, workload.pending))
    for name in spaces:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(workload.labels)}}
    for at in range(NODES):
        yield _node(f"scheduler-perf-{at:04d}", workload.zones[at % len(workload.zones)] if workload.zones else "")
    at = 0
    for part, pods in enumerate(workload.running):
        # Where a template wants its pods apart there are fewer than nodes, also of all such parts together.
        for _ in range(pods.count):
            yield _pod(f"r{part}-{at:05d}", pods, f"scheduler-perf-{at % NODES:04d}")
            at += 1
    for at in range(workload.pending.count):
        yield _pod(f"p-{at:05d}", workload.pending, "")


def _node(name: str, zone: str) -> Json:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _pod(name: str, pods: Pods, node: str) -> Json:
    metadata: Json = {"name": name, "namespace": pods.namespace, "uid": f"u-{pods.namespace}-{name}"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": pods.template.labels}
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "pause", "image": "pause:3", "resources": {"requests": requests, "limits": requests}}
    container["ports"] = [{"containerPort": 80}]
    spec: Json = {"schedulerName": "default-scheduler", "priority": 0, "containers": [container], **pods.template.spec}
    if node:
        spec["nodeName"] = node
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


# -------------------------------------------------------------------------------------------------------- templates
def _term(color: str, key: str, **where: Any) -> Json:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, **where}


def _affinity(color: str, kind: str, **rules: Any) -> Template:
    return Template({"color": color}, {"affinity": {kind: rules}})


DEFAULT = Template({}, {})
ANTI_AFFINITY = _affinity("green", "podAntiAffinity", **{REQUIRED: [_term("green", HOST, namespaces=IN_BOTH)]})
AFFINITY = _affinity("blue", "podAffinity", **{REQUIRED: [_term("blue", ZONE, namespaces=IN_BOTH)]})
NAMESPACE_SELECTOR = _affinity(
    "green",
    "podAntiAffinity",
    **{REQUIRED: [_term("green", HOST, namespaceSelector={"matchLabels": {"team": "devops"}})]},
)
PREFERRED_AFFINITY = _affinity(
    "red",
    "podAffinity",
    **{PREFERRED: [{"weight": 1, "podAffinityTerm": _term("red", HOST, namespaces=IN_BOTH)}]},
)
PREFERRED_ANTI_AFFINITY = _affinity(
    "yellow",
    "podAntiAffinity",
    **{PREFERRED: [{"weight": 1, "podAffinityTerm": _term("yellow", HOST, namespaces=IN_BOTH)}]},
)
SPREADING = Template(
    {"color": "blue"},
    {"topologySpreadConstraints": [{**_term("blue", ZONE), "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"}]},
)


# -------------------------------------------------------------------------------------------------------- workloads
_EVERY = (DEFAULT, AFFINITY, ANTI_AFFINITY, PREFERRED_AFFINITY, PREFERRED_ANTI_AFFINITY)
WORKLOADS = {
    "basic": Workload([], [Pods(DEFAULT, 1_000, "default")], Pods(DEFAULT, 1_000, "default")),
    "anti-affinity": Workload([], [Pods(ANTI_AFFINITY, 1_000, "sched-0")], Pods(ANTI_AFFINITY, 1_000, "sched-1")),
    "affinity": Workload(["zone1"], [Pods(AFFINITY, 5_000, "sched-0")], Pods(AFFINITY, 1_000, "sched-1")),
    "namespace selector": Workload(
        [],
        [Pods(NAMESPACE_SELECTOR, 40, f"init-ns-{at}") for at in range(100)],
        Pods(NAMESPACE_SELECTOR, 1_000, "measure-ns-0"),
        {"team": "devops"},
    ),
    "spreading": Workload(
        ["moon-1", "moon-2", "moon-3"], [Pods(DEFAULT, 5_000, "default")], Pods(SPREADING, 2_000, "default")
    ),
    "mixed": Workload(["zone1"], [Pods(each, 2_000, "sched-0") for each in _EVERY], Pods(DEFAULT, 1_000, "default")),
}


if __name__ == "__main__":
    main()
