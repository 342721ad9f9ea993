"""When the evictor evicts: within its caps, as budgets allow, and never in a loop."""

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from support.build import BudgetBuilder, a_budget, a_pod
from support.sites.town import Town, adversary

from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import Action, Finding, Outcome
from underhost.streams.settings.sinks import EvictionSettings

NOW = EvictionSettings(wait=0)
DAY = 86_400.0


def a_pair(zones: str = "aab", **more: object) -> Town:
    """Two replicas of `db` in zone a, and a free zone b."""
    town = Town(zones, **more)  # type: ignore[arg-type]
    town.workload("db", "n1", "n2")
    return town


def test_a_violation_is_repaired_by_one_eviction() -> None:
    town = a_pair()
    decider = town.decider()
    [action] = town.step(decider)
    assert (action.kind, action.target) == ("evict", "pod/shop/db-0")
    assert action.desired == {
        "uid": "db-0-1",
        "at": "2026-01-01T12:00:00.000Z",
        "node": "n1",
        "host": "node/n1",
        "to": "n3",
        "owner": "ReplicaSet/shop/db",
        "finding": action.desired["finding"],
        "severity": "violation",
        "rule": "InterPodAffinity",
        "key": "topology.kubernetes.io/zone",
        "broken": 2,
        "low": 2,
        "number": 1,
    }
    assert action.because.endswith("The next one of shop/db-0 fits on node n3.")
    town.run(decider, DAY)
    assert town.evicted == [(0.0, "shop/db-0", "n1")]


def test_a_finding_must_have_stood_for_a_while() -> None:
    town = a_pair()
    decider = town.decider(EvictionSettings(wait=60))
    assert town.step(decider) == []
    assert decider.due == 60
    assert town.step(decider, 59) == []
    assert len(town.step(decider, 1)) == 1


def test_a_finding_that_ends_by_itself_costs_no_eviction() -> None:
    town = a_pair()
    decider = town.decider(EvictionSettings(wait=60))
    town.step(decider)
    town.move_zone("n2", "c")
    town.step(decider, 30)
    town.move_zone("n2", "a")
    assert town.step(decider, 30) == []
    assert len(town.step(decider, 60)) == 1


def test_a_command_that_was_lost_is_given_again() -> None:
    town = a_pair()
    decider = town.decider()
    [first] = decider.decide(town.snapshot(), 0.0)
    assert decider.decide(town.snapshot(), 89.0) == []
    [again] = decider.decide(town.snapshot(), 91.0)
    assert (again.target, again.desired["number"]) == (first.target, 1)


def test_the_same_owner_is_left_alone_until_the_next_pod_is_ready() -> None:
    town = Town("aaabc")
    town.starts = 300.0
    town.workload("db", "n1", "n2", "n3")
    decider = town.decider()
    town.run(decider, 299)
    assert [pod for _, pod, _ in town.evicted] == ["shop/db-0"]
    town.run(decider, 2)
    assert [pod for _, pod, _ in town.evicted] == ["shop/db-0", "shop/db-1"]


def test_a_next_pod_of_the_same_name_as_a_statefulsets_is_known_by_its_uid() -> None:
    town = Town("aab", ["h1", "h1", "h2"])
    for name in ("one", "two"):
        town.workload(name, "n1", "n2")
    decider = town.decider(EvictionSettings(wait=0, per_node=1, per_host=1))
    [action] = decider.decide(town.snapshot(), 0.0)
    was = town.pods["shop/one-0"]
    metadata = msgspec.structs.replace(was.metadata, uid="uid-of-the-next")
    spec = msgspec.structs.replace(was.spec, node_name="n3")
    town.pods["shop/one-0"] = msgspec.structs.replace(was, metadata=metadata, spec=spec)
    decider.observe(Outcome(action.id, "evict", action.target, "applied", ""), 1.0)
    assert [one.target for one in decider.decide(town.snapshot(), 2.0)] == ["pod/shop/two-0"]


def test_an_owner_that_lacks_a_pod_already_is_left_alone() -> None:
    town = a_pair()
    town.workloads["ReplicaSet/shop/db"] = msgspec.structs.replace(
        town.workloads["ReplicaSet/shop/db"], spec=k8s.WorkloadSpec(3)
    )
    assert town.step(town.decider()) == []


