"""Random parts of pods in which the scheduler's rules have their traps: selectors, terms, spread, tolerations.

Called by `generate_pods.py`. What is made is what an API server would have stored: valid, with matchLabelKeys merged.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")

ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
TOPOLOGY_KEYS = (HOST, HOST, ZONE, ZONE, REGION, "rack", "nowhere", "kubernetes.io/os")
APPS = ("web", "db", "cache", "batch")
NAMESPACES = ("default", "team-a", "team-b", "team-c")
TAINTS = (
    ("dedicated", "gpu"), ("dedicated", "db"), ("spot", ""), ("maintenance", "true"), ("disk", "3"),
    ("node.kubernetes.io/not-ready", ""), ("node.kubernetes.io/memory-pressure", ""),
)  # fmt: skip
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SELECTED = {"app": APPS, "tier": ("front", "back", ""), "version": ("v1", "v2"), "absent": ("x",)}
LARGEST = "9223372036854775806"


class Chance(Random):
    """Random choices with short names.

    Attributes:
        stored: objects are as an API server has stored them; otherwise as their authors wrote them.
    """

    stored = True

    def often(self, share: float) -> bool:
        """True for this share of the calls."""
        return self.random() < share

    def some(self, items: Sequence[T], least: int, most: int) -> list[T]:
        """Between `least` and `most` different items."""
        return self.sample(list(items), min(len(items), self.randint(least, most)))


def selector(chance: Chance) -> Json | None:
    """A label selector: sometimes null (matches nothing), sometimes empty (matches everything)."""
    kind = chance.random()
    if kind < 0.05:
        return None
    if kind < 0.12:
        return {}
    made: Json = {}
    if chance.often(0.65):
        made["matchLabels"] = {"app": chance.choice(APPS)}
        if chance.often(0.15):
            made["matchLabels"]["tier"] = chance.choice(("front", "back"))
    if not made or chance.often(0.35):
        made["matchExpressions"] = [_expression(chance) for _ in range(chance.randint(1, 2))]
    return made


def _expression(chance: Chance) -> Json:
    operator, key = chance.choice(("In", "In", "NotIn", "Exists", "DoesNotExist")), chance.choice(tuple(SELECTED))
    made: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = chance.some(SELECTED[key], 1, 2)
    return made


def pod_term(chance: Chance, labels: Mapping[str, str]) -> Json:
    """A term of pod (anti-)affinity; often one that selects the pod itself."""
    term: Json = {"topologyKey": chance.choice(TOPOLOGY_KEYS)}
    chosen = selector(chance)
    if chance.often(0.4) and "app" in labels:
        chosen = {"matchLabels": {"app": labels["app"]}}
    scope = chance.random()
    if scope < 0.2:
        term["namespaces"] = chance.some((*NAMESPACES, "ghost"), 1, 2)
    if 0.15 < scope < 0.35:
        term["namespaceSelector"] = _namespace_selector(chance)
    if chosen is not None:
        term["labelSelector"] = chosen
        if chance.often(0.15):
            keys = chance.some(_unused(chosen, ("version", "pod-template-hash", "tier", "absent")), 1, 2)
            name, operator = chance.choice((("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
            if keys:
                term[name] = keys[:1]
                _merge(chance, chosen, labels, keys[:1], operator)
    return term


def _namespace_selector(chance: Chance) -> Json:
    """Without NotIn and DoesNotExist: there an incoming pod's selector matches everything (kubernetes#141526)."""
    return chance.choice(
        (
            {},
            {"matchLabels": {"env": "prod"}},
            {"matchLabels": {"env": "nope"}},
            {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
            {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}},
        )
    )


def _unused(chosen: Json, keys: Sequence[str]) -> list[str]:
    used = set(chosen.get("matchLabels", {})) | {one["key"] for one in chosen.get("matchExpressions", [])}
    return [key for key in keys if key not in used]


def _merge(chance: Chance, chosen: Json, labels: Mapping[str, str], keys: Sequence[str], operator: str) -> None:
    """As the API server does at creation: keys that the pod lacks are left out."""
    for key in keys:
        if key in labels and chance.stored:
            expressions = chosen.setdefault("matchExpressions", [])
            expressions.append({"key": key, "operator": operator, "values": [labels[key]]})


