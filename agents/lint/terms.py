"""Checks of terms between pods and of spread constraints: what they select, and their weights.

In: a view. Out: complaints; `CHECKS` is the table. What the input lacks is held against a term only where the input is
a whole cluster; a manifest may well name pods that another file makes.
"""

from collections.abc import Iterator
from functools import partial

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, Complaint
from underhost.agents.lint.parts import AFFINITY_TERM, ANTI_AFFINITY, PREFERRED, SPREAD_CONSTRAINT, Place
from underhost.agents.lint.view import View
from underhost.agents.rules.node_affinity import NAME as NODE_AFFINITY
from underhost.agents.rules.separation import INTER_POD_AFFINITY

LEAST_WEIGHT, MOST_WEIGHT = 1, 100


def selector_null(view: View, required: bool) -> Iterator[Complaint]:
    """A term without a selector matches no pod; a spread constraint with `{}` counts none either."""
    for place in view.places:
        if place.required != required or place.requirements is not None:
            continue
        what = "no labelSelector, which matches no pod" if place.null else "an empty labelSelector, which counts no pod"
        yield Complaint(
            place.subject.object,
            f"{place.field}.labelSelector",
            f"The {place.what} of {place.subject.name} has {what}, so {_no_effect(place)}: "
            "give it the labels of the pods that are meant.",
            place.rule,
        )


def _no_effect(place: Place) -> str:
    if place.form == AFFINITY_TERM and place.required:
        return place.subject.stuck
    return "it has no effect"


def weights(view: View) -> Iterator[Complaint]:
    """Weights outside 1-100."""
    for subject, parsed in view.parts:
        found = [
            (f"{one.listed}[{_index(one)}].weight", one.weight, one.rule)
            for one in parsed.places
            if one.weight is not None
        ]
        at = f"{subject.at}.affinity.nodeAffinity.{PREFERRED}"
        found += [(f"{at}[{n}].weight", one.weight, NODE_AFFINITY) for n, one in enumerate(parsed.preferred_node)]
        for field, weight, rule in found:
            if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
                yield Complaint(
                    subject.object,
                    field,
                    f"A preference of {subject.name} has the weight {weight}, which the API server refuses: "
                    f"use {LEAST_WEIGHT} to {MOST_WEIGHT}.",
                    rule,
                )


def _index(place: Place) -> str:
    return place.field.removeprefix(place.listed)[1:].partition("]")[0]


def anti_affinity_selects_nothing(view: View) -> Iterator[Complaint]:
    """A required anti-affinity that matches neither its own pods nor any other of the input."""
    for place in view.places:
        if place.form != ANTI_AFFINITY or not place.required or not _judged(view, place) or view.selects_any(place):
            continue
        own = _own_labels(place)
        if not view.whole and not (own and view.telling):
            continue  # a manifest by itself, with a selector that is meant for others
        hint = f"its pods have {own}" if own else "no pod has these labels"
        yield Complaint(
            place.subject.object,
            f"{place.field}.labelSelector",
            f"The required anti-affinity of {place.subject.name} selects no pod of the input, not even its own, "
            f"so it keeps nothing apart: {hint}; select the labels of the pods that are meant.",
            place.rule,
        )


def preference_selects_nothing(view: View) -> Iterator[Complaint]:
    """A preferred term that matches no pod of the cluster."""
    for place in view.places:
        if place.form == SPREAD_CONSTRAINT or place.required or not _judged(view, place):
            continue
        if view.whole and not view.selects_any(place):
            yield Complaint(
                place.subject.object,
                f"{place.field}.labelSelector",
                f"The {place.what} of {place.subject.name} selects no pod of the cluster, so it has no effect: "
                "select the labels of the pods that are meant, or leave it out.",
                place.rule,
            )


def spread_misses_own(view: View) -> Iterator[Complaint]:
    """A spread constraint whose selector does not match the pods that carry it."""
    for place in view.places:
        if place.form != SPREAD_CONSTRAINT or not _judged(view, place) or view.selects_own(place):
            continue
        own = _own_labels(place)
        yield Complaint(
            place.subject.object,
            f"{place.field}.labelSelector",
            f"The {place.what} of {place.subject.name} does not select its own pods, so they are never counted and "
            f"may all share a domain: select their labels{f' ({own})' if own else ''}.",
            place.rule,
        )


