"""Drains, tried: who comes back where, who stays, and what the disruption budgets say to each eviction."""

from typing import Any

import pytest
from support.answers.whatif import answer, blocked, moves, pending, tried, used
from support.build import HOST, BudgetBuilder, PodBuilder, a_budget, a_node, a_pod, a_site, a_workload, term

from underhost.agents.site.snapshot import Options
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.pods import GONE
from underhost.agents.whatif.steps import Drain
from underhost.schemas import kubernetes as k8s

N1, N2, N3 = (a_node(f"n{number}") for number in (1, 2, 3))
CORDONED, ANTI_AFFINITY = "node(s) were unschedulable", "node(s) didn't match pod anti-affinity rules"
TAINTED = "node(s) had untolerated taint(s)"
RS = a_workload("ReplicaSet", "web")
WEB = {"app": "web"}
MIRROR = {"kubernetes.io/config.mirror": "x"}


def web(name: str, node: str) -> PodBuilder:
    """A replica of the ReplicaSet."""
    return a_pod(name).on(node).labels(WEB).owned_by("ReplicaSet/web")


def budget(name: str = "web", **figures: Any) -> BudgetBuilder:
    return a_budget(name, {"matchLabels": WEB}, **figures)


@pytest.mark.parametrize(
    ("owner", "comes_back"),
    [
        *(
            pytest.param(f"{kind}/x", True, id=f"of a {kind}")
            for kind in ("ReplicaSet", "StatefulSet", "Job", "ReplicationController", "VirtualMachineInstance", "Kafka")
        ),
        pytest.param("", False, id="of nobody"),
    ],
)
def test_owners_make_the_pods_again_and_a_bare_pod_is_gone_for_good(owner: str, comes_back: bool) -> None:
    document = tried(a_site(N1, N2, a_pod("p").on("n1").owned_by(owner)), "drain n1")
    assert moves(document) == (["1 p n1>n2 drain"] if comes_back else [])
    assert pending(document) == ({} if comes_back else {"p": {GONE: 0}})


@pytest.mark.parametrize(
    "stays",
    [
        pytest.param(a_pod("p").on("n1").owned_by("DaemonSet/agent"), id="a DaemonSet's pod"),
        pytest.param(a_pod("p").on("n1").metadata(annotations=MIRROR), id="a mirror pod"),
        pytest.param(a_pod("p").on("n1").finished(), id="a bare pod that has finished"),
        pytest.param(web("p", "n1").finished("Failed"), id="a replica that has failed, and is replaced already"),
        pytest.param(web("p", "n1").deleted(), id="a replica that terminates, and is replaced already"),
    ],
)
def test_nothing_becomes_of(stays: k8s.Pod) -> None:
    document = tried(a_site(N1, N2, stays), "drain n1")
    assert (moves(document), pending(document), blocked(document)) == ([], {}, {})


def test_a_terminating_pod_of_a_stateful_set_comes_back_once_it_is_gone() -> None:
    site = a_site(N1, N2, a_pod("db-0").on("n1").owned_by("StatefulSet/db").deleted())
    assert moves(tried(site, "drain n1")) == ["1 db-0 n1>n2 drain"]


def test_what_no_node_takes_stays_pending_and_says_why_as_the_scheduler_does() -> None:
    pods = [web(f"w{number}", f"n{number}").apart(term(HOST, WEB)) for number in (1, 2, 3)]
    document = tried(a_site(N1, N2, N3, RS, *pods), "drain n1")
    assert moves(document) == []
    assert pending(document) == {"w1": {CORDONED: 1, ANTI_AFFINITY: 2}}


def test_pods_leave_before_others_are_placed_and_are_placed_by_priority_then_by_name() -> None:
    small = N2.has(pods="1")
    pods = [web("a", "n1"), web("b", "n1").spec(priority=5), web("c", "n1")]
    document = tried(a_site(N1, small, *pods), "drain n1")
    assert moves(document) == ["1 b n1>n2 drain"]
    assert list(pending(document)) == ["a", "c"]


