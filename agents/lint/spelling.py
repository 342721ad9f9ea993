"""Fields that are spelled with the wrong capitals: the API server refuses them, or drops them in silence.

In: what a person wrote, as plain JSON values. Out: the places of such fields and their right spelling. Only the fields
that decide a placement, and the way to them, are known here; others are left alone.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Tree = Mapping[str, Any]  # a field to the fields below it; [tree] for a list of objects; None for anything

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_EXPRESSIONS: list[Tree] = [{"key": None, "operator": None, "values": None}]
SELECTOR: Tree = {"matchLabels": None, "matchExpressions": _EXPRESSIONS}
_NODE_TERM: Tree = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_TERM: Tree = {
    "labelSelector": SELECTOR,
    "topologyKey": None,
    "namespaces": None,
    "namespaceSelector": SELECTOR,
    "matchLabelKeys": None,
    "mismatchLabelKeys": None,
}
_POD_AFFINITY: Tree = {_REQUIRED: [_TERM], _PREFERRED: [{"weight": None, "podAffinityTerm": _TERM}]}
AFFINITY: Tree = {
    "nodeAffinity": {
        _REQUIRED: {"nodeSelectorTerms": [_NODE_TERM]},
        _PREFERRED: [{"weight": None, "preference": _NODE_TERM}],
    },
    "podAffinity": _POD_AFFINITY,
    "podAntiAffinity": _POD_AFFINITY,
}
SPREAD: list[Tree] = [
    {
        "maxSkew": None,
        "minDomains": None,
        "topologyKey": None,
        "whenUnsatisfiable": None,
        "labelSelector": SELECTOR,
        "matchLabelKeys": None,
        "nodeAffinityPolicy": None,
        "nodeTaintsPolicy": None,
    }
]
TOLERATIONS: list[Tree] = [
    {"key": None, "operator": None, "value": None, "effect": None, "tolerationSeconds": None},
]
POD_SPEC: Tree = {
    "affinity": AFFINITY,
    "nodeSelector": None,
    "nodeName": None,
    "tolerations": TOLERATIONS,
    "topologySpreadConstraints": SPREAD,
    "schedulerName": None,
    "priorityClassName": None,
    "schedulingGates": None,
    "hostNetwork": None,
}
BUDGET_SPEC: Tree = {
    "minAvailable": None,
    "maxUnavailable": None,
    "selector": SELECTOR,
    "unhealthyPodEvictionPolicy": None,
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


def misspelled(value: object, tree: Tree | list[Tree] | None, at: str) -> Iterator[Misspelled]:
    """Every field below `at` that is known but for its capitals."""
    if isinstance(tree, list):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from misspelled(item, tree[0], f"{at}[{index}]")
    elif tree is not None and isinstance(value, dict):
        known = {name.lower(): name for name in tree}
        for key, below in value.items():
            right = known.get(key.lower())
            if right is None:
                continue
            if key != right:
                yield Misspelled(f"{at}.{key}", right)
            yield from misspelled(below, tree[right], f"{at}.{key}")
