"""DaemonSets: on which nodes one runs, and what its controller adds to each pod.

In: a pod spec as plain JSON values, nodes. Source: pkg/controller/daemon/daemon_controller.go `NodeShouldRunDaemonPod`
and util/daemonset_util.go.
"""

from typing import Any

from underhost.agents.manifests.parts import Json
from underhost.agents.site import terms
from underhost.agents.site.selectors import IN, matches
from underhost.schemas import kubernetes as k8s

_TOLERATED = (
    ("not-ready", terms.NO_EXECUTE),
    ("unreachable", terms.NO_EXECUTE),
    ("disk-pressure", terms.NO_SCHEDULE),
    ("memory-pressure", terms.NO_SCHEDULE),
    ("pid-pressure", terms.NO_SCHEDULE),
    ("unschedulable", terms.NO_SCHEDULE),
)


def daemon_spec(spec: Json, node: str = "") -> Json:
    """The pod spec with the controller's tolerations; with a node, pinned to it (that replaces the node affinity)."""
    given, affinity = spec.get("tolerations") or [], spec.get("affinity") or {}
    if not isinstance(given, list) or not isinstance(affinity, dict):
        return spec  # the engine names the fault when it reads the pod
    tolerated = [*_TOLERATED, *([("network-unavailable", terms.NO_SCHEDULE)] if spec.get("hostNetwork") else [])]
    tolerations = list(given)
    for name, effect in tolerated:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    made = {**spec, "tolerations": tolerations}
    if node:
        field = {"key": terms.NODE_NAME_FIELD, "operator": IN, "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        preferences = affinity.get("nodeAffinity") or {}
        made["affinity"] = {**affinity, "nodeAffinity": {**preferences, terms.REQUIRED: required}}
    return made


def runs_on(pod: k8s.Pod, node: k8s.Node) -> bool:
    """Whether the controller makes a pod for the node: node name, nodeSelector, required affinity and taints allow it.

    Raises Fault where one of these parts is wrong.
    """
    spec = pod.spec
    labels = terms.labels(bytes(node.metadata.labels))
    if spec.node_name and spec.node_name != node.metadata.name:
        return False
    if not terms.meets(labels, terms.labels(bytes(spec.node_selector), "spec.nodeSelector")):
        return False
    affinity = terms.affinity(bytes(spec.affinity)).node_affinity
    if affinity is not None and affinity.required is not None:
        wanted = affinity.required.node_selector_terms or []
        if not any(_meets_term(term, node.metadata.name, labels) for term in wanted):
            return False
    tolerations = terms.tolerations(bytes(spec.tolerations))
    blocking = (t for t in terms.taints(bytes(node.spec.taints)) if t.effect in (terms.NO_SCHEDULE, terms.NO_EXECUTE))
    return all(terms.tolerates(tolerations, taint.key, taint.value or "", taint.effect) for taint in blocking)


def pinned_to(pod: k8s.Pod) -> str:
    """The node that a DaemonSet's pod is meant for, "" if it names none."""
    affinity = terms.affinity(bytes(pod.spec.affinity)).node_affinity
    wanted = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else None
    for term in wanted or []:
        for field in term.match_fields or []:
            if field.key == terms.NODE_NAME_FIELD and field.operator == IN and field.values:
                return field.values[0]
    return ""


def _meets_term(term: terms.NodeSelectorTerm, name: str, labels: dict[str, str]) -> bool:
    parsed: Any = terms.node_requirements(term)
    if term.empty or isinstance(parsed, str):
        return False
    expressions, fields = parsed
    return matches(expressions, labels) and matches(fields, {terms.NODE_NAME_FIELD: name})