@pytest.mark.parametrize(
    ("per_owner", "share", "replicas", "at_once"),
    [
        pytest.param(1, 100, 20, 1, id="one at once"),
        pytest.param(5, 10, 20, 2, id="a tenth of twenty"),
        pytest.param(5, 10, 8, 1, id="a tenth of eight is less than one, and one it is"),
        pytest.param(5, 50, 20, 3, id="never more than may be in vain"),
    ],
)
def test_a_workload_lacks_at_most_its_share(per_owner: int, share: int, replicas: int, at_once: int) -> None:
    town = Town(["a"] * replicas + [f"free-{number}" for number in range(replicas)], ["h1"] * replicas)
    town.starts = 1000.0
    town.workload("db", *(f"n{number}" for number in range(1, replicas + 1)))
    limits = EvictionSettings(wait=0, per_owner=per_owner, share=share, per_node=99, per_host=99, per_minute=99)
    town.run(town.decider(limits), 100)
    assert len(town.evicted) == at_once


def test_two_pods_that_might_take_the_only_place_of_one_another_go_one_by_one() -> None:
    town = Town("aab", ["h1", "h1", "h2"])
    town.workload("one", "n1", "n2")
    town.workload("two", "n1", "n2")
    town.starts = 10.0
    decider = town.decider(EvictionSettings(wait=0, per_node=9, per_host=9, per_minute=99))
    town.run(decider, 30, pace=1)
    assert [(at, pod) for at, pod, _ in town.evicted] == [(0.0, "shop/one-0"), (10.0, "shop/two-0")]


def two_hosts() -> Town:
    """Six pairs, three on host h1 and three on h2, each on two nodes of one zone; two zones are free."""
    town = Town(["a", "a", "b", "b", "c", "d"], ["h1", "h1", "h2", "h2", "h3", "h4"])
    for number in range(3):
        town.workload(f"one-{number}", "n1", "n2")
        town.workload(f"two-{number}", "n3", "n4")
    return town


def test_one_physical_host_at_a_time() -> None:
    town = two_hosts()
    town.starts = 20.0
    town.run(town.decider(EvictionSettings(wait=0, per_node=9, per_host=9, per_minute=99)), 100, pace=5)
    assert [(at, node) for at, _, node in town.evicted] == [(0.0, "n1")] * 3 + [(20.0, "n3")] * 3


def test_the_caps_of_a_host_and_a_node() -> None:
    town = two_hosts()
    town.starts = 1000.0
    town.run(town.decider(EvictionSettings(wait=0, per_node=9, per_host=2, per_minute=99)), 100)
    assert [pod for _, pod, _ in town.evicted] == ["shop/one-0-0", "shop/one-1-0"]
    town = two_hosts()
    town.starts = 1000.0
    town.run(town.decider(EvictionSettings(wait=0, per_node=1, per_host=2, per_minute=99)), 100)
    assert [pod for _, pod, _ in town.evicted] == ["shop/one-0-0"]


def test_with_a_thousand_violations_at_once_no_cap_is_exceeded_in_any_window() -> None:
    zones = [f"z{number // 2}" for number in range(32)] + [f"free-{number}" for number in range(8)]
    hosts = [f"h{number // 4}" for number in range(32)] + [f"f{number}" for number in range(8)]
    town = Town(zones, hosts)
    town.starts = 7.0
    for number in range(1000):
        first = 1 + number % 16 * 2
        town.workload(f"w{number}", f"n{first}", f"n{first + 1}")
    decider = town.decider(NOW)
    under_way: list[tuple[float, str, str]] = []
    for _ in range(150):
        town.step(decider, 2.0)
        under_way = [one for one in town.evicted if one[0] > town.now - 7.0]
        assert len({town.hosts[node].host for _, _, node in under_way}) <= 1
        assert max(Counter(node for _, _, node in under_way).values(), default=0) <= NOW.per_node
        assert len(under_way) <= NOW.per_host
    times = [at for at, _, _ in town.evicted]
    assert len(times) == 4 * 5  # the whole of what five minutes allow
    assert all(fifth - first >= 60 for first, fifth in zip(times, times[4:], strict=False))
    assert max(Counter(pod.rpartition("-")[0] for _, pod, _ in town.evicted).values()) == 1


def test_a_command_remembers_nothing_of_another_workload() -> None:
    town = Town("aabc")
    for name in ("one", "two"):
        town.workload(name, "n1", "n2")
    town.run(town.decider(), 60)
    assert [(action.target, action.desired.get("others")) for action in town.actions] == [
        ("pod/shop/one-0", None),
        ("pod/shop/two-0", None),
    ]


