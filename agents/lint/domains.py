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
from underhost.agents.lint.checks import Check, plural, preferences
from underhost.agents.lint.subjects import ANTI_AFFINITY, DAEMON_SET, JOB, SPREAD_CONSTRAINT, Complaint, PodRule
from underhost.agents.lint.view import View
from underhost.agents.site.selectors import Selector
from underhost.agents.site.terms import SpreadConstraint
from underhost.schemas.severities import UNSATISFIABLE


def separating(view: View) -> Iterator[PodRule]:
    """Required rules that keep a workload's own replicas apart, where there are nodes that these may use."""
    for rule in view.rules:
        if rule.subject.kind in (DAEMON_SET, JOB):
            continue  # one for each node; and a Job's pods may wait for their turn
        apart = rule.form in (ANTI_AFFINITY, SPREAD_CONSTRAINT) and rule.required and bool(rule.key)
        if apart and not rule.others and rule.selects_own and view.reach(rule.subject).some:
            yield rule


def replicas_exceed_domains(view: View) -> Iterator[Complaint]:
    """More replicas than domains, each of which may hold one; workloads that share a term count together."""
    sharing: defaultdict[tuple[str, Selector | None, Selector | None], list[PodRule]] = defaultdict(list)
    for rule in separating(view):
        if rule.form == ANTI_AFFINITY:
            sharing[(rule.key, rule.exact, rule.loose)].append(rule)
    for rules in sharing.values():
        found = [[one] for one in rules if _wanted([one]) > _room(view, [one])]
        if not found and _wanted(rules) > _room(view, rules):
            found = [rules]
        for group in found:
            yield _too_many(view, group)


def _room(view: View, rules: list[PodRule]) -> float:
    """How many pods the nodes in reach have domains for; without the key, a node takes any number."""
    key = rules[0].key
    reaches = {id(reach): reach for reach in (view.reach(rule.subject) for rule in rules)}
    if any(reach.without(key) for reach in reaches.values()):
        return inf
    if len(reaches) == 1:
        return next(iter(reaches.values())).domains(key)
    mask = np.logical_or.reduce([reach.eligible for reach in reaches.values()])
    return len(np.unique(view.codes(key)[mask]))


def _wanted(rules: list[PodRule]) -> int:
    return sum({rule.subject: rule.subject.replicas for rule in rules}.values())


def _too_many(view: View, rules: list[PodRule]) -> Complaint:
    domains, wanted, rule = int(_room(view, rules)), _wanted(rules), rules[0]
    names = list(dict.fromkeys(one.subject.name for one in rules))
    what = f"{names[0]} wants {wanted} replicas" if len(names) == 1 else f"{f.listing(names)} want {wanted} replicas"
    if all(one.subject.kind == "Pod" for one in rules):
        what = f"{f.listing(names)} want to be {wanted} pods"
    return rule.complaint(
        "topologyKey",
        f"{what}, each in a {rule.key} of its own, and the nodes in reach have {plural(domains, 'domain')}: "
        f"{wanted - domains} can never be placed; use fewer replicas, or make the rule a preference.",
        rule.key,
    )


def spread_exceeds_domains(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A DoNotSchedule constraint whose minimum stays 0, with more replicas than maxSkew allows in each domain."""
    one, wanted = rule.constraint, rule.subject.replicas
    reach, codes = view.reach(rule.subject), view.codes(rule.key)
    if one is None or not rule.selects_only_own or wanted <= one.max_skew * reach.domains(rule.key):
        return
    may = set(codes[reach.eligible & (codes >= 0)].tolist())
    counted = set(codes[_counted(view, rule, one) & (codes >= 0)].tolist())
    empty, least, number = len(counted - may), one.min_domains or 1, len(counted)
    too_few = number < least
    if not may or not (empty or too_few):
        return
    if too_few:
        part, remedy = "minDomains", "lower minDomains, or raise maxSkew"
        why = f"minDomains is {least} and there {'is' if number == 1 else 'are'} {number}"
    else:
        part, remedy = "maxSkew", "raise maxSkew, or set nodeTaintsPolicy and nodeAffinityPolicy to Honor"
        verbs = ("stays", "is") if empty == 1 else ("stay", "are")
        why = f"{plural(empty, 'domain')} that they cannot use {verbs[0]} empty and {verbs[1]} counted"
    yield rule.complaint(
        part,
        f"{rule.subject.name} wants {wanted} replicas, at most {one.max_skew} in each {rule.key}, because {why}: "
        f"{wanted - one.max_skew * len(may)} can never be placed; {remedy}.",
        rule.key,
    )


def _counted(view: View, rule: PodRule, constraint: SpreadConstraint) -> BoolArray:
    """The nodes whose domains count for the minimum, by the two inclusion policies."""
    reach, mask = view.reach(rule.subject), np.ones(len(view.model.nodes), bool)
    if constraint.node_affinity_policy != IGNORE:
        mask &= reach.selected
    if constraint.node_taints_policy == HONOR:
        mask &= reach.tolerated
    for other in rule.subject.rules.between_pods:
        if other.form == SPREAD_CONSTRAINT and other.required and other.key:
            mask &= view.codes(other.key) >= 0
    return mask


def min_domains_without_effect(view: View, rule: PodRule) -> Iterator[Complaint]:
    """minDomains beside ScheduleAnyway."""
    if rule.constraint is not None and rule.constraint.min_domains is not None:
        yield rule.complaint(
            "minDomains",
            f"The {rule.what} of {rule.subject.name} sets minDomains, which the API server allows only with "
            "DoNotSchedule: use that, or leave minDomains out.",
        )


_IPA = "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (satisfyPodAntiAffinity)"
_PTS = "pkg/scheduler/framework/plugins/podtopologyspread"
_MINIMUM = f"{_PTS}/filtering.go (minMatchNum), common.go (matchNodeInclusionPolicies)"
_API = "pkg/apis/core/validation/validation.go (validateMinDomains)"
CHECKS = (
    Check("replicas-exceed-domains", UNSATISFIABLE, "required anti-affinity with more replicas than domains", _IPA,
          None, replicas_exceed_domains),
    Check("spread-exceeds-domains", UNSATISFIABLE, "a DoNotSchedule constraint leaves no room for all replicas",
          _MINIMUM, separating, spread_exceeds_domains),
    Check("min-domains-without-effect", UNSATISFIABLE, "minDomains beside ScheduleAnyway", _API, preferences,
          min_domains_without_effect),
)  # fmt: skip
