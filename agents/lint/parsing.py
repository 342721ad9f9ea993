"""Parses the placement rules of subjects, each with the field where it stands.

In: the raw parts of a subject. Out: its `Rules`, with one `PodRule` for each term between pods and each spread
constraint. Faults of shape (an unknown operator, a text for a number) are raised as everywhere; a part whose fields are
misspelled is taken as absent: that is reported.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TypeVar

import msgspec

from underhost.agents.lint.spelling import POD_SPEC, Misspelled, misspelled
from underhost.agents.lint.subjects import AFFINITY_TERM, ANTI_AFFINITY, SPREAD_CONSTRAINT, PodRule, Rules, Subject
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.selectors import EXISTS
from underhost.agents.site.terms import PREFERRED, REQUIRED

T = TypeVar("T")


class RuleParser:
    """Parses subjects; equal raw parts once."""

    def __init__(self) -> None:
        self._affinity, self._tolerations = cache(terms.affinity), cache(terms.tolerations)
        self._spread = cache(terms.spread_constraints)
        self._node_selector = cache(partial(terms.labels, field="spec.nodeSelector"))
        self._misspelled = cache(_misspelled)

    def parse(self, subject: Subject) -> Rules:
        """The rules of one subject. Raises BadObjectError that names it and the field."""
        try:
            return self._parse(subject)
        except Fault as fault:
            field = f"{subject.at.removesuffix('spec')}{fault.field}"
            raise Fault(field, fault.message).within(subject.object) from None

    def _parse(self, subject: Subject) -> Rules:
        parts, rules = subject.parts, Rules()

        def read(name: str, raw: bytes, parse: Callable[[bytes], T], absent: T) -> T:
            wrong = self._misspelled(name, raw) if subject.by_hand else []  # no API server lets such a field through
            rules.misspelled += wrong
            try:
                return parse(raw)
            except Fault:
                if wrong:
                    return absent
                raise

        affinity = read("affinity", parts.affinity, self._affinity, terms.Affinity())
        rules.tolerations = read("tolerations", parts.tolerations, self._tolerations, ())
        spread: tuple[terms.SpreadConstraint, ...] = read("topologySpreadConstraints", parts.spread, self._spread, ())
        rules.node_selector = self._node_selector(parts.node_selector)
        node = affinity.node_affinity
        if node is not None:
            if node.required is not None:
                rules.node_terms = tuple(node.required.node_selector_terms or ())
                rules.node_key = msgspec.json.encode(rules.node_terms)
            rules.preferred_node = tuple(node.preferred or ())
        labels = subject.template_labels
        rules.labels = terms.labels(min(subject.labels, default=b"{}") if labels is None else labels)
        rules.between_pods += _terms(subject, affinity, rules.labels)
        rules.between_pods += [_constraint(subject, index, one) for index, one in enumerate(spread)]
        rules.between_pods = _each_once(rules.between_pods)
        return rules


def _misspelled(name: str, raw: bytes) -> list[Misspelled]:
    return list(misspelled(msgspec.json.decode(raw), POD_SPEC[name], name))


def _terms(subject: Subject, affinity: terms.Affinity, labels: dict[str, str]) -> Iterator[PodRule]:
    sides = (
        (AFFINITY_TERM, "podAffinity", affinity.pod_affinity),
        (ANTI_AFFINITY, "podAntiAffinity", affinity.pod_anti_affinity),
    )
    for form, name, side in sides:
        if side is not None:
            listed = f"{subject.at}.affinity.{name}"
            for index, term in enumerate(side.required or ()):
                yield _term(subject, form, f"{listed}.{REQUIRED}", index, term, labels)
            for index, one in enumerate(side.preferred or ()):
                yield _term(subject, form, f"{listed}.{PREFERRED}", index, one.pod_affinity_term, labels, one.weight)


def _term(
    subject: Subject,
    form: str,
    listed: str,
    index: int,
    term: terms.PodAffinityTerm,
    labels: dict[str, str],
    weight: int | None = None,
) -> PodRule:
    selector, spaces = term.label_selector, term.namespace_selector
    rule = PodRule(subject, form, weight is None, listed, index, term.topology_key, selector is None, weight)
    at = f"spec{rule.field.removeprefix(subject.at)}"
    rule.requirements = None if selector is None else selector.requirements(f"{at}.labelSelector")
    rule.namespaces = term.namespaces or ()
    rule.spaces = None if spaces is None else spaces.requirements(f"{at}.namespaceSelector")
    excluded = msgspec.json.decode(term.mismatch_label_keys)
    rule.others = isinstance(excluded, list) and any(isinstance(key, str) and key in labels for key in excluded)
    return rule


def _constraint(subject: Subject, index: int, one: terms.SpreadConstraint) -> PodRule:
    selector, requirements = one.label_selector, None
    if selector is not None:
        requirements = selector.requirements(f"spec.topologySpreadConstraints[{index}].labelSelector")
        if not requirements and one.match_label_keys:  # with the pod's own values these become its selector
            requirements = tuple((key, EXISTS, ()) for key in one.match_label_keys)
    return PodRule(
        subject=subject,
        form=SPREAD_CONSTRAINT,
        required=one.when_unsatisfiable == terms.DO_NOT_SCHEDULE,
        listed=f"{subject.at}.topologySpreadConstraints",
        index=index,
        key=one.topology_key,
        null=selector is None,
        requirements=requirements or None,
        constraint=one,
    )


def _each_once(rules: Iterable[PodRule]) -> list[PodRule]:
    """The rules without those that say the same as one before them."""
    told: dict[str, PodRule] = {}
    for rule in rules:
        told.setdefault(repr(rule.says), rule)  # a selector of a constraint is a mapping
    return list(told.values())