def test_an_eviction_that_is_put_back_is_tried_three_times_and_then_left_to_a_person() -> None:
    town = a_pair(scheduler=adversary)
    town.run(town.decider(), 3 * DAY)
    assert [at for at, _, _ in town.evicted] == [0.0, 600.0, 1200.0]
    reasons = {reason for _, reason in town.refusals()}
    assert reasons == {"3 evictions of ReplicaSet/shop/db did not end it for good: it is left to a person"}
    assert len(town.refusals()) == 3, "said once a day"


def test_a_restart_does_not_reset_the_guard() -> None:
    town = a_pair(scheduler=adversary)
    while town.now < 2 * DAY:
        town.run(town.decider(), 250.0)
    times = [at for at, _, _ in town.evicted]
    assert len(times) == 3
    assert all(later - at >= 600 for at, later in pairwise(times))
    assert {reason for _, reason in town.refusals()} == {
        "3 evictions of ReplicaSet/shop/db did not end it for good: it is left to a person"
    }


def test_a_finding_that_always_comes_back_is_given_up_though_each_eviction_helped() -> None:
    """Somebody moves the zones as often as the evictor has mended it."""
    town = a_pair("aabc")
    decider = town.decider()
    for _ in range(10):
        town.run(decider, 60)
        there = [pod.spec.node_name for pod in town.pods.values()]
        town.move_zone(there[0], "a")
        town.move_zone(there[1], "a")
        for node in sorted(set(town.nodes) - set(there)):
            town.move_zone(node, f"free-{node}")
    assert len(town.evicted) == 4, "one that mended it, and three for what came back"
    assert [reason for _, reason in town.refusals()] == [
        "3 evictions of ReplicaSet/shop/db did not end it for good: it is left to a person"
    ]


def test_a_finding_that_stayed_away_for_an_hour_is_a_new_one() -> None:
    town = a_pair("aabc")
    decider = town.decider()
    for _ in range(8):
        town.run(decider, 4000)
        there = [pod.spec.node_name for pod in town.pods.values()]
        for node in town.nodes:
            town.move_zone(node, "a" if node in there else f"free-{node}")
    assert len(town.evicted) == 8
    assert town.refusals() == []


def test_progress_is_not_held_against_it() -> None:
    """Five of six replicas in one zone must go: five evictions of one owner, each of which helps."""
    town = Town(["a"] * 6 + ["b", "c", "d", "e", "f"])
    town.workload("db", *(f"n{number}" for number in range(1, 7)))
    town.run(town.decider(), 1000)
    assert len(town.evicted) == 5
    assert town.refusals() == []


def test_another_reason_why_nothing_is_evicted_is_said_on_the_same_day() -> None:
    town = Town("aa")
    town.workload("db", "n1", "n2")
    decider = town.decider()
    town.run(decider, 60)
    town.budgets = {budget.key: budget.build() for budget in (a_budget("db", {}), a_budget("all", {}))}
    town.run(decider, 3600)
    assert [reason for _, reason in town.refusals()] == [
        "shop/db-0 and shop/db-1: no other node would take it and mend anything without breaking something else",
        "shop/all and shop/db cover it, and of a pod with several budgets the API server refuses an eviction",
    ]


def test_what_no_eviction_can_end_is_thought_through_again_after_a_minute_by_itself() -> None:
    town = Town("aa")
    town.workload("db", "n1", "n2")
    decider = town.decider()
    assert len(decider.decide(town.snapshot(), 0.0)) == 1
    assert decider.due == 60.0
    assert decider.decide(town.snapshot(), 30.0) == []
    assert decider.due == 60.0


def test_a_pod_without_an_owner_in_the_same_finding_keeps_no_other_from_its_eviction() -> None:
    town = Town("aab")
    town.workload("db", "n1")
    town.pods["shop/bare"] = a_pod("bare").on("n2").ready().labels(app="db").build()
    town.run(town.decider(), 600)
    assert [pod for _, pod, _ in town.evicted] == ["shop/db-0"]


def test_what_no_eviction_can_end_is_said_once() -> None:
    town = Town("aa")
    town.workload("db", "n1", "n2")
    decider = town.decider()
    town.run(decider, 3600)
    reason = "shop/db-0 and shop/db-1: no other node would take it and mend anything without breaking something else"
    assert town.refusals() == [("shop/db-0", reason)]
    town.nodes["n3"] = Town("b").nodes["n1"]
    town.nodes["n3"] = msgspec.structs.replace(
        town.nodes["n3"], metadata=msgspec.structs.replace(town.nodes["n3"].metadata, name="n3")
    )
    town.run(decider, 60)
    assert [pod for _, pod, _ in town.evicted] == ["shop/db-0"]


