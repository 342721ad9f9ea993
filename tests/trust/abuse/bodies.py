"""The bodies of those who mean harm: small texts that mean much, and large ones that mean nothing.

In: dice. Out: (path, body, headers) for a POST. Sizes are those that were proved to end a worker once.
"""

import gzip
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

JSON = {"Content-Type": "application/json"}
PLAN = "/api/v1/whatif"


class Posted(NamedTuple):
    """One POST."""

    path: str
    body: bytes
    headers: Mapping[str, str] = JSON


def workload(kind: str, name: str, replicas: int, padding: int = 0) -> dict[str, Any]:
    """A manifest of so many pods, each with so many bytes of nothing."""
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "x" * padding}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    inner = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "evil"}, "spec": inner}


def adding(*objects: Any) -> bytes:
    """A plan that adds objects."""
    return json.dumps({"steps": [{"add": list(objects)}]}).encode()


def pod(name: str, padding: int = 0) -> bytes:
    """A pod that nobody knows, with a rule that concerns all others."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {"name": name, "namespace": "evil", "uid": name, "labels": {"pad": "x" * padding}}
    return json.dumps({"metadata": metadata, "spec": {"affinity": rule}}).encode()


def question(pod_: bytes, nodes: bytes) -> bytes:
    """Of kube-scheduler, the nodes sent whole."""
    return b'{"Pod":%s,"Nodes":{"items":[%s]},"NodeNames":null}' % (pod_, nodes)


EMPTY = b",".join([b"{}"] * 330_000)
BOMB = gzip.compress(b" " * (64 << 20))

MADE: Mapping[str, Callable[[random.Random], Posted]] = {
    "a million empty objects": lambda dice: Posted(PLAN, b'{"steps":[{"add":[{"name":1e999},' + EMPTY + b"]}]}"),
    "levels without end": lambda dice: Posted(PLAN, b'{"steps":[{"add":' + b"[" * dice.randrange(1, 900_000)),
    "YAML with aliases": lambda dice: Posted(PLAN, b"a: &a [x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n" * 1000),
    "100,000 replicas": lambda dice: Posted(
        PLAN, adding(*(workload("Deployment", f"w{at}", 100_000) for at in range(5)))
    ),
    "as many replicas as are allowed": lambda dice: Posted(
        PLAN, adding(workload("Deployment", f"w{dice.random()}", 4_999))
    ),
    "large replicas": lambda dice: Posted(PLAN, adding(workload("ReplicaSet", "w", 4_000, 900_000))),
    "DaemonSets": lambda dice: Posted(PLAN, adding(*(workload("DaemonSet", f"d{at}", 1) for at in range(1500)))),
    "200 steps": lambda dice: Posted(
        PLAN, json.dumps({"steps": [{"drain": f"worker-{at:04d}"} for at in range(200)]}).encode()
    ),
    "each node": lambda dice: Posted(PLAN, b'{"each":"node"}'),
    "gzip": lambda dice: Posted(dice.choice([PLAN, "/extender/filter"]), BOMB, {**JSON, "Content-Encoding": "gzip"}),
    "nodes of nothing": lambda dice: Posted("/extender/filter", question(pod("p"), EMPTY * dice.randrange(1, 40))),
    "a large question": lambda dice: Posted("/extender/prioritize", question(pod("p", 60 << 20), b"")),
    "containers of nothing": lambda dice: Posted(
        "/extender/filter", b'{"Pod":{"metadata":{"name":"p","namespace":"e"},"spec":{"containers":[' + EMPTY + b"]}}}"
    ),
    "pods that nobody knows": lambda dice: Posted(
        "/extender/filter",
        b'{"Pod":%s,"NodeNames":["worker-0001","worker-0002"]}' % pod(f"p{dice.getrandbits(64)}"),
    ),
    "bindings of nothing": lambda dice: Posted(
        "/extender/bind", json.dumps({"PodName": "p" * 60_000, "PodNamespace": "e", "Node": "n"}).encode()
    ),
    "noise": lambda dice: Posted(dice.choice([PLAN, "/extender/preempt"]), dice.randbytes(dice.randrange(100_000))),
}
