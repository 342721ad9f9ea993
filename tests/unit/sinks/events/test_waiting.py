"""Telling why our pods wait: kube-scheduler's words, each once, the longest untold first, never a flood."""

from collections.abc import Sequence
from typing import Any

import pytest
from support.fakes.pipeline import FakeCluster

from underhost.agents.pipeline.decide.placements import BindingQueue
from underhost.agents.sinks.bindings import action_of
from underhost.agents.sinks.events.waiting import AGAIN, OPEN, SOON, WaitingDecider, message
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import Action, Outcome, Placement

PREEMPTION = "preemption: underhost preempts no pods."
FULL = {"Insufficient cpu": 2}
TEXT = f"0/2 nodes are available: 2 Insufficient cpu. {PREEMPTION}"


class Site:
    """A cluster of two nodes, the decisions for its pods, and the decider."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.cluster.node("n1")
        self.cluster.node("n2")
        self.placements = BindingQueue("prod", [])
        self.more: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self.decider = WaitingDecider(self.placements, self._in_the_way)
        self.version = 0

    def _in_the_way(self, snapshot: Snapshot, pods: Sequence[str]) -> dict[str, str]:
        self.asked.append(list(pods))
        return self.more

    def pod(self, name: str, node: str = "") -> None:
        self.cluster.pod(name, node)

    def evaluate(self, now: float = 0.0, **decided: "str | dict[str, int]") -> list[Action]:
        """One evaluation that decides a node or the reasons for each pod named (`_` for `-`); what is told."""
        self.version += 1
        objects = [value for _, value in self.cluster.objects["kubernetes"].values()]
        snapshot = Snapshot(
            nodes={each.metadata.name: each for each in objects if isinstance(each, Node)},
            pods={f"shop/{each.metadata.name}": each for each in objects if isinstance(each, Pod)},
            offsets={"pods": self.version},
        )
        self.placements.assumed(snapshot, now)
        rows = [self._row(name.replace("_", "-"), found) for name, found in decided.items()]
        change = self.placements.diff(rows, now)
        self.placements.commit(change)
        return self.decider.decide(snapshot, now)

    def _row(self, pod: str, found: "str | dict[str, int]") -> Placement:
        node, failed = (found, dict[str, int]()) if isinstance(found, str) else (None, found)
        return Placement(f"shop/{pod}", self.cluster.live(pod).metadata.uid, node, None, 0, failed, {})

    def answer(self, action: Action, result: str = "applied", now: float = 0.0) -> None:
        self.decider.observe(Outcome(action.id, "event", action.target, result, ""), now)

    def binding(self, pod: str, node: str, result: str, reason: str) -> None:
        """What became of a binding is told to both, as the cycle does."""
        order = action_of(self._row(pod, node), "prod")
        assert order is not None
        outcome = Outcome(order.id, "bind", order.target, result, reason)
        self.placements.observe(outcome, 0.0)
        self.decider.observe(outcome, 0.0)


def said(actions: list[Action]) -> list[tuple[Any, ...]]:
    """(target, type, note, the condition's reason) of each."""
    return [
        (
            action.target.removeprefix("event/pod/shop/"),
            action.desired["type"],
            action.desired["note"],
            (action.desired.get("condition") or {}).get("reason"),  # type: ignore[attr-defined]
        )
        for action in actions
    ]


@pytest.fixture
def site() -> Site:
    site = Site()
    for name in ("db-0", "db-1"):
        site.pod(name)
    return site


@pytest.mark.parametrize(
    ("failed", "nodes", "expected"),
    [
        pytest.param(
            {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 4},
            7,
            "0/7 nodes are available: 3 Insufficient cpu, 4 node(s) had untolerated taint(s). " + PREEMPTION,
            id="nodes by reason",
        ),
        pytest.param(
            {"Insufficient cpu": 2, "Insufficient memory": 10},
            12,
            "0/12 nodes are available: 10 Insufficient memory, 2 Insufficient cpu. " + PREEMPTION,
            id="sorted as text, as kube-scheduler does",
        ),
        pytest.param(
            {"error: no nodes available to schedule pods": 0}, 0, "no nodes available to schedule pods", id="no nodes"
        ),
        pytest.param({"error: strconv.ParseInt: parsing": 0}, 7, "strconv.ParseInt: parsing", id="an error of scoring"),
    ],
)
def test_the_words_are_kube_schedulers_but_for_preemption(failed: dict[str, int], nodes: int, expected: str) -> None:
    assert message(failed, nodes) == expected


def test_what_stands_in_the_way_follows_kube_schedulers_words(site: Site) -> None:
    site.more = {"shop/db-0": "2 nodes: NodeResourcesFit: asks for 3 cpu, 2 of 4 is free."}
    told = said(site.evaluate(db_0=FULL, db_1=FULL))
    assert [note for _, _, note, _ in told] == [f"{TEXT} {site.more['shop/db-0']}", TEXT]
    site.more = {"shop/db-0": "2 nodes: NodeResourcesFit: asks for 3 cpu, 1 of 4 is free."}
    assert site.evaluate(db_0=FULL, db_1=FULL) == []  # other figures are no news


def test_the_rules_are_asked_only_of_pods_that_are_told_of_and_refused(site: Site) -> None:
    error = {"error: strconv.ParseInt: parsing": 0}
    site.evaluate(db_0=FULL, db_1=error)
    site.evaluate(db_0=FULL, db_1=error)
    assert site.asked == [["shop/db-0"]]


def test_a_pod_that_waits_is_told_of_once(site: Site) -> None:
    [action] = actions = site.evaluate(db_0=FULL)
    assert said(actions) == [("db-0/FailedScheduling", "Warning", TEXT, "Unschedulable")]
    assert action.desired["regarding"] == {
        "kind": "Pod",
        "name": "db-0",
        "namespace": "shop",
        "uid": "pod-db-0",
        "apiVersion": "v1",
    }
    assert action.desired["condition"] == {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    assert site.evaluate(db_0=FULL) == []


def test_other_reasons_are_told(site: Site) -> None:
    site.evaluate(db_0=FULL)
    assert said(site.evaluate(now=1.0, db_0={"node(s) had untolerated taint(s)": 2})) == [
        (
            "db-0/FailedScheduling",
            "Warning",
            f"0/2 nodes are available: 2 node(s) had untolerated taint(s). {PREEMPTION}",
            "Unschedulable",
        )
    ]


def test_other_counts_are_told_when_their_record_is(site: Site) -> None:
    site.evaluate(now=0.0, db_0=FULL)
    assert site.evaluate(now=0.5, db_0={"Insufficient cpu": 1}) == []
    [action] = site.evaluate(now=1.0, db_0={"Insufficient cpu": 1})
    assert "1 Insufficient cpu" in str(action.desired["note"])


def test_a_pod_that_still_waits_is_told_of_again_before_the_event_expires(site: Site) -> None:
    [first] = site.evaluate(now=0.0, db_0=FULL)
    site.answer(first)
    assert site.decider.due == AGAIN
    assert site.evaluate(now=AGAIN - 1, db_0=FULL) == []
    assert said(site.evaluate(now=AGAIN, db_0=FULL)) == [("db-0/FailedScheduling", "Warning", TEXT, "Unschedulable")]


def test_a_new_pod_of_the_same_name_is_told_of(site: Site) -> None:
    site.evaluate(db_0=FULL)
    site.cluster.pod("db-0", uid="another")
    [action] = site.evaluate(now=1.0, db_0=FULL)
    assert (action.desired["note"], action.desired["regarding"]["uid"]) == (TEXT, "another")  # type: ignore[index]


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param({"Waiting for scheduling gates: [example.com/hold]": 0}, id="its gate says so itself"),
        pytest.param({}, id="nothing is known"),
    ],
)
def test_a_pod_that_is_not_to_be_placed_yet_is_not_told_of(site: Site, failed: dict[str, int]) -> None:
    assert site.evaluate(db_0=failed) == []