@pytest.mark.parametrize(
    ("budgets", "evictions", "refusals"),
    [
        pytest.param([a_budget("db", {"matchLabels": {"app": "db"}}, min_available=1)], 1, [], id="one to spare"),
        pytest.param([a_budget("db", {"matchLabels": {"app": "db"}}, min_available=2)], 0, [], id="none to spare"),
        pytest.param([a_budget("other", {"matchLabels": {"app": "web"}}, min_available=2)], 1, [], id="of others"),
        pytest.param(
            [a_budget("db", {"matchLabels": {"app": "db"}}, min_available=0), a_budget("all", {}, min_available=0)],
            0,
            [
                (
                    "shop/db-0",
                    "shop/all and shop/db cover it, and of a pod with several budgets the API server refuses an "
                    "eviction",
                )
            ],
            id="two on one pod",
        ),
    ],
)
def test_what_a_budget_forbids_is_not_even_asked(
    budgets: list[BudgetBuilder], evictions: int, refusals: list[tuple[str, str]]
) -> None:
    town = a_pair()
    town.budgets = {budget.key: budget.build() for budget in budgets}
    town.run(town.decider(), 600)
    assert (len(town.evicted), town.refusals()) == (evictions, refusals)


def test_a_place_that_is_promised_is_not_promised_again() -> None:
    """The first pod is not seen to go yet when a second finding comes up, and its next one needs all of the room."""
    town = Town("aab", ["h1", "h1", "h2"])
    town.room("n3", pods=1)
    town.workload("one", "n1", "n2")
    decider = town.decider(EvictionSettings(wait=0, per_node=9, per_host=9))
    [first] = decider.decide(town.snapshot(), 0.0)
    assert (first.target, first.desired["to"]) == ("pod/shop/one-0", "n3")
    town.workload("two", "n1", "n2")
    assert decider.decide(town.snapshot(), 2.0) == []
    town.evict("shop/one-0", "n3")
    town.run(decider, 30)
    assert len(town.evicted) == 1
    assert [pod for pod, _ in town.refusals()] == ["shop/two-0"]


def test_a_budget_of_two_workloads_is_spent_once() -> None:
    town = Town("aab", ["h1", "h1", "h2"])
    town.starts = 1000.0
    for name in ("one", "two"):
        town.workload(name, "n1", "n2")
    town.budgets = {"shop/both": a_budget("both", {}, min_available=3).build()}
    town.run(town.decider(EvictionSettings(wait=0, per_node=9, per_host=9)), 500)
    assert len(town.evicted) == 1


def test_an_eviction_that_the_budget_refuses_is_tried_again_after_five_seconds() -> None:
    town = a_pair()
    answers = [("failed", "the budget"), ("failed", "the budget"), ("applied", "")]
    asked: list[float] = []

    def answer(action: Action) -> tuple[str, str]:
        asked.append(town.now)
        return answers.pop(0)

    town.answer = answer
    town.run(town.decider(), 600)
    assert asked == [0.0, 5.0, 15.0]
    assert len(town.evicted) == 1


def test_the_minute_of_an_eviction_begins_when_it_was_done_not_ordered() -> None:
    town = Town("aab", ["h1", "h1", "h2"])
    for name in ("one", "two"):
        town.workload(name, "n1", "n2")
    decider = town.decider(EvictionSettings(wait=0, per_node=9, per_host=9, per_minute=1))
    [action] = decider.decide(town.snapshot(), 0.0)
    town.evict("shop/one-0", "n3")
    decider.observe(Outcome(action.id, "evict", action.target, "applied", ""), 50.0)
    assert decider.decide(town.snapshot(), 109.0) == []
    assert [one.target for one in decider.decide(town.snapshot(), 110.0)] == ["pod/shop/two-0"]


def test_refused_evictions_do_not_become_a_storm() -> None:
    """Without the right to evict, every pod is refused: the minute's cap holds for what is asked, too."""
    town = two_hosts()
    town.answer = lambda action: ("refused", "forbidden (403)")
    town.run(town.decider(), 59)
    assert len(town.actions) == 4


