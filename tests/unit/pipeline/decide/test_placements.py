"""Decisions for pending pods: published once, assumed until seen, decided again after a failure."""

import msgspec
import pytest
from support.build import a_node, a_pod, a_site
from support.fakes.pipeline import FakeCluster

from underhost.agents.pipeline.decide.placements import NOWHERE, BindingQueue
from underhost.agents.sinks.bindings import action_of
from underhost.agents.site.changes import Tracked
from underhost.agents.site.snapshot import Snapshot
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
    order = action_of(row, "prod")
    assert order is not None
    return order.id


def answer(row: Placement, result: str) -> Outcome:
    return Outcome(order_id(row), "bind", f"pod/{row.pod}", result, "")


def outcome(pod: str, node: str, result: str) -> Outcome:
    return answer(placement(pod, node), result)


def publish(placements: BindingQueue, *rows: Placement, now: float = 0.0) -> list[Placement]:
    change = placements.diff(rows, now)
    placements.commit(change)
    return change.placements


def cycle(placements: BindingQueue, cluster: FakeCluster, *rows: Placement, now: float = 0.0) -> list[Placement]:
    """One evaluation: what is assumed, what is decided (`rows`) and given again, and what of it is published."""
    placements.assumed(snapshot(cluster), now)
    return publish(placements, *rows, *placements.overdue(now), now=now)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.node("n1")
    cluster.node("n2")
    cluster.pod("db-0")
    return cluster


def test_a_decision_is_published_once() -> None:
    placements = BindingQueue("prod", [])
    assert publish(placements, placement("db-0", "n1")) == [placement("db-0", "n1")]
    assert publish(placements, placement("db-0", "n1")) == []


def test_a_pod_that_waits_is_published_again_when_its_reasons_change() -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", None, failed=FULL))
    assert publish(placements, placement("db-0", None, failed=FULL)) == []
    other = placement("db-0", None, failed={"Insufficient memory": 3})
    assert publish(placements, other) == [other]


def test_a_new_pod_of_the_same_name_is_a_new_decision() -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n1"))
    again = placement("db-0", "n1", uid="another")
    assert publish(placements, again) == [again]


def test_an_order_is_assumed_until_the_pod_is_seen_bound(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n1"))
    assert placements.assumed(snapshot(cluster), 0.0) == {"shop/db-0": "n1"}
    cluster.pod("db-0", "n1")
    assert placements.assumed(snapshot(cluster), 0.0) == {}


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda cluster: cluster.delete_pod("db-0"), id="the pod is gone"),
        pytest.param(lambda cluster: cluster.pod("db-0", uid="another"), id="another pod has its name"),
    ],
)
def test_an_order_for_a_pod_that_is_not_there_is_forgotten(cluster: FakeCluster, happens: object) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n1"))
    assert callable(happens)
    happens(cluster)
    assert placements.assumed(snapshot(cluster), 0.0) == {}


def test_an_order_for_a_node_that_is_gone_is_decided_again(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "gone"))
    assert placements.assumed(snapshot(cluster), 0.0) == {}
    assert publish(placements, placement("db-0", "n2")) == [placement("db-0", "n2")]


