"""Evictions wait while DRS is about to move VMs for rules of ours, and not for ever."""

from collections.abc import Sequence

import pytest
from support.build import HOST, a_node, a_pod, a_site, a_workload, term
from trust.scope.search import explored
from trust.scope.world import Load, Story

from underhost.agents.drs.names import rule_name
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.sinks.drs.decider import NeededRules
from underhost.agents.sinks.evictions.decider import EvictionDecider, terms_of
from underhost.agents.sinks.evictions.drs_first import PATIENCE, DrsFirst
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.vsphere import DrsRule
from underhost.streams.settings.sinks import EvictionSettings

NAME = rule_name("default", "shop.db")


def a_rule(*nodes: str, type_: str = "anti-affinity", name: str = NAME) -> DrsRule:
    return DrsRule(name, type_, [f"vm-{node}" for node in nodes], cluster="C0")


def site(hosts: Sequence[str], *rules: DrsRule) -> Snapshot:
    """`db-0` and `db-1`, apart by node, on n1 and n2; n3 is free. `hosts` is the host of each node."""
    names = [f"n{number}" for number in range(1, len(hosts) + 1)]
    pods = [
        a_pod(f"db-{number}").labels(app="db").owned_by("ReplicaSet/db").apart(term(HOST, {"app": "db"})).on(node)
        for number, node in enumerate(names[:2])
    ]
    found = a_site(
        *map(a_node, names), *pods, a_workload("ReplicaSet", "db", 2), on=dict(zip(names, hosts, strict=True))
    )
    return Snapshot(**{**vars(found), "rules": {(rule.cluster, rule.name): rule for rule in rules}})


def drs_first() -> DrsFirst:
    return DrsFirst("default", NeededRules(Evaluator(Options()), Options()))


@pytest.mark.parametrize(
    ("picture", "waits"),
    [
        (site("abc", a_rule("n1", "n2")), False),
        (site("aac", a_rule("n1", "n2")), True),
        (site("abc"), True),
        (site("abc", a_rule("n1", "n2", "n3")), True),
        (site("abc", a_rule("n1", "n2", name=rule_name("default", "shop.old"))), False),
        (site("abc", a_rule("n1", "n2"), a_rule("n1", "n2", type_="affinity", name="theirs")), False),
        (site("abc", a_rule("n1", "n2"), a_rule(type_="other", name=rule_name("default", "shop.hosts"))), False),
    ],
    ids=[
        "all as it should be",
        "VMs are to be parted",
        "to be written",
        "to be changed",
        "another name",
        "another's rule",
        "a VM-Host rule, even by our name",
    ],
)
def test_evictions_wait_while_something_is_left_for_drs(picture: Snapshot, waits: bool) -> None:
    assert drs_first().until(picture, 100.0) == (100.0 + PATIENCE if waits else 100.0)


@pytest.mark.parametrize(
    ("hosts", "waits"),
    [
        pytest.param("abcde", False, id="all VMs are on hosts of their own"),
        pytest.param("aabcd", True, id="two of three VMs of the first rule share one"),
        pytest.param("abcdd", True, id="the VMs of the second share one"),
        pytest.param(["a", "", "", "b", "c"], False, id="where two VMs are is not known"),
    ],
)
def test_one_pair_of_vms_of_one_rule_is_enough_to_wait_for(hosts: Sequence[str], waits: bool) -> None:
    rules = a_rule("n1", "n2", "n3", "gone", "too"), a_rule("n4", "n5", name=rule_name("default", "shop.web"))
    drs = DrsFirst("default", lambda picture: list(picture.rules.values()))
    assert (drs.until(site(hosts, *rules), 100.0) > 100.0) is waits


def test_drs_that_does_not_move_is_waited_for_ten_minutes_and_then_no_more() -> None:
    drs, stuck, done = drs_first(), site("aac", a_rule("n1", "n2")), site("abc", a_rule("n1", "n2"))
    assert [drs.until(stuck, now) for now in (0.0, 599.0, 700.0)] == [600.0, 600.0, 700.0]
    assert drs.until(done, 800.0) == 800.0
    assert drs.until(stuck, 900.0) == 1500.0


def test_a_pod_is_evicted_for_a_shared_host_only_if_drs_has_not_parted_the_vms() -> None:
    settings, stuck = EvictionSettings(wait=0), site("aac", a_rule("n1", "n2"))
    terms = terms_of(settings, binds=False)
    decider = EvictionDecider(settings, terms, Evaluator(Options()), drs_until=drs_first().until, now=0.0)
    assert decider.decide(stuck, 0.0) == []
    assert decider.due == PATIENCE
    assert [action.target for action in decider.decide(stuck, PATIENCE)] == ["pod/shop/db-0"]


@pytest.mark.parametrize(
    "story",
    [
        Story(3, 2, (Load(2, "apart by host"), Load(1, "with a on a host")), 5, ours=False, drs=True),
        Story(3, 3, (Load(1, "apart by node"), Load(3, "apart by host")), 2, ours=False, drs=True),
        Story(2, 3, (Load(2, "apart by node"), Load(3, "apart by host")), 2, ours=True, drs=True),
    ],
    ids=str,
)
def test_no_pod_is_left_without_a_place_because_drs_moved_vms_after_its_eviction(story: Story) -> None:
    account = explored(story)
    assert (account.endless, account.worse) == ([], [])