def test_a_dry_run_says_each_eviction_once() -> None:
    town = two_hosts()
    town.answer = lambda action: ("dry-run", "would evict it")
    decider = town.decider()
    town.run(decider, 59)
    assert len(town.actions) == 6, "what is not asked for costs nothing of the minute"
    town.run(decider, 3600)
    assert sorted(action.target for action in town.actions) == sorted(
        f"pod/shop/{name}-{number}-0" for name in ("one", "two") for number in range(3)
    )
    assert town.evicted == []


def test_what_a_dry_run_said_holds_nobody_up_once_it_is_enabled() -> None:
    town = a_pair()
    town.answer = lambda action: ("dry-run", "would evict it")
    town.step(town.decider())
    town.answer = lambda action: ("applied", "")
    [action] = town.step(town.decider())
    assert action.desired["number"] == 1
    assert [pod for _, pod, _ in town.evicted] == ["shop/db-0"]


def test_an_eviction_of_an_earlier_run_is_still_under_way_after_a_restart() -> None:
    town = two_hosts()
    town.starts = 100.0
    limits = EvictionSettings(wait=0, per_node=9, per_host=1, per_minute=99)
    town.step(town.decider(limits))
    town.run(town.decider(limits), 99)
    assert [pod for _, pod, _ in town.evicted] == ["shop/one-0-0"]
    town.run(town.decider(limits), 2)
    assert [pod for _, pod, _ in town.evicted] == ["shop/one-0-0", "shop/one-1-0"]


SUPERSEDED = "it was ordered before a restart, and is not what is wanted now"


def test_a_command_of_an_earlier_run_not_carried_out_is_decided_anew_at_once() -> None:
    town = a_pair()
    town.actions += town.decider().decide(town.snapshot(), 0.0)
    [earlier] = town.actions
    decider = town.decider()
    assert decider.decide(town.snapshot(), 1.0) == [], "it may be on its way"
    decider.observe(Outcome(earlier.id, "evict", earlier.target, "refused", SUPERSEDED), 2.0)
    [again] = decider.decide(town.snapshot(), 2.0)
    assert (again.target, again.desired["number"]) == (earlier.target, 1)


def test_an_eviction_called_superseded_after_it_took_place_is_not_forgotten() -> None:
    town = a_pair(scheduler=adversary)
    town.starts = 30.0
    town.actions += town.decider().decide(town.snapshot(), 0.0)
    [earlier] = town.actions
    town.evict("shop/db-0", "n3")  # and then the worker is killed
    decider = town.decider()
    town.step(decider)
    decider.observe(Outcome(earlier.id, "evict", earlier.target, "refused", SUPERSEDED), 1.0)
    town.run(decider, DAY)
    assert [at for at, _, _ in town.evicted] == [0.0, 600.0, 1200.0]


def test_the_minute_goes_on_over_a_restart() -> None:
    town = two_hosts()
    limits = EvictionSettings(wait=0, per_node=9, per_host=9, per_minute=2)
    for _ in range(11):
        town.run(town.decider(limits), 5)
    assert len(town.evicted) == 2


def test_where_the_rules_cannot_be_judged_nothing_is_evicted() -> None:
    town = a_pair()
    pod = town.pods["shop/db-0"]
    broken = msgspec.structs.replace(pod.spec, tolerations=msgspec.Raw(b'[{"operator": 3}]'))
    town.pods["shop/db-0"] = msgspec.structs.replace(pod, spec=broken)
    assert town.step(town.decider()) == []


class Moves:
    """Implements `Moves`: who leaves these findings to the evictor, and hurries those."""

    def __init__(self) -> None:
        self.left, self.hurried = set[str](), set[str]()

    def leaves(self, finding: Finding) -> bool:
        return finding.id in self.left

    def hurries(self, finding: str) -> bool:
        return finding in self.hurried


def test_what_vmotions_may_end_is_not_evicted_for() -> None:
    town, moves = a_pair(), Moves()
    decider = town.decider(moves=moves)
    assert town.step(decider, 3600) == []
    moves.left = set(decider._since)
    assert len(town.step(decider, 1)) == 1


def test_what_a_person_waits_for_need_not_have_stood_for_a_while() -> None:
    town, moves = a_pair(), Moves()
    decider = town.decider(EvictionSettings(wait=3600), moves=moves)
    assert town.step(decider) == []
    moves.hurried = set(decider._since)
    assert len(town.step(decider, 1)) == 1
