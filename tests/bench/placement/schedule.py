"""How fast is a placement beside the upstream scheduler's own loop, in one run on one machine, with equal placements?

Arguments: a number of nodes, and the workloads to run (all by default). Prints `name<TAB>value` lines.
Upstream is measured inside its process, its set-up not counted; of ours the whole command, and the loop alone in a
fresh process. Three workloads: applications of twenty replicas that must be apart and would rather be in different
zones (uniform), a mixture of every kind of rule (mixed), and the uniform one with labels and requests of its own for
every pod (different).
"""

import json
import random
import sys
from typing import Any

from bench.placement.timed import placed
from oracle import upstream

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
OWN = "statefulset.kubernetes.io/pod-name"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
REPLICAS = 20
SIZES = {1_000: (10_000, 1_000), 5_000: (20_000, 2_000)}  # nodes: (running, pending)
UNIFORM, MIXED, DIFFERENT = "uniform", "mixed", "different"
Json = dict[str, Any]


def main() -> None:
    """Measure and print."""
    nodes = int(sys.argv[1])
    try:
        binary = upstream.build()
    except upstream.NoOracle as error:
        sys.exit(str(error))
    for workload in sys.argv[2:] or (UNIFORM, MIXED, DIFFERENT):
        title = f"{nodes} nodes, {workload}"
        document = document_of(nodes, workload)
        [theirs] = upstream.ask(binary, [document], "-bench", "1")
        ours = placed(document)
        if ours.placements != theirs["placements"]:
            sys.exit(f"{title}: the placements differ from upstream's")
        print(f"{title}: upstream's loop, s\t{theirs['loop_s'][0]:.1f}")
        print(f"{title}: underhost schedule, s\t{ours.seconds:.2f}")
        print(f"{title}: times as fast\t{theirs['loop_s'][0] / ours.seconds:.0f}")
        print(f"{title}: our loop alone, s\t{ours.loop:.2f}")
        print(f"{title}: loop, times as fast\t{theirs['loop_s'][0] / ours.loop:.0f}")
        print(f"{title}: memory, MiB\t{ours.memory:.0f}")


def document_of(nodes: int, workload: str) -> bytes:
    """The site as a dump: nodes, pods that run, and pods that wait."""
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": _objects(nodes, workload)}).encode()


def _objects(nodes: int, workload: str) -> list[Json]:
    chance, (running, pending), mixed = random.Random(7), SIZES[nodes], workload == MIXED
    objects = [_node(at, chance, mixed) for at in range(nodes)]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    apps = (running + pending) // REPLICAS
    taken: dict[int, set[int]] = {}
    for at in range(running):
        app, node = at % apps, chance.randrange(nodes)
        while node in taken.setdefault(app, set()):
            node = chance.randrange(nodes)
        taken[app].add(node)
        objects.append(_pod(f"e{at:06d}", app, chance, mixed, f"node-{node:05d}"))
    objects += [_pod(f"p{at:06d}", chance.randrange(apps), chance, mixed) for at in range(pending)]
    for app in range(0, apps, 10) if mixed else ():
        spec = {"selector": {"app": f"app-{app}"}, "ports": [{"port": 80}]}
        metadata = {"name": f"app-{app}", "namespace": "default"}
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    if workload == DIFFERENT:
        _tell_apart([one for one in objects if one["kind"] == "Pod"])
    return objects


def _tell_apart(pods: list[Json]) -> None:
    """Labels and requests of its own for every pod; the rules stay those of its application.

    One pod's term names the label that differs: no two pods are alike to the rules.
    """
    first = {"matchLabels": {OWN: pods[0]["metadata"]["name"]}}
    anti = pods[0]["spec"]["affinity"]["podAntiAffinity"]
    anti[PREFERRED].append({"weight": 1, "podAffinityTerm": {"labelSelector": first, "topologyKey": ZONE}})
    for number, pod in enumerate(pods):
        name = pod["metadata"]["name"]
        pod["metadata"]["labels"][OWN] = name
        pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = f"{131_072 + number}Ki"


