"""Decisions for pending pods: published once, assumed until seen, decided again after a failure."""

import msgspec
import pytest
from fake_pipeline import FakeCluster

from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.placements import Placements
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import Outcome, Placement

FULL = {"Insufficient cpu": 3}


def snapshot(cluster: FakeCluster) -> Snapshot:
    objects = [value for _, value in cluster.objects["kubernetes"].values()]
    return Snapshot(
        nodes={each.metadata.name: each for each in objects if isinstance(each, Node)},
        pods={f"shop/{each.metadata.name}": each for each in objects if isinstance(each, Pod)},
    )


def placement(pod: str, node: str | None, *, uid: str = "", failed: dict[str, int] | None = None) -> Placement:
    return Placement(f"shop/{pod}", uid or f"pod-{pod}", node, 10, 0, failed or {}, {"pods": 1})


def order_id(row: Placement) -> str:
    return f"bind {row.pod} {row.node}"


def outcome(pod: str, node: str, result: str) -> Outcome:
    return Outcome(f"bind shop/{pod} {node}", "bind", f"pod/shop/{pod}", result, "")


def publish(placements: Placements, *rows: Placement, now: float = 0.0) -> list[Placement]:
    change = placements.diff(rows, now)
    placements.commit(change)
    return change.placements


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.node("n1")
    cluster.node("n2")
    cluster.pod("db-0")
    return cluster


def test_a_decision_is_published_once() -> None:
    placements = Placements("prod", [], order_id)
    assert publish(placements, placement("db-0", "n1")) == [placement("db-0", "n1")]
    assert publish(placements, placement("db-0", "n1")) == []


def test_a_pod_that_waits_is_published_again_when_its_reasons_change() -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", None, failed=FULL))
    assert publish(placements, placement("db-0", None, failed=FULL)) == []
    fewer = placement("db-0", None, failed={"Insufficient cpu": 2})
    assert publish(placements, fewer) == [fewer]


def test_a_new_pod_of_the_same_name_is_a_new_decision() -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n1"))
    again = placement("db-0", "n1", uid="another")
    assert publish(placements, again) == [again]


def test_an_order_is_assumed_until_the_pod_is_seen_bound(cluster: FakeCluster) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n1"))
    assert placements.assumed(snapshot(cluster)) == {"shop/db-0": "n1"}
    cluster.pod("db-0", "n1")
    assert placements.assumed(snapshot(cluster)) == {}


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda cluster: cluster.delete_pod("db-0"), id="the pod is gone"),
        pytest.param(lambda cluster: cluster.pod("db-0", uid="another"), id="another pod has its name"),
    ],
)
def test_an_order_for_a_pod_that_is_not_there_is_forgotten(cluster: FakeCluster, happens: object) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n1"))
    assert callable(happens)
    happens(cluster)
    assert placements.assumed(snapshot(cluster)) == {}


def test_an_order_for_a_node_that_is_gone_is_decided_again(cluster: FakeCluster) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "gone"))
    assert placements.assumed(snapshot(cluster)) == {}
    assert publish(placements, placement("db-0", "n2")) == [placement("db-0", "n2")]


@pytest.mark.parametrize("result", ["failed", "refused"])
def test_a_failed_binding_is_assumed_no_longer_and_ordered_again_after_a_while(
    cluster: FakeCluster, result: str
) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n1"))
    placements.observe(outcome("db-0", "n1", result), 100.0)
    assert placements.assumed(snapshot(cluster)) == {}
    assert publish(placements, placement("db-0", "n1"), now=100.5) == []
    assert placements.retry_at() == 101.0
    assert publish(placements, placement("db-0", "n1"), now=101.0) == [placement("db-0", "n1")]
    assert placements.assumed(snapshot(cluster)) == {"shop/db-0": "n1"}


def test_the_pause_doubles_at_each_failure_up_to_a_minute() -> None:
    placements = Placements("prod", [], order_id)
    pauses = []
    now = 0.0
    for _ in range(8):
        publish(placements, placement("db-0", "n1"), now=now)
        placements.observe(outcome("db-0", "n1", "failed"), now)
        pauses.append((placements.retry_at() or 0.0) - now)
        now = placements.retry_at() or 0.0
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@pytest.mark.parametrize("result", ["applied", "noop", "dry-run"])
def test_an_order_that_went_well_stays_assumed(cluster: FakeCluster, result: str) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n1"))
    placements.observe(outcome("db-0", "n1", result), 0.0)
    assert placements.assumed(snapshot(cluster)) == {"shop/db-0": "n1"}


def test_the_answer_to_an_earlier_order_says_nothing(cluster: FakeCluster) -> None:
    placements = Placements("prod", [], order_id)
    publish(placements, placement("db-0", "n2"))
    placements.observe(outcome("db-0", "n1", "failed"), 0.0)
    assert placements.assumed(snapshot(cluster)) == {"shop/db-0": "n2"}


def test_a_placement_is_published_under_its_pods_key() -> None:
    change = Placements("prod", [], order_id).diff([placement("db-0", "n1")], 0.0)
    [record] = change.records
    assert record.key == "prod/pod/shop/db-0"
    assert record.value is not None
    assert msgspec.json.decode(record.value) == {
        "failed": {},
        "node": "n1",
        "physicalConflicts": 0,
        "pod": "shop/db-0",
        "snapshot": {"pods": 1},
        "total": 10,
        "uid": "pod-db-0",
    }


def test_an_order_of_an_earlier_run_is_assumed_only_once_it_is_decided_again(cluster: FakeCluster) -> None:
    earlier = [placement("db-0", "n1")]
    placements = Placements("prod", earlier, order_id)
    assert placements.assumed(snapshot(cluster)) == {}
    change = placements.diff([placement("db-0", "n1")], 0.0)
    assert (change.placements, change.confirmed) == ([], {"shop/db-0": "bind shop/db-0 n1"})
    placements.commit(change)
    assert placements.assumed(snapshot(cluster)) == {"shop/db-0": "n1"}


def test_an_order_of_an_earlier_run_that_is_decided_otherwise_is_replaced(cluster: FakeCluster) -> None:
    placements = Placements("prod", [placement("db-0", "n1")], order_id)
    change = placements.diff([placement("db-0", "n2")], 0.0)
    assert (change.placements, change.confirmed) == ([placement("db-0", "n2")], {})
