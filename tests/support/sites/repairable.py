"""Seeded random clusters of up to six nodes whose replicas break rules: for tests of what the evictor repairs.

Objects are put together from a pool of parts, so that thousands of clusters take seconds.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import NodeHost

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
APPS = ("web", "db", "cache")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def _term(key: str, app: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def _apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


AFFINITIES = [raw({})] * 3
AFFINITIES += [raw(_apart(_term(key, app))) for app in APPS for key in (HOST, ZONE, HOST_KEY)]
AFFINITIES += [raw(_apart(_term(HOST, "web"), _term(ZONE, "db")))]
AFFINITIES += [raw({"podAffinity": {REQUIRED: [_term(ZONE, app)]}}) for app in APPS]
AFFINITIES += [
    raw(
        {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}
            }
        }
    )
]
SPREADS = [raw([])] * 8 + [
    raw([{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **_selector}])
    for key in (HOST, ZONE)
    for app in APPS
    for _selector in ({"labelSelector": {"matchLabels": {"app": app}}},)
]
REQUESTS = [raw({}), raw({"requests": {"cpu": "500m"}}), raw({"requests": {"cpu": "1500m"}})]
PORTS: list[list[k8s.ContainerPort] | None] = [None] * 9 + [[k8s.ContainerPort(80, 80)]]
LABELS = {app: raw({"app": app}) for app in APPS}
READY = [k8s.Condition("Ready", "True")]
NODE_LABELS = {
    (name, zone): raw({HOST: name, **({ZONE: zone} if zone else {})})
    for name in (f"n{number}" for number in range(6))
    for zone in ("a", "b", "c", "")
}
ALLOCATABLE = [raw({"cpu": cpu, "memory": "8Gi", "pods": "110"}) for cpu in ("1", "2", "4")]
TAINTS = [raw([])] * 8 + [raw([{"key": "k", "value": "v", "effect": effect}]) for effect in ("NoSchedule", "NoExecute")]


def a_cluster(seed: int) -> Snapshot:
    """Running replicas of three applications, some without an owner, on nodes of up to four hosts."""
    dice = random.Random(seed)
    names = [f"n{number}" for number in range(dice.randint(2, 6))]
    nodes = {name: _node(dice, name) for name in names}
    known = dice.random() < 0.8
    placed = {name: dice.choice(["h1", "h2", "h3", "h4", ""]) for name in names} if known else {}
    templates = {app: [_template(dice) for _ in range(2)] for app in APPS}
    pods = {}
    for number in range(dice.randint(1, 9)):
        pod = _pod(dice, f"p{number}", dice.choice(names), templates)
        pods[f"shop/p{number}"] = pod
    return Snapshot(
        nodes=nodes,
        pods=pods,
        workloads={f"ReplicaSet/shop/{app}": _workload(app) for app in APPS},
        node_hosts={name: NodeHost(name, f"vm-{name}", host, f"esx-{host}", "name") for name, host in placed.items()},
    )


def _node(dice: random.Random, name: str) -> k8s.Node:
    labels = NODE_LABELS[name, dice.choice(["a", "a", "b", "c", ""])]
    spec = k8s.NodeSpec(unschedulable=dice.random() < 0.1, taints=dice.choice(TAINTS))
    return k8s.Node(k8s.Metadata(name, labels=labels), spec, k8s.NodeStatus(dice.choice(ALLOCATABLE)))


def _template(dice: random.Random) -> Mapping[str, Any]:
    container = k8s.Container("c", "app:1", dice.choice(REQUESTS), dice.choice(PORTS))
    return {
        "containers": [container],
        "affinity": dice.choice(AFFINITIES),
        "topology_spread_constraints": dice.choice(SPREADS),
        "scheduler_name": dice.choice(["default-scheduler", "underhost"]),
        "priority": dice.choice([0, 0, 10]),
    }


def _pod(dice: random.Random, name: str, node: str, templates: Mapping[str, list[Mapping[str, Any]]]) -> k8s.Pod:
    app = dice.choice(APPS)
    owners = [k8s.OwnerReference("ReplicaSet", app, f"uid-{app}", "apps/v1", True)] if dice.random() < 0.85 else None
    metadata = k8s.Metadata(
        name,
        namespace="shop",
        uid=f"uid-{name}",
        creation_timestamp=f"2026-01-01T00:00:0{dice.randrange(3)}Z",
        labels=LABELS[app],
        owner_references=owners,
    )
    spec = k8s.PodSpec(node_name=node, **dice.choice(templates[app]))
    return k8s.Pod(metadata, spec, k8s.PodStatus("Running", conditions=READY))


def _workload(name: str) -> k8s.Workload:
    return k8s.Workload("ReplicaSet", k8s.Metadata(name, namespace="shop", uid=f"uid-{name}"), "apps/v1")
