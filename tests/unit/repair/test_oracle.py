"""The evictor's plans against brute force: each step mends, breaks nothing, and none that is possible is left out."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sites.repairable import a_cluster

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.repair.evictable import EvictionTerms, why_never
from underhost.agents.repair.evictions import Fact, Repair, Repairs, badness_of, facts_of
from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Pod

OPTIONS = Options()
TERMS = EvictionTerms(schedulers=frozenset({"default-scheduler", "underhost"}))


def plan(site: Snapshot) -> list[Repair]:
    """The plan, judged by the evaluator that stays, as in the pipeline."""
    resident = Evaluator(OPTIONS)
    report = resident.update(site)
    found = Repairs(site, report, resident, TERMS).of(report.findings)
    return [each for each in found if isinstance(each, Repair)]


def moved(site: Snapshot, pod: str, node: str) -> Snapshot:
    was = site.pods[pod]
    spec = msgspec.structs.replace(was.spec, node_name=node)
    return replace(site, pods={**site.pods, pod: msgspec.structs.replace(was, spec=spec)})


def facts(site: Snapshot) -> frozenset[Fact]:
    return facts_of(check(site, OPTIONS).findings)


def is_own(site: Snapshot, fact: Fact) -> bool:
    """Whether the rule is the pod's own: no other pod has any, or none that came later is there."""
    _, rule, *_, pod = fact
    mine = site.pods[pod]
    came = mine.metadata.creation_timestamp or ""
    if rule in ("NodeResourcesFit", "NodePorts"):
        pods = {key: one for key, one in site.pods.items() if (one.metadata.creation_timestamp or "") <= came}
    else:
        pods = {key: one if key == pod else unruly(one) for key, one in site.pods.items()}
    return fact in facts(replace(site, pods=pods))


def unruly(pod: Pod) -> Pod:
    """The pod without terms of its own."""
    bare = msgspec.structs.replace(pod.spec, affinity=EMPTY_OBJECT, topology_spread_constraints=EMPTY_LIST)
    return msgspec.structs.replace(pod, spec=bare)


def helpful(site: Snapshot, pod: str) -> Iterator[str]:
    """Every node on which the pod, made anew, mends what it breaks: all nodes are tried, and none may be worse."""
    now = facts(site)
    mine = {fact for fact in now if fact[-1] == pod and fact[0] in TERMS.severities and is_own(site, fact)}
    verdicts = explain(site, OPTIONS, [pod]).pods[pod].nodes
    feasible = [name for name, verdict in verdicts.items() if verdict.feasible]
    if site.pods[pod].spec.scheduler_name == "underhost":  # which takes the best, and no other
        feasible = sorted(feasible, key=lambda name: _rank(verdicts[name], name))[:1]
    then = {node: facts(moved(site, pod, node)) for node in feasible}
    if site.pods[pod].spec.scheduler_name != "underhost" and any(
        badness_of(one) > badness_of(now) for one in then.values()
    ):
        return
    yield from (node for node, one in then.items() if one < now and mine - one)


def _rank(verdict: object, name: str) -> tuple[int, int, str]:
    return getattr(verdict, "physical_conflicts", 0), -getattr(verdict, "total", 0), name


@settings(max_examples=2000, derandomize=True, database=None)
@given(st.integers(0, 2**40))
def test_a_plan_mends_and_breaks_nothing(seed: int) -> None:
    site = a_cluster(seed)
    repairs = plan(site)
    after = site
    for each in repairs:
        assert why_never(site, site.pods[each.candidate.pod], TERMS) is None
        assert after.pods[each.candidate.pod].spec.node_name == each.candidate.node
        after = moved(after, each.candidate.pod, each.to)
    assert len({each.candidate.pod for each in repairs}) == len(repairs)
    if repairs:
        assert facts(after) < facts(site)


@pytest.mark.parametrize("seed", range(150))
def test_each_step_is_a_feasible_one_and_no_step_is_left_out(seed: int) -> None:
    site = a_cluster(seed)
    while repairs := plan(site):
        for each in repairs:
            assert each.to in set(helpful(site, each.candidate.pod))
            site = moved(site, each.candidate.pod, each.to)
    left = {fact[-1] for fact in facts(site) if fact[0] in TERMS.severities}
    able = sorted(pod for pod in left if why_never(site, site.pods[pod], TERMS) is None)
    assert {pod: list(helpful(site, pod)) for pod in able} == {pod: [] for pod in able}
