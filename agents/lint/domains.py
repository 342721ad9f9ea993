"""Checks of numbers: more replicas than domains, spread constraints that leave no room, minDomains without effect.

In: a view. Out: complaints; `CHECKS` is the table. Only labels and lasting taints decide which domains there are: how
full nodes are is not looked at, so what is found here can never work.
"""

from collections import defaultdict
from collections.abc import Iterator
from math import inf

import numpy as np

from underhost.agents.compiled.classes import HONOR, IGNORE
from underhost.agents.compiled.domains import BoolArray
from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, Complaint, plural
from underhost.agents.lint.parts import ANTI_AFFINITY, SPREAD_CONSTRAINT, Place
from underhost.agents.lint.subjects import DAEMON_SET, JOB
from underhost.agents.lint.view import Reach, View
from underhost.agents.site.selectors import Selector


def replicas_exceed_domains(view: View) -> Iterator[Complaint]:
    """More replicas than domains, each of which may hold one; workloads that share a term count together."""
    sharing: defaultdict[tuple[str, Selector | None, Selector | None], list[Place]] = defaultdict(list)
    for place, _ in separating(view, ANTI_AFFINITY):
        sharing[(place.key, place.exact, place.loose)].append(place)
    for (key, _, _), places in sharing.items():
        groups = [[one] for one in places]
        found = [group for group in groups if _wanted(group) > _room(view, key, group)]
        if not found and len(places) > 1 and _wanted(places) > _room(view, key, places):
            found = [places]
        for group in found:
            yield _too_many(view, key, group)


def _room(view: View, key: str, places: list[Place]) -> float:
    """How many pods the nodes in reach have domains for; without the key, a node takes any number."""
    reaches = {id(reach): reach for reach in (view.reach(place.subject) for place in places)}
    if any(reach.without(key) for reach in reaches.values()):
        return inf
    if len(reaches) == 1:
        return next(iter(reaches.values())).domains(key)
    mask = np.logical_or.reduce([reach.eligible for reach in reaches.values()])
    return len(np.unique(view.codes(key)[mask]))


def _wanted(places: list[Place]) -> int:
    return sum({id(place.subject): place.subject.replicas for place in places}.values())


def _too_many(view: View, key: str, places: list[Place]) -> Complaint:
    domains, wanted, place = int(_room(view, key, places)), _wanted(places), places[0]
    names = list(dict.fromkeys(one.subject.name for one in places))
    what = f"{names[0]} wants {wanted} replicas" if len(names) == 1 else f"{f.listing(names)} want {wanted} replicas"
    if all(one.subject.kind == "Pod" for one in places):
        what = f"{f.listing(names)} want to be {wanted} pods"
    return Complaint(
        place.subject.object,
        f"{place.field}.topologyKey",
        f"{what}, each in a {key} of its own, and the nodes in reach have {plural(domains, 'domain')}: "
        f"{wanted - domains} can never be placed; use fewer replicas, or make the rule a preference.",
        place.rule,
        key,
    )


def spread_exceeds_domains(view: View) -> Iterator[Complaint]:
    """A DoNotSchedule constraint whose minimum stays 0, with more replicas than maxSkew allows in each domain."""
    for place, reach in separating(view, SPREAD_CONSTRAINT):
        one = place.constraint
        if one is None or not view.selects_only_own(place):
            continue
        wanted = place.subject.replicas
        if wanted <= one.max_skew * reach.domains(place.key):
            continue
        codes = view.codes(place.key)
        may = set(codes[reach.eligible & (codes >= 0)].tolist())
        counted = set(codes[_counted(view, place) & (codes >= 0)].tolist())
        empty, least = len(counted - may), one.min_domains or 1
        room = one.max_skew * len(may)
        if not may or (not empty and len(counted) >= least):
            continue
        why = (
            f"minDomains is {least} and there {'is' if len(counted) == 1 else 'are'} {len(counted)}"
            if len(counted) < least
            else f"{plural(empty, 'domain')} that they cannot use stay{'s' if empty == 1 else ''} empty and "
            f"{'is' if empty == 1 else 'are'} counted"
        )
        yield Complaint(
            place.subject.object,
            f"{place.field}.{'minDomains' if len(counted) < least else 'maxSkew'}",
            f"{place.subject.name} wants {wanted} replicas, at most {one.max_skew} in each {place.key}, because {why}: "
            f"{wanted - room} can never be placed; {_spread_remedy(len(counted) < least)}.",
            place.rule,
            place.key,
        )


def _spread_remedy(too_few: bool) -> str:
    if too_few:
        return "lower minDomains, or raise maxSkew"
    return "raise maxSkew, or set nodeTaintsPolicy and nodeAffinityPolicy to Honor"


def min_domains_without_effect(view: View) -> Iterator[Complaint]:
    """minDomains beside ScheduleAnyway."""
    for place in view.places:
        if place.constraint is not None and not place.required and place.constraint.min_domains is not None:
            yield Complaint(
                place.subject.object,
                f"{place.field}.minDomains",
                f"The {place.what} of {place.subject.name} sets minDomains, which the API server allows only with "
                "DoNotSchedule: use that, or leave minDomains out.",
                place.rule,
            )


def separating(view: View, form: str) -> Iterator[tuple[Place, Reach]]:
    """Required places that keep a workload's own replicas apart, and the nodes that these may use."""
    for subject, parsed in view.parts:
        if subject.kind in (DAEMON_SET, JOB):
            continue  # one for each node; and a Job's pods may wait for their turn
        for place in parsed.places:
            if place.form == form and place.required and place.key and not place.others and view.selects_own(place):
                reach = view.reach(subject)
                if reach.some:
                    yield place, reach


def _counted(view: View, place: Place) -> BoolArray:
    """The nodes whose domains count for the minimum, by the two inclusion policies."""
    one, reach = place.constraint, view.reach(place.subject)
    mask = np.ones(len(view.model.nodes), bool)
    if one is None or one.node_affinity_policy != IGNORE:
        mask &= reach.selected
    if one is not None and one.node_taints_policy == HONOR:
        mask &= reach.tolerated
    for other in view.parsed(place.subject).places:
        if other.form == SPREAD_CONSTRAINT and other.required and other.key:
            mask &= view.codes(other.key) >= 0
    return mask


_PTS = "pkg/scheduler/framework/plugins/podtopologyspread"
CHECKS = (
    Check(
        "replicas-exceed-domains",
        f.UNSATISFIABLE,
        "required anti-affinity with more replicas than domains",
        "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (satisfyPodAntiAffinity)",
        replicas_exceed_domains,
    ),
    Check(
        "spread-exceeds-domains",
        f.UNSATISFIABLE,
        "a DoNotSchedule constraint leaves no room for all replicas",
        f"{_PTS}/filtering.go (minMatchNum), common.go (matchNodeInclusionPolicies)",
        spread_exceeds_domains,
    ),
    Check(
        "min-domains-without-effect",
        f.UNSATISFIABLE,
        "minDomains beside ScheduleAnyway",
        "pkg/apis/core/validation/validation.go (validateMinDomains)",
        min_domains_without_effect,
    ),
)
