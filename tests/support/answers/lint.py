"""What lint says of objects as people and clusters write them, and where in a manifest it points."""

import io
import json
from collections.abc import Sequence
from typing import NamedTuple

from support.build import REQUIRED, Built, Json, NodeBuilder, a_node

from underhost.agents.lint.report import lint
from underhost.agents.site.snapshot import Joining, Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import Report
from underhost.streams.files.reader import load_files

ESXI = "node.cluster.x-k8s.io/esxi-host"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD_SPEC = "spec.template.spec"
ANTI = f"{POD_SPEC}.affinity.podAntiAffinity.{REQUIRED}[0]"
NEAR = f"{POD_SPEC}.affinity.podAffinity.{REQUIRED}[0]"
NODE_AFFINITY = f"{POD_SPEC}.affinity.nodeAffinity"
NODE_TERMS = f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms"
SPREAD = f"{POD_SPEC}.topologySpreadConstraints[0]"
Written = Built | Json


def documents(*objects: Written) -> str:
    """The objects as YAML documents of a file."""
    return "".join(f"---\n{json.dumps(one.json() if isinstance(one, Built) else one)}\n" for one in objects)


def report_of(objects: Sequence[Written], inventory: Json | None = None, host_label: str = "") -> Report:
    """The report of `underhost lint` about these objects; `host_label` is that of `--host-label`."""
    more = [{"apiVersion": "underhost/v1", "kind": "Inventory", **inventory}] if inventory else []
    read = load_files(["-"], stdin=io.BytesIO(documents(*objects, *more).encode()))
    snapshot, _ = snapshot_of(read, joining=Joining(label=host_label))
    return lint(snapshot, Options(), read.others, read.misspelled, read.makers)


def zones(*names: str) -> list[NodeBuilder]:
    """n0, n1, ... in these zones; "" is none."""
    made = [a_node(f"n{at}") for at, _ in enumerate(names)]
    return [node.zone(zone) if zone else node for node, zone in zip(made, names, strict=True)]


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


def rows(objects: Sequence[Json], inventory: Json | None = None, host_label: str = "") -> list[Row]:
    """Every finding about these objects, in order."""
    return [
        Row(one.source or "", one.severity, one.rule, one.object or "", one.field or "", one.message)
        for one in report_of(objects, inventory, host_label).findings
    ]