def test_where_placing_went_wrong_the_condition_says_so(site: Site) -> None:
    assert said(site.evaluate(db_0={"error: strconv.ParseInt": 0})) == [
        ("db-0/FailedScheduling", "Warning", "strconv.ParseInt", "SchedulerError")
    ]


def test_a_pod_placed_at_once_is_told_of_when_it_is_seen_bound(site: Site) -> None:
    assert site.evaluate(db_0="n1") == []
    site.pod("db-0", "n1")
    assert said(site.evaluate()) == [
        ("db-0/Scheduled", "Normal", "Successfully assigned shop/db-0 to n1", None),
    ]
    assert site.evaluate() == []


def test_a_pod_that_is_gone_before_it_could_be_told_of_is_not(site: Site) -> None:
    site.evaluate(db_0="n1")
    site.pod("db-0", "n1")
    site.placements.assumed(Snapshot(pods={"shop/db-0": site.cluster.live("db-0")}, nodes={}), 1.0)
    assert [row.pod for row in site.placements.seated] == ["shop/db-0"]
    site.cluster.delete_pod("db-0")
    assert site.evaluate(now=1.0) == []


def test_a_binding_that_is_rejected_is_told_of_while_the_pod_waits(site: Site) -> None:
    site.evaluate(db_0="n1")
    site.binding("db-0", "n1", "refused", "admission webhook denied the request")
    text = "binding rejected: admission webhook denied the request"
    assert said(site.evaluate(now=0.1)) == [("db-0/FailedScheduling", "Warning", text, "SchedulerError")]
    assert site.evaluate(now=0.2) == []
    assert said(site.evaluate(now=0.3, db_0=FULL)) == [("db-0/FailedScheduling", "Warning", TEXT, "Unschedulable")]


