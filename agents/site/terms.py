"""The raw parts of pods and nodes, parsed: affinity, tolerations, spread constraints, taints, label selectors.

In: raw JSON as `schemas.kubernetes` keeps it. Out: typed, frozen values. What a part means for a placement is left to
the rules; here only its shape is checked. Raises Fault with the path of the wrong value.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Struct

from underhost.agents.site.fault import Fault, decode, shown
from underhost.agents.site.selectors import EXISTS, IN, NODE_OPERATORS, NOT_IN, Requirement, integer, label_requirements
from underhost.schemas.kubernetes import is_label_value

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
PASSING_TAINTS = (
    "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cluster.x-k8s.io/", "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
)  # fmt: skip
"""What the keys of taints begin with that the control plane, a cloud provider or an autoscaler sets and takes away."""
DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
NODE_NAME_FIELD = "metadata.name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Part(Struct, frozen=True, rename="camel"):
    """Base: frozen, camelCase on the wire, unknown fields dropped."""


class LabelExpression(_Part, frozen=True):
    """matchExpressions[] of a label or node selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(_Part, frozen=True):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelExpression] | None = None

    def requirements(self, field: str) -> tuple[Requirement, ...]:
        """All of them; () is the selector that matches everything."""
        expressions = [(e.key, e.operator, e.values or ()) for e in self.match_expressions or ()]
        return label_requirements(self.match_labels, expressions, field)


class PodAffinityTerm(_Part, frozen=True):
    """One term of pod affinity or anti-affinity. A null labelSelector matches no pod.

    `mismatch_label_keys` is raw: the API server has merged it into the selector, only lint looks at it.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    mismatch_label_keys: msgspec.Raw = msgspec.Raw(b"null")


class WeightedPodAffinityTerm(_Part, frozen=True):
    """A preferred term."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(_Part, frozen=True):
    """podAffinity and podAntiAffinity."""

    required: list[PodAffinityTerm] | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(default=None, name=PREFERRED)


class NodeSelectorTerm(_Part, frozen=True):
    """A term of node affinity: expressions and fields, ANDed; an empty term matches nothing."""

    match_expressions: list[LabelExpression] | None = None
    match_fields: list[LabelExpression] | None = None

    @property
    def empty(self) -> bool:
        """Neither expressions nor fields."""
        return not self.match_expressions and not self.match_fields


class PreferredSchedulingTerm(_Part, frozen=True):
    """A preferred term of node affinity."""

    weight: Int32
    preference: NodeSelectorTerm


class NodeSelector(_Part, frozen=True):
    """The required part of node affinity: terms, ORed."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(_Part, frozen=True):
    """nodeAffinity."""

    required: NodeSelector | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(default=None, name=PREFERRED)


class Affinity(_Part, frozen=True):
    """spec.affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(_Part, frozen=True):
    """spec.tolerations[]."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class SpreadConstraint(_Part, frozen=True):
    """spec.topologySpreadConstraints[]."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Taint(_Part, frozen=True):
    """spec.taints[] of a node."""

    key: str
    effect: str
    value: str | None = None


class Image(_Part, frozen=True):
    """status.images[] of a node."""

    names: list[str] | None = None
    size_bytes: Int64 = 0


_LABELS = msgspec.json.Decoder(dict[str, str] | None)
_AFFINITY = msgspec.json.Decoder(Affinity | None)
_TOLERATIONS = msgspec.json.Decoder(list[Toleration] | None)
_SPREAD = msgspec.json.Decoder(list[SpreadConstraint] | None)
_TAINTS = msgspec.json.Decoder(list[Taint] | None)
_IMAGES = msgspec.json.Decoder(list[Image] | None)
_SELECTOR = msgspec.json.Decoder(LabelSelector | None)
_TOLERATION_OPERATORS = (None, "", "Equal", "Exists", "Lt", "Gt")
_POLICIES = (None, "Honor", "Ignore")


def labels(raw: bytes, field: str = "metadata.labels") -> dict[str, str]:
    """An object of strings."""
    return decode(raw, _LABELS, field) or {}


def readable_labels(raw: msgspec.Raw) -> Mapping[str, str]:
    """An object's labels for those who act on what they say; none where they cannot be read, which judging it says."""
    try:
        return labels(bytes(raw))
    except Fault:
        return {}


def affinity(raw: bytes) -> Affinity:
    """spec.affinity, its node terms' operators checked."""
    found = decode(raw, _AFFINITY, "spec.affinity") or Affinity()
    node = found.node_affinity
    if node is not None:
        required = (node.required.node_selector_terms if node.required is not None else None) or []
        for at, term in enumerate(required):
            place = f"{REQUIRED}.nodeSelectorTerms[{at}]"
            _check_operators(term, f"spec.affinity.nodeAffinity.{place}")
        for at, preferred in enumerate(node.preferred or ()):
            place = f"{PREFERRED}[{at}].preference"
            _check_operators(preferred.preference, f"spec.affinity.nodeAffinity.{place}")
    return found


