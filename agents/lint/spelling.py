"""Fields with the wrong capitals, or an s too many or too few: the API server refuses them, or drops them in silence.

In: what a person wrote, as plain JSON values. Out: the places of such fields and their right spelling. Only the fields
that decide a placement, and the way to them, are known here; others are left alone.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from underhost.agents.site.terms import PREFERRED, REQUIRED

Tree = Mapping[str, Any]  # a field to the fields below it; [tree] for a list of objects; None for anything


def _fields(*names: str) -> Tree:
    """Fields that may hold anything."""
    return dict.fromkeys(names)


_EXPRESSIONS = [_fields("key", "operator", "values")]
SELECTOR: Tree = {"matchLabels": None, "matchExpressions": _EXPRESSIONS}
_NODE_TERM: Tree = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_TERM: Tree = {
    **_fields("topologyKey", "namespaces", "matchLabelKeys", "mismatchLabelKeys"),
    "labelSelector": SELECTOR,
    "namespaceSelector": SELECTOR,
}
_POD_AFFINITY: Tree = {REQUIRED: [_TERM], PREFERRED: [{"weight": None, "podAffinityTerm": _TERM}]}
_NODE_AFFINITY: Tree = {
    REQUIRED: {"nodeSelectorTerms": [_NODE_TERM]},
    PREFERRED: [{"weight": None, "preference": _NODE_TERM}],
}
_SPREAD: Tree = {
    **_fields("maxSkew", "minDomains", "topologyKey", "whenUnsatisfiable"),
    **_fields("matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    "labelSelector": SELECTOR,
}
_CONTAINER: Tree = {"resources": _fields("requests", "limits", "claims")}
POD_SPEC: Tree = {
    **_fields("nodeSelector", "nodeName", "schedulerName", "priorityClassName", "schedulingGates", "hostNetwork"),
    "affinity": {"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY},
    "tolerations": [_fields("key", "operator", "value", "effect", "tolerationSeconds")],
    "topologySpreadConstraints": [_SPREAD],
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
}
BUDGET_SPEC: Tree = {
    **_fields("minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"),
    "selector": SELECTOR,
}
WORKLOAD_SPEC: Tree = {
    "replicas": None,
    "selector": SELECTOR,
    "template": {"metadata": {"labels": None}, "spec": POD_SPEC},
}


class Misspelled(NamedTuple):
    """`field` is where it is, below the root that was walked; `right` its name as the API has it."""

    field: str
    right: str


def meant(key: str, known: Mapping[str, str]) -> str | None:
    """The field that was meant; `known` are the fields by their names in small letters."""
    low = key.lower()
    return known.get(low) or known.get(f"{low}s") or (known.get(low[:-1]) if low.endswith("s") else None)


def misspelled(value: object, tree: Tree | list[Tree] | None, at: str) -> Iterator[Misspelled]:
    """Every field below `at` that is known but for its capitals, or for one s at its end."""
    if isinstance(tree, list):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from misspelled(item, tree[0], f"{at}[{index}]")
    elif tree is not None and isinstance(value, dict):
        known = {name.lower(): name for name in tree}
        for key, below in value.items():
            right = meant(key, known)
            if right is None:
                continue
            if key != right:
                yield Misspelled(f"{at}.{key}", right)
            yield from misspelled(below, tree[right], f"{at}.{key}")