def test_a_binding_that_another_scheduler_has_made_is_not_told_of(site: Site) -> None:
    site.evaluate(db_0="n1")
    site.binding("db-0", "n1", "refused", "bound to n2 already")
    site.pod("db-0", "n2")
    assert site.evaluate(now=0.1) == []


def test_of_a_crowd_no_more_are_told_than_answered_and_the_longest_untold_come_first(site: Site) -> None:
    crowd = {f"p_{number:03}": FULL for number in range(OPEN + 30)}
    for name in crowd:
        site.pod(name.replace("_", "-"))
    first = site.evaluate(now=0.0, **crowd)
    assert [action.target for action in first] == [
        f"event/pod/shop/p-{number:03}/FailedScheduling" for number in range(OPEN)
    ]
    assert site.decider.due == SOON
    for action in first[:20]:
        site.answer(action)
    crowd["p_000"] = {"node(s) had untolerated taint(s)": 2}
    second = site.evaluate(now=1.0, **crowd)
    assert [action.target for action in second] == [
        f"event/pod/shop/p-{number:03}/FailedScheduling" for number in range(OPEN, OPEN + 20)
    ]


def test_a_command_that_nobody_answers_is_waited_for_a_minute(site: Site) -> None:
    crowd = {f"p_{number:03}": FULL for number in range(OPEN + 1)}
    for name in crowd:
        site.pod(name.replace("_", "-"))
    site.evaluate(now=0.0, **crowd)
    assert site.evaluate(now=59.0, **crowd) == []
    assert [action.target for action in site.evaluate(now=60.0, **crowd)] == ["event/pod/shop/p-050/FailedScheduling"]


def test_what_could_not_be_told_is_told_again_after_a_while(site: Site) -> None:
    [action] = site.evaluate(now=0.0, db_0=FULL)
    site.answer(action, "failed", now=1.0)
    assert site.evaluate(now=60.0, db_0=FULL) == []
    assert len(site.evaluate(now=61.0, db_0=FULL)) == 1
