"""A subject's rules, parsed, each with the place where it stands.

In: the raw parts of a subject. Out: `Parsed`, with one `Place` for each term between pods and each spread constraint.
Faults of shape (an unknown operator, a text for a number) are raised as everywhere; a part whose fields are misspelled
is taken as absent: that is reported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from underhost.agents.lint.spelling import AFFINITY, SPREAD, TOLERATIONS, Misspelled, misspelled
from underhost.agents.lint.subjects import Subject
from underhost.agents.rules.separation import INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.selectors import Requirement, Selector

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
AFFINITY_TERM, ANTI_AFFINITY, SPREAD_CONSTRAINT = "affinity", "anti-affinity", "spread constraint"
T = TypeVar("T")


@dataclass(eq=False)
class Place:
    """A term of pod affinity or anti-affinity, or a spread constraint.

    Attributes:
        form: AFFINITY_TERM, ANTI_AFFINITY or SPREAD_CONSTRAINT; required: whether it can refuse a node.
        field: where it is; listed: the list that it is in. rule: the upstream plugin that reads it.
        key: its topologyKey. requirements: of its selector; None where that can match no pod (null; `{}` in a spread).
        null: whether there is no selector at all.
        own_labels: the labels of its pods. others: whether mismatchLabelKeys exclude the pods' own kind.
        spaces: of its namespaceSelector, None where it has none.
        term, constraint: as parsed, one of them None. exact, loose: its selector, set by the view.
    """

    subject: Subject
    form: str
    required: bool
    field: str
    listed: str
    key: str
    requirements: tuple[Requirement, ...] | None
    null: bool
    own_labels: dict[str, str]
    spaces: tuple[Requirement, ...] | None = None
    others: bool = False
    weight: int | None = None
    term: terms.PodAffinityTerm | None = None
    constraint: terms.SpreadConstraint | None = None
    exact: Selector | None = None
    loose: Selector | None = None

    @property
    def rule(self) -> str:
        """The upstream plugin."""
        return POD_TOPOLOGY_SPREAD if self.form == SPREAD_CONSTRAINT else INTER_POD_AFFINITY

    @property
    def what(self) -> str:
        """As a sentence names it: `required anti-affinity`, `DoNotSchedule spread constraint`."""
        if self.constraint is not None:
            return f"{self.constraint.when_unsatisfiable} {self.form}"
        return f"{'required' if self.required else 'preferred'} {self.form}"


@dataclass
class Parsed:
    """The rules of a subject.

    `node_terms` is None where there is no required node affinity; equal `node_key` means equal `node_terms`.
    """

    node_selector: dict[str, str] = field(default_factory=dict)
    node_terms: tuple[terms.NodeSelectorTerm, ...] | None = None
    preferred_node: tuple[terms.PreferredSchedulingTerm, ...] = ()
    node_key: bytes = b""
    tolerations: tuple[terms.Toleration, ...] = ()
    places: list[Place] = field(default_factory=list)
    misspelled: list[Misspelled] = field(default_factory=list)


class Parser:
    """Parses subjects; equal raw parts once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Any] = {}
        self._by_hand = False

    def parse(self, subject: Subject) -> Parsed:
        """The rules of one subject. Raises BadObjectError that names it and the field."""
        try:
            return self._parse(subject)
        except Fault as fault:
            place = fault.field.removeprefix("spec")
            raise Fault(f"{subject.at}{place}", fault.message).within(subject.object) from None

    def _parse(self, subject: Subject) -> Parsed:
        parts, found = subject.parts, Parsed()
        self._by_hand = subject.by_hand
        affinity = self._part(found, "affinity", parts.affinity, AFFINITY, terms.affinity, terms.Affinity())
        found.tolerations = self._part(found, "tolerations", parts.tolerations, TOLERATIONS, terms.tolerations, ())
        none: tuple[terms.SpreadConstraint, ...] = ()
        spread = self._part(found, "topologySpreadConstraints", parts.spread, SPREAD, terms.spread_constraints, none)
        found.node_selector = self._once(
            "nodeSelector", parts.node_selector, lambda raw: terms.labels(raw, "spec.nodeSelector")
        )
        node = affinity.node_affinity
        if node is not None:
            if node.required is not None:
                found.node_terms = tuple(node.required.node_selector_terms or ())
                found.node_key = msgspec.json.encode(found.node_terms)
            found.preferred_node = tuple(node.preferred or ())
        labels = _labels(subject)
        found.places += self._terms(subject, affinity, labels)
        found.places += [_constraint(subject, at, one, labels) for at, one in enumerate(spread)]
        return found

    def _part(self, found: Parsed, name: str, raw: bytes, tree: Any, parse: Callable[[bytes], T], absent: T) -> T:
        """A part; where it has misspelled fields these are kept, and what cannot be read for them is absent."""
        wrong = []
        if self._by_hand:  # no API server lets such a field through
            wrong = self._once(f"spelling of {name}", raw, lambda data: list(misspelled(_json(data), tree, name)))
        found.misspelled += wrong
        try:
            return self._once(name, raw, parse)
        except Fault:
            if wrong:
                return absent
            raise

    def _once(self, name: str, raw: bytes, parse: Callable[[bytes], T]) -> T:
        key = (name, raw)
        if key not in self._known:
            self._known[key] = parse(raw)
        value: T = self._known[key]
        return value

    def _terms(self, subject: Subject, affinity: terms.Affinity, labels: dict[str, str]) -> Iterator[Place]:
        sides = (
            (AFFINITY_TERM, "podAffinity", affinity.pod_affinity),
            (ANTI_AFFINITY, "podAntiAffinity", affinity.pod_anti_affinity),
        )
        for form, name, side in sides:
            if side is None:
                continue
            raws = self._once("terms", subject.parts.affinity, _json)[name]
            listed = f"{subject.at}.affinity.{name}.{REQUIRED}"
            for at, term in enumerate(side.required or ()):
                raw = raws[REQUIRED][at]
                yield _term(subject, form, term, f"{listed}[{at}]", listed, raw, labels)
            listed = f"{subject.at}.affinity.{name}.{PREFERRED}"
            for at, weighted in enumerate(side.preferred or ()):
                raw = raws[PREFERRED][at]["podAffinityTerm"]
                one = weighted.pod_affinity_term
                place = _term(subject, form, one, f"{listed}[{at}].podAffinityTerm", listed, raw, labels)
                place.required, place.weight = False, weighted.weight
                yield place


