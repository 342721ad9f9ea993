"""Checks of terms between pods and of spread constraints: what they select, and their weights.

In: a view. Out: complaints; `CHECKS` is the table. What the input lacks is held against a term only where the input is
a whole cluster; a manifest may well name pods that another file makes.
"""

from collections.abc import Iterable, Iterator

from underhost.agents.affinity.separation import INTER_POD_AFFINITY
from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, preferences, required_rules, rules, subjects
from underhost.agents.lint.subjects import (
    AFFINITY_TERM,
    ANTI_AFFINITY,
    SPREAD_CONSTRAINT,
    Complaint,
    PodRule,
    Subject,
)
from underhost.agents.lint.view import View
from underhost.agents.rules.node_affinity import NAME as NODE_AFFINITY
from underhost.agents.site.terms import PREFERRED
from underhost.schemas.severities import DRIFT, UNSATISFIABLE

LEAST_WEIGHT, MOST_WEIGHT = 1, 100


def selector_null(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A term without a selector matches no pod; a spread constraint with `{}` counts none either."""
    if rule.requirements is not None:
        return
    what = "no labelSelector, which matches no pod" if rule.null else "an empty labelSelector, which counts no pod"
    effect = rule.subject.stuck if rule.form == AFFINITY_TERM and rule.required else "it has no effect"
    yield rule.complaint(
        "labelSelector",
        f"The {rule.what} of {rule.subject.name} has {what}, so {effect}: "
        "give it the labels of the pods that are meant.",
    )


def weights(view: View, subject: Subject) -> Iterator[Complaint]:
    """Weights outside 1-100."""
    found = [(f"{one.listed}[{one.index}]", one.weight, one.plugin) for one in subject.rules.between_pods]
    at = f"{subject.at}.affinity.nodeAffinity.{PREFERRED}"
    found += [(f"{at}[{n}]", one.weight, NODE_AFFINITY) for n, one in enumerate(subject.rules.preferred_node)]
    for field, weight, plugin in found:
        if weight is not None and not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            yield Complaint(
                subject.object,
                f"{field}.weight",
                f"A preference of {subject.name} has the weight {weight}, which the API server refuses: "
                f"use {LEAST_WEIGHT} to {MOST_WEIGHT}.",
                plugin,
            )


def meant_for_own(view: View) -> Iterable[PodRule]:
    """The required anti-affinities whose selector asks for labels that their own pods have with other values."""
    every = (rule for rule in required_rules(view) if rule.form == ANTI_AFFINITY)
    return (rule for rule in every if _own_labels(rule) and not rule.namespaces and rule.spaces is None)


def meant_for_others(view: View) -> Iterable[PodRule]:
    """The other ones: whom they keep away may yet come."""
    own = set(map(id, meant_for_own(view)))
    return (rule for rule in required_rules(view) if rule.form == ANTI_AFFINITY and id(rule) not in own)


def anti_affinity_selects_nothing(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A required anti-affinity that matches neither its own pods nor any other of the input."""
    if not _selects_nothing(view, rule):
        return
    own = _own_labels(rule)
    hint = f"its pods have {own}" if own else "no pod has these labels"
    yield rule.complaint(
        "labelSelector",
        f"The required anti-affinity of {rule.subject.name} selects no pod of the input, not even its own, "
        f"so it keeps nothing apart: {hint}; select the labels of the pods that are meant.",
    )


def preference_selects_nothing(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A preferred term that matches no pod of the input."""
    if rule.form != SPREAD_CONSTRAINT and _selects_nothing(view, rule):
        own = _own_labels(rule) if rule.form == ANTI_AFFINITY else ""
        hint = f"its pods have {own}; " if own else ""
        yield rule.complaint(
            "labelSelector",
            f"The {rule.what} of {rule.subject.name} selects no pod of the {'cluster' if view.whole else 'input'}, so "
            f"it has no effect: {hint}select the labels of the pods that are meant, or leave it out.",
        )


def _selects_nothing(view: View, rule: PodRule) -> bool:
    """Whether the rule selects nothing, and that may be held against it: a manifest's may be meant for other files.

    Where its own pods carry the selector's keys, other values are a slip.
    """
    if not _judged(rule) or rule.selects_any:
        return False
    return view.whole or (rule.form == ANTI_AFFINITY and bool(_own_labels(rule)) and view.telling)


def spread_misses_own(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A spread constraint whose selector does not match the pods that carry it."""
    if rule.form == SPREAD_CONSTRAINT and _judged(rule) and not rule.selects_own:
        own = _own_labels(rule)
        yield rule.complaint(
            "labelSelector",
            f"The {rule.what} of {rule.subject.name} does not select its own pods, so they are never counted and "
            f"may all share a domain: select their labels{f' ({own})' if own else ''}.",
        )


def of_cluster(view: View) -> Iterable[Subject]:
    """The subjects of an input that is a whole cluster."""
    return view.subjects if view.whole else ()


def of_manifests(view: View) -> Iterable[Subject]:
    """The subjects of manifests that make all the pods there are."""
    return view.subjects if view.telling and not view.whole else ()


def affinity_unmet(view: View, subject: Subject) -> Iterator[Complaint]:
    """Required affinity that no pod of the input meets, and that the pod cannot meet by itself as the first one."""
    terms = [one for one in subject.rules.between_pods if one.form == AFFINITY_TERM and one.required]
    if not all(_judged(one) for one in terms) or all(one.selects_own for one in terms):
        return
    nothing = [one for one in terms if not one.selects_any]
    for rule in nothing:
        where = f" in {f.listing(sorted(rule.namespaces))}" if rule.namespaces else ""
        yield rule.complaint(
            "labelSelector",
            f"The required affinity of {subject.name} selects no pod of the input{where}, so "
            f"{subject.stuck}: select the labels of pods that are there.",
        )
    sides = zip(*(one.selected for one in terms), strict=True)  # one pod, or one template, must meet all terms
    if not nothing and not any(frozenset.intersection(*side) for side in sides):
        yield Complaint(
            subject.object,
            terms[0].listed,
            f"No pod of the input matches all {len(terms)} required affinity terms of {subject.name} at once, as "
            f"one must, so {subject.stuck}: make the terms select the same pods.",
            INTER_POD_AFFINITY,
        )


def _judged(rule: PodRule) -> bool:
    """Whether it can be told what the rule's selector is to match."""
    return rule.requirements is not None and not rule.others and rule.subject.replicas > 0


def _own_labels(rule: PodRule) -> str:
    """The pods' own labels under the selector's keys, where they have all of these keys."""
    labels = rule.subject.rules.labels
    keys = [name for name, _, _ in rule.requirements or ()]
    return ", ".join(f"{key}={labels[key]}" for key in keys) if all(key in labels for key in keys) else ""


_IPA = "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go"
_SCORING = "pkg/scheduler/framework/plugins/interpodaffinity/scoring.go"
_PTS = "pkg/scheduler/framework/plugins/podtopologyspread"
_NULL = f"staging/src/k8s.io/api/core/v1/types.go (PodAffinityTerm), {_PTS}/common.go (countPodsMatchSelector)"
_API = "pkg/apis/core/validation/validation.go"
CHECKS = (
    Check("selector-null", UNSATISFIABLE, "a required rule has no selector, or one that counts no pod", _NULL,
          required_rules, selector_null),
    Check("preferred-selector-null", DRIFT, "a preference has no selector, or one that counts no pod", _NULL,
          preferences, selector_null),
    Check("weight-out-of-range", UNSATISFIABLE, "the weight is not in 1-100", _API, subjects, weights),
    Check("anti-affinity-selects-nothing", UNSATISFIABLE, "a required anti-affinity misses its own pods, and others",
          f"{_IPA} (updateWithAntiAffinityTerms)", meant_for_own, anti_affinity_selects_nothing),
    Check("anti-affinity-to-nobody", DRIFT, "a required anti-affinity selects neither its own pods nor others",
          f"{_IPA} (updateWithAntiAffinityTerms)", meant_for_others, anti_affinity_selects_nothing),
    Check("preference-selects-nothing", DRIFT, "a preferred term selects no pod", _SCORING, preferences,
          preference_selects_nothing),
    Check("spread-misses-own-pods", DRIFT, "a spread constraint does not select its own pods",
          f"{_PTS}/filtering.go (Filter: selfMatchNum)", rules, spread_misses_own),
    Check("affinity-unmet", UNSATISFIABLE, "no pod of the cluster meets the required affinity",
          f"{_IPA} (satisfyPodAffinity)", of_cluster, affinity_unmet),
    Check("affinity-unmet-here", DRIFT, "no pod of the manifests meets the required affinity",
          f"{_IPA} (satisfyPodAffinity)", of_manifests, affinity_unmet),
)  # fmt: skip