def test_an_order_stands_again_once_its_node_is_back(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n1"))
    there = snapshot(cluster)
    assert placements.assumed(there, 0.0) == {"shop/db-0": "n1"}
    gone = Snapshot(nodes={"n2": there.nodes["n2"]}, pods=there.pods)
    assert placements.assumed(gone, 1.0) == {}
    assert placements.assumed(there, 2.0) == {"shop/db-0": "n1"}


def test_of_a_burst_the_orders_stand_whose_pods_a_picture_has_not_changed(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    for at in range(3):
        cluster.pod(f"db-{at}")
    publish(placements, *(placement(f"db-{at}", "n1") for at in range(3)))
    pods = Tracked(snapshot(cluster).pods)
    nodes = snapshot(cluster).nodes
    assert len(placements.assumed(Snapshot(nodes=nodes, pods=pods), 0.0)) == 3
    cluster.pod("db-1", "n1")
    bound = Tracked(pods | {"shop/db-1": snapshot(cluster).pods["shop/db-1"]}, pods, ["shop/db-1"])
    picture = Snapshot(nodes=nodes, pods=bound)
    assert placements.assumed(picture, 1.0) == {"shop/db-0": "n1", "shop/db-2": "n1"}
    assert [row.pod for row in placements.seated] == ["shop/db-1"]


def test_a_refused_binding_holds_nothing_and_is_decided_again_in_the_next_cycle(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    cycle(placements, cluster, placement("db-0", "n1"), now=99.0)
    placements.observe(outcome("db-0", "n1", "refused"), 100.0)
    assert placements.retry_at() == 100.0
    assert placements.assumed(snapshot(cluster), 100.1) == {}
    assert publish(placements, placement("db-0", "n1"), now=100.1) == [placement("db-0", "n1")]
    assert placements.assumed(snapshot(cluster), 100.1) == {"shop/db-0": "n1"}


def test_a_pod_whose_binding_is_refused_again_is_left_out_until_its_pause_is_over(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    for now in (100.0, 100.1):
        cycle(placements, cluster, placement("db-0", "n1"), now=now)
        placements.observe(outcome("db-0", "n1", "refused"), now)
    assert placements.assumed(snapshot(cluster), 100.2) == {"shop/db-0": NOWHERE}, "it holds no node's room"
    assert placements.retry_at() == 101.1
    assert placements.assumed(snapshot(cluster), 101.1) == {}
    assert publish(placements, placement("db-0", "n2"), now=101.1) == [placement("db-0", "n2")]


def test_a_failed_binding_holds_its_node_and_is_given_again_as_it_was(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    cycle(placements, cluster, placement("db-0", "n1"), now=99.0)
    placements.observe(outcome("db-0", "n1", "failed"), 100.0)
    assert placements.assumed(snapshot(cluster), 100.5) == {"shop/db-0": "n1"}
    assert placements.overdue(100.5) == []
    assert placements.retry_at() == 101.0
    assert placements.assumed(snapshot(cluster), 101.0) == {"shop/db-0": "n1"}
    [again] = placements.overdue(101.0)
    assert (again.pod, again.uid, again.node) == ("shop/db-0", "pod-db-0", "n1")
    assert publish(placements, again, now=101.0) == [again]
    assert placements.assumed(snapshot(cluster), 101.1) == {"shop/db-0": "n1"}
    assert (placements.overdue(101.1), placements.retry_at()) == ([], None)


def test_a_failed_binding_to_a_node_that_has_changed_since_is_decided_anew(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    cycle(placements, cluster, placement("db-0", "n1"), now=99.0)
    placements.observe(outcome("db-0", "n1", "failed"), 100.0)
    cluster.node("n1")
    assert placements.assumed(snapshot(cluster), 100.5) == {"shop/db-0": "n1"}, "it may be bound there all the same"
    assert placements.assumed(snapshot(cluster), 101.0) == {}
    assert placements.overdue(101.0) == []
    assert publish(placements, placement("db-0", "n2"), now=101.0) == [placement("db-0", "n2")]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param("failed", [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 10.0], id="a server that is away"),
        pytest.param("refused", [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], id="a server that says no"),
    ],
)
def test_the_pause_doubles_each_time(cluster: FakeCluster, result: str, expected: list[float]) -> None:
    placements, pauses, now = BindingQueue("prod", []), [], 0.0
    for _ in range(9):
        *_, row = cycle(placements, cluster, placement("db-0", "n1"), now=now)
        placements.observe(answer(row, result), now + 0.5)
        again = placements.retry_at()
        assert again is not None
        pauses.append(again - now - 0.5)
        now = again
    assert pauses == expected


def test_a_binding_that_went_well_starts_the_pauses_anew(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    for now, result in ((0.0, "failed"), (1.0, "failed"), (3.0, "applied")):
        *_, row = cycle(placements, cluster, placement("db-0", "n1"), now=now)
        placements.observe(answer(row, result), now)
    cluster.delete_pod("db-0")
    cluster.pod("db-0", uid="another")
    [row] = cycle(placements, cluster, placement("db-0", "n1", uid="another"), now=4.0)
    placements.observe(answer(row, "failed"), 4.0)
    assert placements.retry_at() == 5.0


@pytest.mark.parametrize(
    ("carried", "said"),
    [
        pytest.param({"rack": "r1", "app": "db"}, 0, id="as since Kubernetes 1.35"),
        pytest.param({"app": "db"}, 1, id="an older API server, once"),
    ],
)
def test_an_api_server_that_drops_the_labels_of_bindings_is_told_of_once(
    carried: dict[str, str], said: int, caplog: pytest.LogCaptureFixture
) -> None:
    placements = BindingQueue("prod", [])
    rows = [msgspec.structs.replace(placement(f"db-{at}", "n1"), labels={"rack": "r1"}) for at in range(3)]
    publish(placements, *rows)
    pods = [a_pod(f"db-{at}").labels(carried).metadata(uid=f"pod-db-{at}").on("n1") for at in range(3)]
    placements.assumed(a_site(a_node("n1"), *pods), 1.0)
    assert [one.levelname for one in caplog.records] == ["WARNING"] * said
    assert all("did not copy the labels" in one.message for one in caplog.records)


@pytest.mark.parametrize("result", ["failed", "refused"])
def test_nothing_is_due_twice_so_that_no_processor_is_kept_busy(cluster: FakeCluster, result: str) -> None:
    """A pod that is being deleted is decided no more: its order stays as it is, and must not wake anybody."""
    placements = BindingQueue("prod", [])
    cycle(placements, cluster, placement("db-0", "n1"), now=0.0)
    placements.observe(outcome("db-0", "n1", result), 0.0)
    cluster.node("n1")
    cycle(placements, cluster, now=60.0)
    assert placements.retry_at() is None


def test_a_binding_that_is_always_refused_is_tried_once_a_minute_in_the_end(cluster: FakeCluster) -> None:
    placements, now, tries, looks = BindingQueue("prod", []), 0.0, 0, 0
    while now < 3600:
        looks += 1
        held = placements.assumed(snapshot(cluster), now)
        decided = [] if "shop/db-0" in held else [placement("db-0", "n1")]
        for _ in publish(placements, *decided, *placements.overdue(now), now=now):
            tries += 1
            placements.observe(outcome("db-0", "n1", "refused"), now + 0.001)
        now = placements.retry_at() or now + 3600
    # At 0, 0, 1, 3, 7, 15, 31 and 63 seconds, then once a minute: nobody looks more often than there is to try.
    assert (tries, looks) == (66, 66)


def test_other_counts_of_the_same_reasons_are_told_after_a_pause_that_doubles(cluster: FakeCluster) -> None:
    """A thousand pods that wait in a busy cluster: each would have a new record at each change of any pod."""
    placements, told = BindingQueue("prod", []), []
    for second in range(200):
        full = placement("db-0", None, failed={"Insufficient cpu": second})
        if cycle(placements, cluster, full, now=float(second)):
            told.append(second)
        elif second:
            assert (
                placements.retry_at()
                == {0: 1, 1: 3, 3: 7, 7: 15, 15: 31, 31: 63, 63: 123, 123: 183, 183: 243}[told[-1]]
            )
    assert told == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_other_reasons_are_told_at_once(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    for second in range(10):
        cycle(placements, cluster, placement("db-0", None, failed={"Insufficient cpu": second}), now=float(second))
    tainted = placement("db-0", None, failed={"node(s) had untolerated taint(s)": 1, "Insufficient cpu": 9})
    assert cycle(placements, cluster, tainted, now=10.0) == [tainted]
    one_less = placement("db-0", None, failed={"node(s) had untolerated taint(s)": 1, "Insufficient cpu": 8})
    assert cycle(placements, cluster, one_less, now=11.0) == [one_less], "the pauses begin anew"


def test_a_pod_that_waited_and_has_a_node_now_is_ordered_at_once(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    cycle(placements, cluster, placement("db-0", None, failed=FULL), now=0.0)
    cycle(placements, cluster, placement("db-0", None, failed={"Insufficient cpu": 2}), now=0.5)
    assert cycle(placements, cluster, placement("db-0", "n1"), now=0.6) == [placement("db-0", "n1")]


def test_it_tells_which_pods_wait_and_which_were_seen_bound_where_they_were_ordered(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [placement("web-0", "n1")])
    for name in ("db-1", "db-2", "web-0"):
        cluster.pod(name)
    cycle(placements, cluster, placement("db-0", "n1"), placement("db-1", "n1"), placement("db-2", None, failed=FULL))
    assert placements.waiting == {"shop/db-2": placement("db-2", None, failed=FULL)}
    cluster.pod("db-0", "n1")
    cluster.pod("db-1", "n2")  # by another scheduler
    cluster.pod("web-0", "n1")  # by an order of an earlier run, which has told it
    cycle(placements, cluster, placement("db-2", None, failed=FULL))
    assert list(placements.seated) == [placement("db-0", "n1")]


@pytest.mark.parametrize("result", ["applied", "noop", "dry-run"])
def test_an_order_that_went_well_stays_assumed(cluster: FakeCluster, result: str) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n1"))
    placements.observe(outcome("db-0", "n1", result), 0.0)
    assert placements.assumed(snapshot(cluster), 0.0) == {"shop/db-0": "n1"}


def test_the_answer_to_an_earlier_order_says_nothing(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [])
    publish(placements, placement("db-0", "n2"))
    placements.observe(outcome("db-0", "n1", "failed"), 0.0)
    assert placements.assumed(snapshot(cluster), 0.0) == {"shop/db-0": "n2"}


def test_a_placement_is_published_under_its_pods_key() -> None:
    change = BindingQueue("prod", []).diff([placement("db-0", "n1")], 0.0)
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


def test_a_change_has_an_order_for_each_placed_pod_and_none_for_one_that_waits() -> None:
    change = BindingQueue("prod", []).diff([placement("db-0", "n1"), placement("web-0", None, failed=FULL)], 0.0)
    assert change.orders == {"shop/db-0": action_of(placement("db-0", "n1"), "prod")}


def test_an_order_of_an_earlier_run_is_assumed_only_once_it_is_decided_again(cluster: FakeCluster) -> None:
    earlier = [placement("db-0", "n1")]
    placements = BindingQueue("prod", earlier)
    assert placements.assumed(snapshot(cluster), 0.0) == {}
    change = placements.diff([placement("db-0", "n1")], 0.0)
    assert (change.placements, change.confirmed) == ([], {"shop/db-0": order_id(placement("db-0", "n1"))})
    placements.commit(change)
    assert placements.assumed(snapshot(cluster), 0.0) == {"shop/db-0": "n1"}


def test_an_earlier_order_that_nobody_answers_is_given_again_after_a_minute(cluster: FakeCluster) -> None:
    placements, order = BindingQueue("prod", [placement("db-0", "n1")]), placement("db-0", "n1")
    assert cycle(placements, cluster, order) == []
    assert (cycle(placements, cluster, now=59.0), placements.retry_at()) == ([], 60.0)
    assert (cycle(placements, cluster, now=60.0), placements.retry_at()) == ([], 61.0)
    assert [row.node for row in cycle(placements, cluster, now=61.0)] == ["n1"]
    assert placements.assumed(snapshot(cluster), 62.0) == {"shop/db-0": "n1"}


def test_an_earlier_order_that_was_carried_out_is_not_given_again(cluster: FakeCluster) -> None:
    placements, order = BindingQueue("prod", [placement("db-0", "n1")]), placement("db-0", "n1")
    placements.observe(outcome("db-0", "n1", "applied"), 0.0)
    assert cycle(placements, cluster, order) == []
    assert placements.retry_at() is None
    assert cycle(placements, cluster, now=100.0) == []


def test_a_pod_that_waited_through_a_dry_run_is_ordered_once_the_binder_writes(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [placement("db-0", "n1")])
    placements.observe(outcome("db-0", "n1", "dry-run"), 0.0)
    assert cycle(placements, cluster, placement("db-0", "n1")) == [placement("db-0", "n1")]
    assert cycle(placements, cluster, placement("db-0", "n1")) == []


def test_an_order_of_an_earlier_run_that_is_decided_otherwise_is_replaced(cluster: FakeCluster) -> None:
    placements = BindingQueue("prod", [placement("db-0", "n1")])
    change = placements.diff([placement("db-0", "n2")], 0.0)
    assert (change.placements, change.confirmed) == ([placement("db-0", "n2")], {})