def node_term(chance: Chance, nodes: int, soft: bool = False) -> Json:
    """A term of node affinity, sometimes empty, sometimes by the node's name."""
    if chance.often(0.08):
        return {}
    term: Json = {}
    if chance.often(0.85):
        term["matchExpressions"] = [_node_expression(chance, soft) for _ in range(chance.randint(1, 2))]
    if not term or chance.often(0.12):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": chance.choice(("In", "In", "NotIn")),
                "values": [a_node_name(chance, nodes)],
            }
            for _ in range(chance.choice((1, 1, 1, 2)))
        ]
    return term


def a_node_name(chance: Chance, nodes: int) -> str:
    """The name of a node, or of one that is just not there."""
    return f"n{chance.randint(0, max(1, nodes)):02d}"


def _node_expression(chance: Chance, soft: bool) -> Json:
    sets = ("In", "NotIn", "Exists", "DoesNotExist")
    key, operators, values = chance.choice(
        (
            ("disktype", sets, ("ssd", "hdd", "")),
            (ZONE, sets, ("z1", "z2", "z3", "")),
            ("cpu-count", ("Gt", "Lt", "Gt", "Lt", "Exists"), ()),
            ("kubernetes.io/arch", ("In", "NotIn"), ("amd64", "arm64")),
            ("absent", ("NotIn", "DoesNotExist", "Exists", "Lt"), ("x",)),
            (HOST, ("In", "NotIn"), tuple(f"n{i:02d}" for i in range(6))),
        )
    )
    operator = chance.choice(operators)
    made: Json = {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        made["values"] = [chance.choice(("3", "4", "7", "0", LARGEST))]
        if chance.often(0.08):  # the API server lets these through (a negative one only where it is preferred)
            made["values"] = [chance.choice(("xyz", "1.5", "-5") if soft else ("xyz", "1.5"))]
    elif operator in ("In", "NotIn"):
        made["values"] = chance.some(values, 1, 2)
    return made


def toleration(chance: Chance) -> Json:
    """A toleration, sometimes of everything."""
    if chance.often(0.06):
        return {"operator": "Exists"}
    key, value = chance.choice(TAINTS)
    if chance.often(0.1):
        key, value = "node.kubernetes.io/unschedulable", ""
    made: Json = {"key": key}
    operator = chance.choice(("Equal", "Equal", "Exists", None))
    if operator:
        made["operator"] = operator
    if operator != "Exists":
        made["value"] = value if chance.often(0.7) else chance.choice(("gpu", "db", ""))
    effect = chance.choice(("NoSchedule", "PreferNoSchedule", "NoExecute", None, None))
    if effect:
        made["effect"] = effect
    if effect == "NoExecute" and chance.often(0.4):
        made["tolerationSeconds"] = 300
    return made


def spread_constraints(chance: Chance, labels: Mapping[str, str]) -> list[Json]:
    """One or two topologySpreadConstraints, no two of a kind for one key."""
    made: dict[tuple[str, str], Json] = {}
    for _ in range(chance.randint(1, 2)):
        when = chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        key = chance.choice((HOST, ZONE, ZONE, ZONE, "rack", "nowhere"))
        one: Json = {"maxSkew": chance.choice((1, 1, 1, 2, 5)), "topologyKey": key, "whenUnsatisfiable": when}
        chosen = selector(chance)
        if chance.often(0.6) and "app" in labels:
            chosen = {"matchLabels": {"app": labels["app"]}}
        if when == "DoNotSchedule" and chance.often(0.25):
            one["minDomains"] = chance.choice((1, 2, 3, 5))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if chance.often(0.3):
                one[policy] = chance.choice(("Honor", "Ignore"))
        if chosen is not None:
            one["labelSelector"] = chosen
            keys = chance.some(_unused(chosen, ("version", "pod-template-hash", "absent")), 1, 2)
            if keys and chance.often(0.2):
                one["matchLabelKeys"] = keys
                _merge(chance, chosen, labels, keys, "In")
        made.setdefault((when, key), one)
    return list(made.values())