def affinity_unmet(view: View, whole: bool) -> Iterator[Complaint]:
    """Required affinity that no pod of the input meets, and that the pod cannot meet by itself as the first one."""
    if view.whole != whole or not view.telling:
        return
    for subject, parsed in view.parts:
        terms = [one for one in parsed.places if one.form == AFFINITY_TERM and one.required]
        if not terms or any(not _judged(view, one) for one in terms) or all(view.selects_own(one) for one in terms):
            continue
        nothing = [one for one in terms if not view.selects_any(one)]
        for place in nothing:
            yield Complaint(
                subject.object,
                f"{place.field}.labelSelector",
                f"The required affinity of {subject.name} selects no pod of the input{_where(place)}, so "
                f"{subject.stuck}: select the labels of pods that are there.",
                place.rule,
            )
        if not nothing and not _one_meets_all(view, terms):
            yield Complaint(
                subject.object,
                terms[0].listed,
                f"No pod of the input matches all {len(terms)} required affinity terms of {subject.name} at once, as "
                f"one must, so {subject.stuck}: make the terms select the same pods.",
                INTER_POD_AFFINITY,
            )


def _one_meets_all(view: View, terms: list[Place]) -> bool:
    matched = [view.matched(one) for one in terms]
    return any(frozenset.intersection(*side) for side in zip(*matched, strict=True))


def _where(place: Place) -> str:
    names = place.term.namespaces if place.term is not None else None
    return f" in {f.listing(sorted(names))}" if names else ""


def _judged(view: View, place: Place) -> bool:
    """Whether it can be told what the place's selector is to match."""
    return place.requirements is not None and not place.others and place.subject.replicas > 0


def _own_labels(place: Place) -> str:
    """The pods' own labels under the selector's keys, where they have all of these keys."""
    labels = place.own_labels
    keys = [name for name, _, _ in place.requirements or ()]
    if not keys or any(key not in labels for key in keys):
        return ""
    return ", ".join(f"{key}={labels[key]}" for key in keys)


_IPA = "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go"
_PTS = "pkg/scheduler/framework/plugins/podtopologyspread"
_VALIDATION = "pkg/apis/core/validation/validation.go"
CHECKS = (
    Check(
        "selector-null",
        f.UNSATISFIABLE,
        "a required rule has no selector, or one that counts no pod",
        f"staging/src/k8s.io/api/core/v1/types.go (PodAffinityTerm), {_PTS}/common.go (countPodsMatchSelector)",
        partial(selector_null, required=True),
    ),
    Check(
        "preferred-selector-null",
        f.DRIFT,
        "a preference has no selector, or one that counts no pod",
        f"staging/src/k8s.io/api/core/v1/types.go (PodAffinityTerm), {_PTS}/common.go (countPodsMatchSelector)",
        partial(selector_null, required=False),
    ),
    Check("weight-out-of-range", f.UNSATISFIABLE, "the weight is not in 1-100", _VALIDATION, weights),
    Check(
        "anti-affinity-selects-nothing",
        f.DRIFT,
        "a required anti-affinity selects neither its own pods nor others",
        f"{_IPA} (updateWithAntiAffinityTerms)",
        anti_affinity_selects_nothing,
    ),
    Check(
        "preference-selects-nothing",
        f.DRIFT,
        "a preferred term selects no pod",
        "pkg/scheduler/framework/plugins/interpodaffinity/scoring.go",
        preference_selects_nothing,
    ),
    Check(
        "spread-misses-own-pods",
        f.DRIFT,
        "a spread constraint does not select its own pods",
        f"{_PTS}/filtering.go (Filter: selfMatchNum)",
        spread_misses_own,
    ),
    Check(
        "affinity-unmet",
        f.UNSATISFIABLE,
        "no pod of the cluster meets the required affinity",
        f"{_IPA} (satisfyPodAffinity)",
        partial(affinity_unmet, whole=True),
    ),
    Check(
        "affinity-unmet-here",
        f.DRIFT,
        "no pod of the manifests meets the required affinity",
        f"{_IPA} (satisfyPodAffinity)",
        partial(affinity_unmet, whole=False),
    ),
)
