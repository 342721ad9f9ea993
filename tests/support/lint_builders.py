"""Objects for the tests of lint, as the API has them, and the report of a list of them."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from underhost.agents.lint.report import lint
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import Report
from underhost.streams.files.reader import load_files

Json = dict[str, Any]
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ESXI = "node.cluster.x-k8s.io/esxi-host"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD_SPEC = "spec.template.spec"
ANTI = f"{POD_SPEC}.affinity.podAntiAffinity.{REQUIRED}[0]"
NEAR = f"{POD_SPEC}.affinity.podAffinity.{REQUIRED}[0]"
NODE_AFFINITY = f"{POD_SPEC}.affinity.nodeAffinity"
NODE_TERMS = f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms"
SPREAD = f"{POD_SPEC}.topologySpreadConstraints[0]"


def report_of(objects: Sequence[Json], inventory: Json | None = None) -> Report:
    """The report of `underhost lint` about these objects."""
    items = [*objects, *([{"apiVersion": "underhost/v1", "kind": "Inventory", **inventory}] if inventory else [])]
    text = "".join(f"---\n{json.dumps(item)}\n" for item in items)
    read = load_files(["-"], stdin=io.BytesIO(text.encode()))
    snapshot, _ = snapshot_of(read)
    return lint(snapshot, Options(), read.others, read.misspelled, read.makers)


def node(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"n-{name}", "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
    }


def zones(*names: str) -> list[Json]:
    """n0, n1, ... in these zones; "" is none."""
    return [node(f"n{at}", {ZONE: zone} if zone else {}) for at, zone in enumerate(names)]


def taint(key: str = "dedicated", effect: str = "NoSchedule") -> list[Json]:
    return [{"key": key, "value": "x", "effect": effect}]


def pod(name: str, on: str = "", app: str = "other", owner: str = "", **spec: Any) -> Json:
    """A pod of a cluster."""
    kind, _, owner_name = owner.partition("/")
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "shop", "uid": f"p-{name}", "labels": {"app": app}, "ownerReferences": owners
        },
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "nodeName": on, **spec},
        "status": {
            "phase": "Running" if on else "Pending", "conditions": [{"type": "Ready", "status": str(bool(on))}]
        },
    }  # fmt: skip


def workload(kind: str = "Deployment", name: str = "db", replicas: int | None = 3, **spec: Any) -> Json:
    """A workload as a person writes it, its pods labelled app=NAME; `spec` is that of its pods."""
    body: Json = {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
        },
    }
    if replicas is not None:
        body["replicas"] = replicas
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": body}


def selector(app: str | None = "db") -> Json:
    return {} if app is None else {"matchLabels": {"app": app}}


def term(app: str | None = "db", key: str = HOSTNAME, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": selector(app), **more}


def apart(*terms: Json, preferred: Sequence[tuple[int, Json]] = ()) -> Json:
    """Anti-affinity."""
    return {"podAntiAffinity": _sides(terms, preferred)}


def near(*terms: Json, preferred: Sequence[tuple[int, Json]] = ()) -> Json:
    """Affinity."""
    return {"podAffinity": _sides(terms, preferred)}


def _sides(terms: Sequence[Json], preferred: Sequence[tuple[int, Json]]) -> Json:
    sides: Json = {REQUIRED: list(terms)} if terms else {}
    if preferred:
        sides[PREFERRED] = [{"weight": weight, "podAffinityTerm": one} for weight, one in preferred]
    return sides


def nodes_with(*terms: Json, preferred: Sequence[tuple[int, Json]] = ()) -> Json:
    """Node affinity."""
    sides: Json = {REQUIRED: {"nodeSelectorTerms": list(terms)}} if terms else {}
    if preferred:
        sides[PREFERRED] = [{"weight": weight, "preference": one} for weight, one in preferred]
    return {"nodeAffinity": sides}


def label(key: str, operator: str = "Exists", *values: str) -> Json:
    """A term of node affinity with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def spread(app: str | None = "db", key: str = ZONE, when: str = "DoNotSchedule", **more: Any) -> Json:
    one = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": selector(app)}
    return one | more


def budget(name: str = "db", app: str | None = "db", version: str = "policy/v1", **spec: Any) -> Json:
    return {
        "apiVersion": version,
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": selector(app), **spec},
    }


def hosts(**nodes: str) -> Json:
    """An inventory: each node's VM, of the same name, on a host."""
    return {
        "hosts": [{"id": name, "name": name, "cluster": "C0"} for name in sorted(set(nodes.values()))],
        "vms": [{"id": f"vm-{name}", "name": name, "host": host} for name, host in nodes.items()],
        "clusters": [{"name": "C0", "rules": []}],
    }


class Row(NamedTuple):
    """One finding as a test expects it."""

    check: str
    severity: str
    rule: str
    object: str
    field: str
    message: str


def rows(objects: Sequence[Json], inventory: Json | None = None) -> list[Row]:
    """Every finding about these objects, in order."""
    return [
        Row(one.source or "", one.severity, one.rule, one.object or "", one.field or "", one.message)
        for one in report_of(objects, inventory).findings
    ]