def tolerations(raw: bytes) -> tuple[Toleration, ...]:
    """spec.tolerations."""
    found = tuple(decode(raw, _TOLERATIONS, "spec.tolerations") or ())
    for at, one in enumerate(found):
        _one_of(one.operator, _TOLERATION_OPERATORS, f"spec.tolerations[{at}].operator")
        _one_of(one.effect, (None, "", *EFFECTS), f"spec.tolerations[{at}].effect")
        if not one.key and one.operator != EXISTS:
            raise Fault(f"spec.tolerations[{at}].operator", "must be Exists where the key is empty")
    return found


def spread_constraints(raw: bytes) -> tuple[SpreadConstraint, ...]:
    """spec.topologySpreadConstraints."""
    found = tuple(decode(raw, _SPREAD, "spec.topologySpreadConstraints") or ())
    for at, one in enumerate(found):
        place = f"spec.topologySpreadConstraints[{at}]"
        _one_of(one.when_unsatisfiable, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY), f"{place}.whenUnsatisfiable")
        _one_of(one.node_affinity_policy, _POLICIES, f"{place}.nodeAffinityPolicy")
        _one_of(one.node_taints_policy, _POLICIES, f"{place}.nodeTaintsPolicy")
        if one.max_skew < 1:
            raise Fault(f"{place}.maxSkew", f"must be greater than zero, this is {one.max_skew}")
        if one.min_domains is not None and one.min_domains < 1:
            raise Fault(f"{place}.minDomains", f"must be greater than zero, this is {one.min_domains}")
    return found


def taints(raw: bytes) -> tuple[Taint, ...]:
    """spec.taints of a node."""
    found = tuple(decode(raw, _TAINTS, "spec.taints") or ())
    for at, taint in enumerate(found):
        _one_of(taint.effect, EFFECTS, f"spec.taints[{at}].effect")
    return found


def images(raw: bytes) -> list[Image]:
    """status.images of a node."""
    return decode(raw, _IMAGES, "status.images") or []


def label_selector(raw: bytes, field: str) -> tuple[Requirement, ...] | None:
    """A workload's or budget's selector; None is the null selector, () the empty one."""
    found = decode(raw, _SELECTOR, field)
    return None if found is None else found.requirements(field)


def node_requirements(term: NodeSelectorTerm) -> tuple[tuple[Requirement, ...], tuple[Requirement, ...]] | str:
    """A node selector term's requirements on labels and on fields, or the reason why upstream cannot parse it.

    The API server lets such terms through; upstream takes a required one for no match and fails on a preferred one.
    """
    expressions = [(e.key, e.operator, tuple(e.values or ())) for e in term.match_expressions or ()]
    for key, operator, values in expressions:
        fault = _node_expression_fault(operator, values)
        if fault:
            return f"{key}: {fault}"
    fields = [(e.key, e.operator, tuple(e.values or ())) for e in term.match_fields or ()]
    for key, operator, values in fields:
        if operator not in (IN, NOT_IN) or len(values) != 1:
            return f"{key}: Invalid value: must have one element"
    return tuple(expressions), tuple(fields)


def _node_expression_fault(operator: str, values: tuple[str, ...]) -> str:
    if operator in (IN, NOT_IN) and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        if integer(values[0]) is None:
            return f"Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
    for value in values:
        if not is_label_value(value):
            return f'Invalid value: "{value}": a valid label value is expected'
    return ""


def _check_operators(term: NodeSelectorTerm, field: str) -> None:
    for part, expressions in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
        for at, expression in enumerate(expressions or ()):
            _one_of(expression.operator, NODE_OPERATORS, f"{field}.{part}[{at}].operator")


def _one_of(value: str | None, allowed: tuple[str | None, ...], field: str) -> None:
    if value not in allowed:
        raise Fault(field, f"{shown(value)} is none of {', '.join(str(one) for one in allowed if one)}")


def tolerates(all_tolerations: tuple[Toleration, ...], key: str, value: str, effect: str) -> bool:
    """Whether one of the tolerations tolerates the taint.

    `Gt` and `Lt` tolerate nothing: their feature gate is off in the default profile.
    """
    for one in all_tolerations:
        if one.effect and one.effect != effect:
            continue
        if one.key and one.key != key:
            continue
        if one.operator == EXISTS or (one.operator in (None, "", "Equal") and (one.value or "") == value):
            return True
    return False


def written(taint: Taint) -> str:
    """`key=value:Effect`, as kubectl writes it; without a value `key:Effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def meets(node_labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether labels contain a nodeSelector or a Service's selector."""
    return all(node_labels.get(key) == value for key, value in wanted.items())