def test_several_nodes_are_all_cordoned_before_the_first_is_drained() -> None:
    site = a_site(N1, N2, N3, web("a", "n1"), web("b", "n2"))
    document = what_if(site, Options(), [Drain(("n1", "n2"))]).document
    assert moves(document) == ["1 a n1>n3 drain", "2 b n2>n3 drain"]
    one_by_one = tried(a_site(N1, N2, web("a", "n1")), "drain n1", "uncordon n1", "drain n2")
    assert moves(one_by_one) == ["1 a n1>n2 drain", "3 a n2>n1 drain"]


# -------------------------------------------------------------------------------------------------------------- budgets
@pytest.mark.parametrize(
    ("budgets", "on_n1", "elsewhere", "moved", "in_the_way", "figures"),
    [
        pytest.param(
            [budget(max_unavailable=1)], 2, 1, ["w1", "w2"], {}, {"web": (1, 2)}, id="one at a time, each ready again"
        ),
        pytest.param([budget(min_available=1)], 2, 1, ["w1", "w2"], {}, {"web": (2, 2)}, id="both at once"),
        pytest.param(
            [budget(min_available=3)],
            2,
            1,
            [],
            {"w1": ["web"], "w2": ["web"]},
            {"web": (0, 0)},
            id="none may go",
        ),
        pytest.param(
            [budget(max_unavailable="34%")], 1, 2, ["w1"], {}, {"web": (2, 1)}, id="a percentage is rounded up"
        ),
        pytest.param(
            [budget("a", max_unavailable=1), budget("b", max_unavailable=1)],
            1,
            2,
            [],
            {"w1": ["a", "b"]},
            {"a": (1, 0), "b": (1, 0)},
            id="two budgets on one pod always block",
        ),
    ],
)
def test_budgets_step_a_drain(
    budgets: list[k8s.Budget],
    on_n1: int,
    elsewhere: int,
    moved: list[str],
    in_the_way: dict[str, list[str]],
    figures: dict[str, tuple[int, int]],
) -> None:
    pods = [web(f"w{at}", "n1" if at <= on_n1 else "n2") for at in range(1, on_n1 + elsewhere + 1)]
    document = tried(a_site(N1, N2, N3, RS, *pods, *budgets), "drain n1")
    assert sorted(one.pod.partition("/")[2] for one in document.moves) == moved
    assert blocked(document) == in_the_way
    assert used(document) == figures


def test_a_replica_that_finds_no_place_keeps_the_next_one_from_going() -> None:
    pods = [web("w1", "n1"), web("w2", "n1").apart(term(HOST, WEB)), web("w3", "n2").apart(term(HOST, WEB))]
    document = tried(a_site(N1, N2, RS, *pods, budget(max_unavailable=1)), "drain n1")
    # w1 may be beside nobody: w3 keeps it away; and as it waits, the budget keeps w2
    assert pending(document) == {"w1": {CORDONED: 1, "node(s) didn't satisfy existing pods anti-affinity rules": 1}}
    assert blocked(document) == {"w2": ["web"]}
    assert used(document) == {"web": (1, 1)}


def test_a_blocked_drain_goes_on_once_a_later_step_makes_room() -> None:
    stand_by = a_node("n3").labels(disk="ssd").cordoned()
    pods = [*(web(name, "n1").spec(nodeSelector={"disk": "ssd"}) for name in ("w1", "w2")), web("w3", "n2")]
    site = a_site(N1, N2, stand_by, RS, *pods, budget(min_available=2))
    assert blocked(tried(site, "drain n1")) == {"w2": ["web"]}
    document = tried(site, "drain n1", "uncordon n3")
    assert moves(document) == ["2 w1 n1>n3 uncordon", "2 w2 n1>n3 drain"]
    assert (pending(document), blocked(document), used(document)) == ({}, {}, {"web": (1, 2)})
    given_up = tried(site, "drain n1", "uncordon n1")
    assert moves(given_up) == []
    assert blocked(given_up) == {}


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [
        pytest.param(None, 2, True, id="by default it may go while enough others are healthy"),
        pytest.param("IfHealthyBudget", 1, False, id="not while too few are"),
        pytest.param("AlwaysAllow", 1, True, id="AlwaysAllow lets it go in any case"),
        pytest.param("Whatever", 2, False, id="a policy that nobody knows refuses"),
    ],
)
def test_a_pod_that_is_not_ready_costs_the_budget_nothing(policy: str | None, healthy: int, goes: bool) -> None:
    pods = [web("sick", "n1").ready(False), *(web(f"w{at}", "n2").ready(at < healthy) for at in range(2))]
    with_policy = budget(min_available=2, unhealthyPodEvictionPolicy=policy)
    document = tried(a_site(N1, N2, RS, *pods, with_policy), "drain n1")
    assert bool(document.moves) is goes
    assert used(document) == {"web": (0, 0)}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(web("p", "n1").finished("Pending").ready(False), id="that has not started"),
        pytest.param(
            a_pod("p").on("n1").labels(WEB).owned_by("StatefulSet/db").deleted(), id="that is being deleted already"
        ),
    ],
)
def test_no_budget_is_asked_for_a_pod(pod: k8s.Pod) -> None:
    document = tried(a_site(N1, N2, RS, pod, budget(min_available=9)), "drain n1")
    assert moves(document) == ["1 p n1>n2 drain"]
    assert used(document) == {}


