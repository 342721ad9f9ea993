"""Changes of a node, as kubectl and the node lifecycle controller make them: cordon, taints, labels, a lost node.

In: a node. Out: another one. Pure. A part of a wrong shape raises BadObjectError.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from underhost.agents.evaluate.nodes import CORDON_TAINT
from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.schemas import kubernetes as k8s
from underhost.schemas.kubernetes import Condition, Node

UNREACHABLE = "node.kubernetes.io/unreachable"
Json = dict[str, Any]


def cordoned(node: Node, closed: bool) -> Node:
    """The node marked unschedulable, with the taint that goes with the mark, or without both."""
    added = [{"key": CORDON_TAINT, "effect": terms.NO_SCHEDULE}] if closed else []
    marked = replace(node, spec=replace(node.spec, unschedulable=closed))
    return _with_taints(marked, lambda taint: taint["key"] == CORDON_TAINT, added)


def tainted(node: Node, key: str, value: str, effect: str) -> Node:
    """The node with a taint; one of the same key and effect is replaced."""
    added = {"key": key, "effect": effect} | ({"value": value} if value else {})
    return _with_taints(node, lambda taint: (taint["key"], taint["effect"]) == (key, effect), [added])


def untainted(node: Node, key: str, effect: str) -> Node:
    """The node without the taints of a key, of one effect where it is named."""
    return _with_taints(node, lambda taint: taint["key"] == key and effect in ("", taint["effect"]), [])


def lost(node: Node) -> Node:
    """The node as the node lifecycle controller marks it once nobody hears of it."""
    conditions = [one for one in node.status.conditions or () if one.type != "Ready"]
    conditions.append(Condition("Ready", "Unknown", "NodeStatusUnknown"))
    silent = replace(node, status=replace(node.status, conditions=conditions))
    added = [{"key": UNREACHABLE, "effect": effect} for effect in (terms.NO_SCHEDULE, terms.NO_EXECUTE)]
    return _with_taints(silent, lambda taint: taint["key"] == UNREACHABLE, added)


def labelled(node: Node, key: str, value: str | None) -> Node:
    """The node with a label, None removes it."""
    with faults_of(f"Node {node.metadata.name}"):
        labels = terms.labels(bytes(node.metadata.labels))
    kept = {name: given for name, given in labels.items() if name != key}
    new = kept if value is None else {**kept, key: value}
    return replace(node, metadata=replace(node.metadata, labels=k8s.raw(new)))


def taints_of(node: Node) -> tuple[terms.Taint, ...]:
    """The taints of a node."""
    with faults_of(f"Node {node.metadata.name}"):
        return terms.taints(bytes(node.spec.taints))


def _with_taints(node: Node, drop: Callable[[Json], bool], added: list[Json]) -> Node:
    taints_of(node)  # so that what follows may rely on its shape
    kept = [taint for taint in msgspec.json.decode(node.spec.taints) or () if not drop(taint)]
    return replace(node, spec=replace(node.spec, taints=k8s.raw([*kept, *added])))
