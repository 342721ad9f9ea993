"""A site that is followed must say what one that is compiled anew says, whatever has changed in between."""

import random
from dataclasses import replace

import pytest
from support.build import (
    HOST,
    ZONE,
    a_namespace,
    a_node,
    a_pod,
    a_service,
    a_site,
    a_workload,
    app,
    nodes,
    spread,
    term,
)
from support.sites.random_cluster import RandomCluster

from underhost.agents.compiled.state import State
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.pending import place_all
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import BadObjectError

OPTIONS = Options()


def changed(snapshot: Snapshot, spare: Snapshot, pick: random.Random) -> Snapshot:
    """One change: a pod comes, goes or moves, a node comes or goes, a host or a namespace changes."""
    kind = pick.randrange(6)
    if kind in (0, 1):
        key = pick.choice(list(spare.pods))
        return replace(snapshot, pods={**snapshot.pods, key: spare.pods[key]})
    if kind == 2:
        gone = pick.choice(list(snapshot.pods))
        return replace(snapshot, pods={key: pod for key, pod in snapshot.pods.items() if key != gone})
    if kind == 3:
        name = pick.choice(list(spare.nodes))
        return replace(snapshot, nodes={**snapshot.nodes, name: spare.nodes[name]})
    if kind == 4:
        gone = pick.choice(list(snapshot.nodes))
        return replace(snapshot, nodes={name: node for name, node in snapshot.nodes.items() if name != gone})
    return replace(snapshot, node_hosts=spare.node_hosts, namespaces=spare.namespaces if pick.random() < 0.5 else {})


@pytest.mark.parametrize("seed", range(12))
def test_after_any_changes_the_site_is_the_same_as_a_new_one(seed: int) -> None:
    pick, evaluator = random.Random(seed), Evaluator(OPTIONS)
    snapshot, spare = RandomCluster(seed).snapshot(), RandomCluster(1000 + seed).snapshot()
    for _ in range(15):
        state, anew = evaluator.state(snapshot), Evaluator(OPTIONS)
        assert placed(state) == placed(anew.state(snapshot))
        assert evaluator.update(snapshot) == anew.update(snapshot) == check(snapshot, OPTIONS)
        snapshot = changed(snapshot, spare, pick)


def placed(state: State) -> list[object]:
    """Every placement, by name."""
    with state.trial():
        return [(pod.key, decision) for pod, decision in place_all(state)]


def test_namespace_labels_and_service_selectors_are_read_anew_when_they_change() -> None:
    evaluator = Evaluator(OPTIONS)
    selector = {"matchLabels": {"env": "prod"}}
    pods = [
        a_pod("db", "data").labels(app="db").on("n1"),
        a_pod("web").apart(term(HOST, app("db"), namespaceSelector=selector)),
        a_pod("api").labels(app="api"),
        a_pod("big").needs(cpu="2").on("n2"),
    ]
    before = a_site(*nodes("n1", "n2"), *pods, a_namespace("data", env="dev"), a_service("shop/s", app="none"))
    after = a_site(*nodes("n1", "n2"), *pods, a_namespace("data", env="prod"), a_service("shop/s", app="api"))
    changed = replace(before, namespaces=after.namespaces, services=after.services)
    places = []
    for snapshot in (before, changed):
        model = evaluator.state(snapshot).model
        places.append({pod.key: model.nodes.names[decision.node or 0] for pod, decision in place_all(State(model))})
        assert bool(model.classes[model.pending[1].cls].soft) is (snapshot is changed)
    assert [one["shop/web"] for one in places] == ["n1", "n2"]


def test_workloads_that_come_and_go_together_spread_their_pods_and_no_others() -> None:
    pods = [
        a_pod("web").labels(app="web").owned_by("ReplicaSet/web"),
        a_pod("db").labels(app="db").owned_by("StatefulSet/db"),
        a_pod("api").labels(app="api").owned_by("ReplicaSet/api"),
        a_pod("own").labels(app="web").owned_by("ReplicaSet/web").spreads(spread(ZONE, app("web"))),
        a_pod("far", "other").labels(app="web").owned_by("ReplicaSet/web"),
        a_pod("ran").labels(app="web").owned_by("ReplicaSet/web").on("n1"),
    ]
    kinds = (("ReplicaSet", "web"), ("StatefulSet", "db"))
    workloads = a_site(*(a_workload(kind, name).selects(app(name)) for kind, name in kinds)).workloads
    before = a_site(*nodes("n1", "n2"), *pods)
    evaluator = Evaluator(OPTIONS)
    for snapshot in (before, replace(before, workloads=workloads), before):
        state, anew = evaluator.state(snapshot), Evaluator(OPTIONS)
        spread_by = {pod.key for pod in state.model.pending if state.model.classes[pod.cls].system_default}
        assert spread_by == (set() if snapshot is before else {"shop/web", "shop/db"})
        assert placed(state) == placed(anew.state(snapshot))
        assert evaluator.update(snapshot) == anew.update(snapshot)
    assert evaluator.rebuilt == 1


def test_a_pod_of_a_node_that_vanishes_is_unbound_and_running_again_when_it_is_back() -> None:
    evaluator = Evaluator(OPTIONS)
    whole = a_site(*nodes("n1", "n2"), a_pod("web").on("n2"))
    half = replace(whole, nodes={"n1": whole.nodes["n1"]})
    found = []
    for snapshot in (whole, half, whole):
        model = evaluator.state(snapshot).model
        found.append((list(model.running.keys), [pod.key for pod in model.unbound]))
    assert found == [(["shop/web"], []), ([], ["shop/web"]), (["shop/web"], [])]


def test_a_wrong_pod_is_named_every_time_and_forgotten_once_it_is_gone() -> None:
    evaluator = Evaluator(OPTIONS)
    good = a_site(a_node("n1"), a_pod("web").on("n1"))
    bad = a_site(a_node("n1"), a_pod("web").on("n1"), a_pod("new").spec(affinity=[]), a_pod("big").needs(cpu="x"))
    for _ in range(2):
        with pytest.raises(BadObjectError, match=r"^Pod shop/(new: spec.affinity|big: spec.containers\[0\])"):
            evaluator.state(bad)
    assert evaluator.state(good).model.running.keys == ["shop/web"]