def test_a_deletion_asks_no_budget() -> None:
    document = tried(a_site(N1, N2, RS, web("p", "n1"), budget(min_available=1)), "delete shop/p")
    assert moves(document) == ["1 p n1>n1 delete"]
    assert used(document) == {}


# ------------------------------------------------------------------------------------------------ what was there before
def test_pods_that_waited_before_and_still_do_are_no_consequence() -> None:
    waits = a_pod("waits").owned_by("ReplicaSet/big").spec(nodeSelector={"disk": "ssd"})
    found = answer(a_site(N1, N2, waits, web("w", "n1")), "drain n1")
    assert (pending(found.document), found.waiting) == ({}, ["shop/waits"])


def test_pods_that_could_be_placed_are_placed_before_the_plan_begins() -> None:
    new = a_pod("new").owned_by("ReplicaSet/web").apart(term(HOST, WEB))
    found = answer(a_site(N1, N2, web("w", "n1"), new), "drain n1")
    assert found.first == ["shop/new"]
    assert pending(found.document) == {
        "w": {CORDONED: 1, "node(s) didn't satisfy existing pods anti-affinity rules": 1}
    }


def test_a_waiting_pod_moves_from_nowhere_when_a_step_lets_it_in() -> None:
    waits = a_pod("waits").owned_by("ReplicaSet/big").spec(nodeSelector={"disk": "ssd"})
    assert moves(tried(a_site(N1, N2, waits), "label n2=disk=ssd")) == ["1 waits ->n2 label"]


def test_pods_of_a_scheduler_that_is_not_ours_wait_for_it() -> None:
    pod = web("p", "n1").spec(schedulerName="stork")
    assert pending(tried(a_site(N1, N2, pod), "drain n1")) == {"p": {"scheduler stork is not asked": 0}}


# ------------------------------------------------------------------------------------------------------------- findings
def test_only_what_the_plan_changes_is_new_or_resolved() -> None:
    pods = [web("a", "n1").apart(term(HOST, WEB)), web("b", "n1").apart(term(HOST, WEB)), web("c", "n2")]
    document = tried(a_site(N1, N2, N3, RS, *pods), "delete shop/b")
    assert moves(document) == ["1 b n1>n3 delete"]
    assert [(one.severity, one.pod, one.peers) for one in document.resolved_findings] == [
        ("violation", "shop/a", ["shop/b"])
    ]
    assert document.new_findings == []


def test_a_pod_that_a_budget_keeps_on_a_cordoned_node_is_drift() -> None:
    document = tried(a_site(N1, N2, RS, web("w", "n1"), budget(min_available=1)), "drain n1")
    assert [(one.severity, one.node, one.pods) for one in document.new_findings] == [("drift", "n1", 1)]


def test_replicas_that_end_on_one_host_are_found() -> None:
    pods = [web("w1", "n1").apart(term(HOST, WEB)), web("w2", "n2").apart(term(HOST, WEB))]
    site = a_site(N1, N2, N3, RS, *pods, on={"n1": "h1", "n2": "h2", "n3": "h2"})
    document = tried(site, "drain n1")
    assert moves(document) == ["1 w1 n1>n3 drain"]
    assert [(one.severity, one.pod, one.peers) for one in document.new_findings] == [
        ("physical", "shop/w1", ["shop/w2"])
    ]