def _term(
    subject: Subject,
    form: str,
    term: terms.PodAffinityTerm,
    at: str,
    listed: str,
    raw: dict[str, Any],
    labels: dict[str, str],
) -> Place:
    selector, spaces = term.label_selector, term.namespace_selector
    field = f"spec{at.removeprefix(subject.at)}"
    return Place(
        subject=subject,
        form=form,
        required=True,
        field=at,
        listed=listed,
        key=term.topology_key,
        requirements=None if selector is None else selector.requirements(f"{field}.labelSelector"),
        null=selector is None,
        own_labels=labels,
        spaces=None if spaces is None else spaces.requirements(f"{field}.namespaceSelector"),
        others=any(key in labels for key in _strings(raw.get("mismatchLabelKeys"))),
        term=term,
    )


def _constraint(subject: Subject, at: int, one: terms.SpreadConstraint, labels: dict[str, str]) -> Place:
    listed = f"{subject.at}.topologySpreadConstraints"
    selector, requirements = one.label_selector, None
    if selector is not None:
        requirements = selector.requirements(f"spec.topologySpreadConstraints[{at}].labelSelector")
        if not requirements and one.match_label_keys:  # with the pod's own values these become its selector
            requirements = tuple((key, "Exists", ()) for key in one.match_label_keys)
    return Place(
        subject=subject,
        form=SPREAD_CONSTRAINT,
        required=one.when_unsatisfiable == terms.DO_NOT_SCHEDULE,
        field=f"{listed}[{at}]",
        listed=listed,
        key=one.topology_key,
        requirements=requirements or None,
        null=selector is None,
        own_labels=labels,
        constraint=one,
    )


def _labels(subject: Subject) -> dict[str, str]:
    """The labels that the subject's pods have: the template's, or those of one of them."""
    raw = subject.template_labels
    return terms.labels(min(subject.labels, default=b"{}") if raw is None else raw)


def _json(raw: bytes) -> Any:
    return msgspec.json.decode(raw)


def _strings(value: object) -> Sequence[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else ()
