"""Host labels of running pods: which pods are ordered anew after a vMotion, which are left, and when."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.build import Built, a_budget, a_namespace, a_node, a_pod, a_service, a_site, a_workload

from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, REFUSED, outcome
from underhost.agents.sinks.pod_labels.decider import PodLabelDecider
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

KEY, RACK = "node.cluster.x-k8s.io/esxi-host", "example.com/rack"
HOSTS = [
    Host(id="h1", name="esx-1", labels={"rack": "r1"}),
    Host(id="h2", name="esx-2", labels={"rack": "r2"}),
    Host(id="h3", name="esx-3"),
]
SETTINGS = HostLabelSettings.model_validate({"derived": [{"key": RACK, "from": "rack"}]})
ON_1, ON_2 = {KEY: "esx-1", RACK: "r1"}, {KEY: "esx-2", RACK: "r2"}


def site(host: str, *objects: Built, hosts: list[Host] = HOSTS, **pods: Mapping[str, str]) -> Snapshot:
    """Pods of `shop` on one node, which is on this host."""
    made = [a_pod(name.replace("_", "-")).on("n1").labels(labels) for name, labels in pods.items()]
    return a_site(a_node("n1"), *made, *objects, on={"n1": host}, hosts=hosts)


def wanted(actions: list[Action]) -> dict[str, object]:
    return {action.target: action.desired["labels"] for action in actions}


def test_pods_follow_their_node_to_its_new_host_in_all_labels() -> None:
    decider = PodLabelDecider(SETTINGS)
    pods = {"db_0": ON_1, "db_1": {**ON_1, "app": "db"}, "other": {"app": "db"}}
    assert decider.decide(site("h1", **pods), now=0.0) == []
    actions = decider.decide(site("h2", **pods), now=1.0)
    assert [(one.kind, one.target, one.desired, one.because) for one in actions] == [
        (
            "pod-label",
            f"pod/shop/{name}",
            {"uid": f"uid-shop-{name}", "labels": ON_2, "selected": {}},
            f"pod shop/{name} is on node n1, which runs on host esx-2",
        )
        for name in ("db-0", "db-1")
    ]


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        pytest.param(site("h3", db=ON_1), {KEY: "esx-3", RACK: None}, id="a rack that the new host has not goes"),
        pytest.param(site("h2", db={KEY: "esx-1"}), ON_2, id="and comes where it has one"),
        pytest.param(site("h2", db={KEY: "esx-2", RACK: "r9"}), {RACK: "r2"}, id="the rack alone is wrong"),
        pytest.param(site("", db=ON_1), None, id="where its host is not known it is left"),
        pytest.param(replace(site("h2", db=ON_1), hosts={}), None, id="nor one that vSphere has not shown"),
        pytest.param(site("h2", db={RACK: "r1"}), None, id="a pod without the host label is nobody of ours"),
        pytest.param(site("h2", db={"rack": "r1", "from": KEY}), None, id="nor one whose value is called like it"),
        pytest.param(
            site("h2", a_namespace("shop", **{"underhost.io/host-label": "false"}), db=ON_1),
            None,
            id="the namespace says no",
        ),
        pytest.param(site("h2", a_pod("db").on("n1").labels(ON_1).deleted()), None, id="it is being deleted"),
        pytest.param(site("h2", a_pod("db").on("n1").labels(ON_1).finished()), None, id="it has finished"),
        pytest.param(site("h2", a_pod("db").labels(ON_1)), None, id="it is not bound"),
    ],
)
def test_what_is_ordered_for_a_pod(picture: Snapshot, expected: dict[str, str] | None) -> None:
    actions = PodLabelDecider(SETTINGS).decide(picture, now=0.0)
    assert wanted(actions) == ({} if expected is None else {"pod/shop/db": expected})


@pytest.mark.parametrize(
    ("selecting", "who"),
    [
        pytest.param(a_service("shop/web", **{KEY: "esx-1"}), "Service/shop/web", id="a Service"),
        pytest.param(
            a_workload("ReplicaSet", "web").selects({"matchLabels": {KEY: "x"}}), "ReplicaSet/shop/web", id="an owner"
        ),
        pytest.param(
            a_budget("web", {"matchExpressions": [{"key": KEY, "operator": "Exists"}]}),
            "PodDisruptionBudget/shop/web",
            id="a budget",
        ),
    ],
)
def test_a_label_that_somebody_selects_by_stays_and_is_told_once(selecting: Built, who: str) -> None:
    decider = PodLabelDecider(HostLabelSettings())
    picture = site("h2", selecting, db={KEY: "esx-1"})
    [action] = decider.decide(picture, now=0.0)
    assert action.desired == {"uid": "uid-shop-db", "labels": {}, "selected": {KEY: who}}
    decider.observe(outcome(action, REFUSED, ""), now=0.1)
    for now in (30.0, 700.0, 7000.0):
        assert decider.decide(picture, now=now) == []
        assert decider.decide(site("h2", selecting, db={KEY: "esx-1", "v": str(now)}), now=now) == []


def test_the_other_labels_of_such_a_pod_are_written() -> None:
    picture = site("h2", a_service("shop/web", **{KEY: "esx-1"}), db=ON_1)
    [action] = PodLabelDecider(SETTINGS).decide(picture, now=0.0)
    assert (action.desired["labels"], action.desired["selected"]) == ({RACK: "r2"}, {KEY: "Service/shop/web"})


def test_once_nobody_selects_by_it_any_more_the_label_is_ordered() -> None:
    decider = PodLabelDecider(HostLabelSettings())
    decider.decide(site("h2", a_service("shop/web", **{KEY: "esx-1"}), db={KEY: "esx-1"}), now=0.0)
    assert wanted(decider.decide(site("h2", db={KEY: "esx-1"}), now=20.0)) == {"pod/shop/db": {KEY: "esx-2"}}


def test_where_a_service_goes_pods_are_looked_at_though_they_are_as_they_were() -> None:
    decider, picture = PodLabelDecider(HostLabelSettings()), site("h2", a_service("shop/web", **{KEY: "x"}), db=ON_1)
    decider.decide(picture, now=0.0)
    actions = decider.decide(replace(picture, services={}), now=20.0)
    assert wanted(actions) == {"pod/shop/db": {KEY: "esx-2"}}


def test_a_host_that_gets_another_rack_tells_its_pods() -> None:
    decider = PodLabelDecider(SETTINGS)
    assert decider.decide(site("h1", db=ON_1), now=0.0) == []
    hosts = [Host(id="h1", name="esx-1", labels={"rack": "r7"}), *HOSTS[1:]]
    assert wanted(decider.decide(site("h1", hosts=hosts, db=ON_1), now=1.0)) == {"pod/shop/db": {RACK: "r7"}}


def test_a_pod_bound_with_the_host_that_its_node_has_just_left_is_ordered() -> None:
    decider, picture = PodLabelDecider(SETTINGS), site("h2")
    assert decider.decide(picture, now=0.0) == []
    bound = replace(picture, pods=site("h2", db=ON_1).pods)
    assert wanted(decider.decide(bound, now=1.0)) == {"pod/shop/db": ON_2}


def test_a_vm_that_flaps_costs_its_pods_one_write_and_the_last_host_wins() -> None:
    decider = PodLabelDecider(SETTINGS)
    [first] = decider.decide(site("h2", db=ON_1), now=0.0)
    decider.observe(outcome(first, APPLIED, ""), now=0.1)
    assert decider.decide(site("h2", db=ON_2), now=0.2) == []
    for second in range(1, 10):
        assert decider.decide(site("h1" if second % 2 else "h2", db=ON_2), now=float(second)) == []
    assert decider.due == 10.0
    assert wanted(decider.decide(site("h1", db=ON_2), now=10.0)) == {"pod/shop/db": ON_1}


@pytest.mark.parametrize(
    ("result", "again"),
    [
        pytest.param("", 30.0, id="lost"),
        pytest.param(FAILED, 31.0, id="failed"),
        pytest.param(REFUSED, 601.0, id="refused"),
        pytest.param(DRY_RUN, None, id="a dry run is not repeated"),
    ],
)
def test_when_the_same_is_ordered_again(result: str, again: float | None) -> None:
    decider, picture = PodLabelDecider(SETTINGS), site("h2", db=ON_1)
    [action] = decider.decide(picture, now=0.0)
    if result:
        decider.observe(outcome(action, result, ""), now=1.0)
    if again is None:
        assert decider.decide(picture, now=7000.0) == []
        return
    assert decider.decide(picture, now=again - 0.1) == []
    assert wanted(decider.decide(picture, now=again)) == {"pod/shop/db": ON_2}


def test_nothing_is_ordered_before_the_picture_shows_our_own_write() -> None:
    held = {"pod/shop/db": 61.0}
    decider = PodLabelDecider(SETTINGS, lambda target: held.get(target, 0.0))
    [action] = decider.decide(site("h2", db=ON_1), now=0.0)
    decider.observe(outcome(action, APPLIED, ""), now=1.0)
    assert decider.decide(site("h3", db=ON_1), now=20.0) == []
    assert decider.due == 61.0
    held.clear()
    assert wanted(decider.decide(site("h3", db=ON_2), now=21.0)) == {"pod/shop/db": {KEY: "esx-3", RACK: None}}


def test_of_several_pods_the_one_that_is_due_first_is_waited_for() -> None:
    held = {"pod/shop/db-0": 61.0, "pod/shop/db-1": 71.0}
    decider, pods = PodLabelDecider(SETTINGS, lambda target: held.get(target, 0.0)), {"db_0": ON_1, "db_1": ON_1}
    decider.decide(site("h2", **pods), now=0.0)
    assert decider.decide(site("h3", **pods), now=40.0) == []
    assert decider.due == 61.0


def test_nothing_is_waited_for_after_a_dry_run() -> None:
    decider, picture = PodLabelDecider(SETTINGS), site("h2", db=ON_1)
    [action] = decider.decide(picture, now=0.0)
    decider.observe(outcome(action, DRY_RUN, ""), now=1.0)
    decider.decide(picture, now=40.0)
    assert decider.due is None


def test_a_pod_that_is_gone_is_forgotten() -> None:
    decider = PodLabelDecider(SETTINGS)
    decider.decide(site("h2", db=ON_1), now=0.0)
    assert decider.decide(site("h2"), now=1.0) == []
    assert decider.due is None
    assert wanted(decider.decide(site("h2", db=ON_1), now=2.0)) == {"pod/shop/db": ON_2}, "the next pod of this name"


def test_after_a_restart_what_is_right_is_left_alone() -> None:
    assert PodLabelDecider(SETTINGS).decide(site("h2", db=ON_2), now=0.0) == []
