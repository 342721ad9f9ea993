"""The table of plans, and what the oracle forbids."""

from typing import Any

import pytest
from trust.sieve.oracle import Written, forbidden
from trust.sieve.plans import INTERMEDIATE, LONG, PLANS, STALE, UNDISTURBED, UNOBSERVED, Withhold
from trust.sieve.stories import STORIES, Story

from underhost.streams.kubernetes.kinds import KINDS

POD = "/api/v1/namespaces/s/pods/db-0"
NODE = "/api/v1/nodes/s-n1"
HOST_LABEL = "node.cluster.x-k8s.io/esxi-host"
NOTHING = Story(1, (), evictions=(0,), bindings=(0,))
ONCE = Story(1, (), evictions=(1,), bindings=(1,))


def test_there_are_over_three_hundred_plans_of_all_three_kinds() -> None:
    regimes = [plan.regime for plan in PLANS]
    assert [plan.number for plan in PLANS] == list(range(len(PLANS)))
    assert len(PLANS) >= 300
    assert min(regimes.count(regime) for regime in (INTERMEDIATE, UNOBSERVED, STALE)) >= 80
    assert {plan.story for plan in PLANS if plan.regime == UNDISTURBED} == STORIES.keys() - {"passing"}
    assert len({(plan.story, plan.fault) for plan in PLANS}) == len(PLANS), "no plan is there twice"


def test_every_plan_names_a_story_its_steps_and_kinds_that_are_watched() -> None:
    steps = {(story, step.name) for story, told in STORIES.items() for step in told.steps[1:]}
    assert {plan.story for plan in PLANS} == STORIES.keys()
    withheld = [(plan.story, plan.fault) for plan in PLANS if isinstance(plan.fault, Withhold)]
    assert {(story, fault.step) for story, fault in withheld} == {one for one in steps if one[0] in LONG} | {
        ("hasty", "hasty")
    }
    assert {kind for _, fault in withheld for kind in fault.kinds} <= {kind.plural for kind in KINDS} | {"vcenter"}


def write(verb: str, path: str, body: Any = None) -> Written:
    return Written(verb, path, body)


def eviction(uid: str = "u1") -> Written:
    return write("create", f"{POD}/eviction", {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {})


def binding(uid: str = "u1") -> Written:
    return write("create", f"{POD}/binding", {"metadata": {"uid": uid} if uid else {}})


def labels(host: str, uid: str = "n") -> Written:
    return write("patch", NODE, {"metadata": {"labels": {HOST_LABEL: host}, **({"uid": uid} if uid else {})}})


def taints(*tests: dict[str, str]) -> Written:
    return write("patch", NODE, [*tests, {"op": "remove", "path": "/spec/taints"}])


OF_THE_NODE = {"op": "test", "path": "/metadata/uid", "value": "n"}


@pytest.mark.parametrize(
    ("writes", "story", "wrong"),
    [
        ([eviction(), binding()], ONCE, []),
        ([labels("a"), taints(OF_THE_NODE)], NOTHING, []),
        ([write("delete", POD)], NOTHING, [f"delete {POD}"]),
        ([eviction(), eviction("u2"), binding()], ONCE, ["2 evictions instead of 1: ['db-0 u1', 'db-0 u2']"]),
        ([eviction()], ONCE, ["0 bindings instead of 1: []"]),
        ([eviction(""), binding()], ONCE, ["the eviction of db-0 names no uid"]),
        ([eviction(), binding("")], ONCE, ["the binding of db-0 names no uid"]),
        ([labels("b")], NOTHING, ["n1 is labelled b, where its VM has never been"]),
        ([labels("a", "")], NOTHING, ["the labels of n1 are changed whatever its uid"]),
        ([taints()], NOTHING, ["the taints of n1 are changed whatever its uid"]),
        ([taints(OF_THE_NODE)], NOTHING, ["the taint of n1 has gone before its labels were there"]),
    ],
    ids=[
        "as the story says",
        "the taint goes after the labels",
        "a deletion",
        "another eviction",
        "a binding is missing",
        "an eviction of whatever pod",
        "a binding of whatever pod",
        "a host of before the VM's time",
        "labels of whatever node",
        "taints of whatever node",
        "the taint first",
    ],
)
def test_what_no_order_of_events_excuses_is_found(writes: list[Written], story: Story, wrong: list[str]) -> None:
    assert forbidden(writes, "s", story, {"n1": {"a"}}) == wrong


def test_what_was_evicted_twice_is_found() -> None:
    wrong = forbidden([eviction(), eviction(), binding()], "s", ONCE, {})
    assert wrong == ["db-0 u1 was evicted 2 times", "2 evictions instead of 1: ['db-0 u1']"]