def _node(at: int, chance: random.Random, mixed: bool) -> Json:
    name = f"node-{at:05d}"
    labels = {HOST: name, ZONE: f"z{at % 10}", "disktype": ("ssd", "hdd", "nvme")[at % 3]}
    spec: Json = {}
    status: Json = {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}}
    if mixed:
        if chance.random() < 0.02:
            del labels[ZONE]
        kind = chance.random()
        if kind < 0.05:
            spec["taints"] = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
        elif kind < 0.15:
            spec["taints"] = [{"key": "spot", "effect": "PreferNoSchedule"}]
        elif kind < 0.17:
            spec["unschedulable"] = True
        status["allocatable"]["cpu"] = chance.choice(("32", "16", "31920m"))
        status["allocatable"]["memory"] = chance.choice(("128Gi", "64Gi", "131666656Ki"))
        if chance.random() < 0.4:
            status["images"] = [{"names": ["app:1"], "sizeBytes": 700 << 20}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _pod(name: str, app: int, chance: random.Random, mixed: bool, node: str = "") -> Json:
    own = {"matchLabels": {"app": f"app-{app}"}}
    requests = {"cpu": chance.choice(("100m", "250m", "500m")), "memory": chance.choice(("128Mi", "512Mi"))}
    anti = {
        REQUIRED: [{"labelSelector": own, "topologyKey": HOST}],
        PREFERRED: [{"weight": 50, "podAffinityTerm": {"labelSelector": own, "topologyKey": ZONE}}],
    }
    spec: Json = {
        "schedulerName": "default-scheduler",
        "priority": 0,
        "containers": [{"name": "c", "image": "app:1", "resources": {"requests": requests}}],
        "affinity": {"podAntiAffinity": anti},
    }
    labels = {"app": f"app-{app}", "tier": f"t{app % 4}"}
    metadata: Json = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": labels}
    metadata["creationTimestamp"] = f"2026-01-01T00:00:{chance.randrange(60):02d}Z"
    if mixed:
        _mix(spec, app, own)
        if chance.random() < 0.05:
            spec["containers"][0]["resources"] = {}
        if node and chance.random() < 0.02:
            metadata |= {"deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 30}
    if node:
        spec["nodeName"] = node
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _mix(spec: Json, app: int, own: Json) -> None:
    """Another set of rules for each of ten kinds of applications."""
    beside = {"matchLabels": {"app": f"app-{max(0, app - 1)}"}}
    affinity, kind = spec["affinity"], app % 10
    if kind in (0, 1, 2):
        del spec["affinity"]  # spread by the scheduler's defaults, where a Service selects them, or by their own
    if kind == 1:
        spec["topologySpreadConstraints"] = [
            _spread(ZONE, 1, "ScheduleAnyway", own),
            _spread(HOST, 2, "ScheduleAnyway", own),
        ]
    elif kind == 2:
        spec["topologySpreadConstraints"] = [_spread(ZONE, 1, "DoNotSchedule", own)]
    elif kind == 3:
        spec["nodeSelector"] = {"disktype": "ssd"}
    elif kind == 4:
        zones = {"key": ZONE, "operator": "In", "values": ["z1", "z2", "z3"]}
        disks = {"key": "disktype", "operator": "In", "values": ["nvme"]}
        affinity["nodeAffinity"] = {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zones]}]},
            PREFERRED: [{"weight": 10, "preference": {"matchExpressions": [disks]}}],
        }
    elif kind == 5:
        affinity["podAffinity"] = {REQUIRED: [{"labelSelector": beside, "topologyKey": ZONE}]}
    elif kind == 6:
        tier = {"labelSelector": {"matchLabels": {"tier": "t2"}}, "topologyKey": ZONE}
        near = {"labelSelector": beside, "topologyKey": HOST}
        weighted = [{"weight": 30, "podAffinityTerm": tier}, {"weight": 20, "podAffinityTerm": near}]
        affinity["podAffinity"] = {PREFERRED: weighted}
    elif kind == 7:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    elif kind == 8:
        affinity["podAntiAffinity"][REQUIRED].append({"labelSelector": own, "topologyKey": ZONE})


def _spread(key: str, skew: int, when: str, own: Json) -> Json:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": own}


if __name__ == "__main__":
    main()
