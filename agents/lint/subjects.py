"""What is linted: subjects with their placement rules, and what is said about them.

A subject is a pod template of the input, or the pods of one owner that are alike. Which subjects there are is found by
`collecting.py`; their rules are parsed by `parsing.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Raw

from underhost.agents.affinity.separation import INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD
from underhost.agents.lint.spelling import Misspelled
from underhost.agents.site import terms
from underhost.agents.site.selectors import Requirement, Selector

DAEMON_SET, JOB = "DaemonSet", "Job"
AFFINITY_TERM, ANTI_AFFINITY, SPREAD_CONSTRAINT = "affinity", "anti-affinity", "spread constraint"


class Complaint(NamedTuple):
    """Something wrong at `field` of `object`. `value` tells apart what one field may hold twice; part of the id."""

    object: str
    field: str
    message: str
    rule: str
    value: str = ""


class PodParts(NamedTuple):
    """The parts of a pod spec that say where it may run, as raw JSON; equal bytes mean equal meaning."""

    affinity: bytes = b"{}"
    node_selector: bytes = b"{}"
    tolerations: bytes = b"[]"
    spread: bytes = b"[]"


class Matched(NamedTuple):
    """Label sets of the input, by number: of pods, and of templates."""

    pods: frozenset[int] = frozenset()
    templates: frozenset[int] = frozenset()


NO_MATCH = Matched()


@dataclass(eq=False)
class PodRule:
    """A term of pod affinity or anti-affinity, or a spread constraint.

    Attributes:
        form: AFFINITY_TERM, ANTI_AFFINITY or SPREAD_CONSTRAINT; required: whether it can refuse a node.
        listed: the list that it is in; index: where in that list. weight: of a preferred term.
        key: its topologyKey. requirements: of its selector; None where that can match no pod (null; `{}` in a spread).
        null: whether there is no selector at all.
        namespaces: as the term names them. spaces: of its namespaceSelector, None where it has none.
        others: whether mismatchLabelKeys exclude the pods' own kind.
        constraint: as parsed, None for a term.
        exact, loose: its selector, without and with the labels that controllers add left out; selected: the label sets
            that these match. The view sets them.
    """

    subject: "Subject"
    form: str
    required: bool
    listed: str
    index: int
    key: str
    null: bool
    weight: int | None = None
    requirements: tuple[Requirement, ...] | None = None
    namespaces: Sequence[str] = ()
    spaces: tuple[Requirement, ...] | None = None
    others: bool = False
    constraint: terms.SpreadConstraint | None = None
    exact: Selector | None = None
    loose: Selector | None = None
    selected: Matched = NO_MATCH

    @property
    def field(self) -> str:
        """Where it is in its object."""
        return f"{self.listed}[{self.index}]{'' if self.weight is None else '.podAffinityTerm'}"

    @property
    def says(self) -> tuple[object, ...]:
        """All that it says, wherever it stands."""
        spaces = (tuple(self.namespaces), self.spaces, self.others)
        return (self.form, self.required, self.weight, self.key, self.null, self.requirements, *spaces, self.constraint)

    @property
    def plugin(self) -> str:
        """The upstream plugin that reads it."""
        return POD_TOPOLOGY_SPREAD if self.form == SPREAD_CONSTRAINT else INTER_POD_AFFINITY

    @property
    def what(self) -> str:
        """As a sentence names it: `required anti-affinity`, `DoNotSchedule spread constraint`."""
        if self.constraint is not None:
            return f"{self.constraint.when_unsatisfiable} {self.form}"
        return f"{'required' if self.required else 'preferred'} {self.form}"

    @property
    def selects_any(self) -> bool:
        """Whether its selector matches some pod or template of the input."""
        return any(self.selected)

    @property
    def selects_own(self) -> bool:
        """Whether its selector matches the pods that carry it."""
        return any(not one.isdisjoint(own) for one, own in zip(self.selected, self.subject.own, strict=True))

    @property
    def selects_only_own(self) -> bool:
        """Whether no pod of another subject, or without one, is matched."""
        return all(one <= own for one, own in zip(self.selected, self.subject.own, strict=True))

    def complaint(self, part: str, message: str, value: str = "", rule: str = "") -> Complaint:
        """A complaint about a part of it; `rule` where another one than its plugin judges it."""
        return Complaint(self.subject.object, f"{self.field}.{part}", message, rule or self.plugin, value)


@dataclass
class Rules:
    """The placement rules of a subject.

    Attributes:
        node_terms: of required node affinity, None where there is none. preferred_node: of preferred node affinity.
        node_key: equal for equal `node_terms`.
        labels: of the subject's pods. misspelled: fields that were not read for their capitals.
        between_pods: the terms of pod affinity and anti-affinity, and the spread constraints.
    """

    node_selector: dict[str, str] = field(default_factory=dict)
    node_terms: tuple[terms.NodeSelectorTerm, ...] | None = None
    preferred_node: tuple[terms.PreferredSchedulingTerm, ...] = ()
    node_key: bytes = b""
    tolerations: tuple[terms.Toleration, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    misspelled: list[Misspelled] = field(default_factory=list)
    between_pods: list[PodRule] = field(default_factory=list)


@dataclass(eq=False)
class Subject:
    """One template, or the pods of one owner that are alike.

    Attributes:
        object: `Kind/namespace/name`. at: where its pod spec is in it (`spec.template.spec`, `spec`).
        parts: the raw rules; rules: the same, parsed. template_labels: raw labels of the template, None where only pods
            are known. pod_parts: the raw rules of its pods.
        replicas: how many are wanted; the pods that there are where the owner is not in the input.
        adopts: what its selector asks of the labels of pods without a controller; none adopted where it is empty.
        labels: the raw labels of its pods; own: their label sets, set by the view. pods: their names; nodes: where they
            run.
        by_hand: whether it has never been in a cluster. written: its spec then, None for pods.
    """

    object: str
    kind: str
    namespace: str
    at: str
    parts: PodParts
    replicas: int
    template_labels: bytes | None = None
    adopts: tuple[Requirement, ...] | None = None
    by_hand: bool = False
    written: Raw | None = None
    rules: Rules = field(default_factory=Rules)
    labels: set[bytes] = field(default_factory=set)
    own: Matched = NO_MATCH
    pods: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    pod_parts: set[PodParts] = field(default_factory=set)

    @property
    def name(self) -> str:
        """As a sentence names it: `Deployment shop/db`."""
        return self.object.replace("/", " ", 1)

    @property
    def its_pods(self) -> str:
        """What is placed: the pod itself, or the pods of a workload."""
        return self.name if self.kind == "Pod" else f"the pods of {self.name}"

    @property
    def stuck(self) -> str:
        """That it cannot be placed, as the end of a sentence that has named it."""
        return "it cannot be placed" if self.kind == "Pod" else "none of its pods can be placed"

    def complaint(self, part: str, message: str, rule: str, value: str = "") -> Complaint:
        """A complaint about a part of its pod spec."""
        return Complaint(self.object, f"{self.at}.{part}", message, rule, value)
