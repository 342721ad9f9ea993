"""A compiler that remembers must say what one that starts anew says, whatever has changed in between."""

import random
from dataclasses import replace

import pytest
from support.build import HOST, a_namespace, a_node, a_pod, a_service, a_site, app, nodes, term
from support.sites.random_cluster import RandomCluster

from underhost.agents.compiled.model import Compiler, Model, compile
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.check import check
from underhost.agents.schedule.pending import place_all
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import BadObjectError

OPTIONS = Options()


def said(snapshot: Snapshot, model: Model) -> object:
    """Every finding and every placement, by name."""
    return check(snapshot, OPTIONS, model), [(pod.key, decision) for pod, decision in place_all(State(model))]


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
def test_after_any_changes_the_model_is_the_same_as_a_new_one(seed: int) -> None:
    pick, compiler = random.Random(seed), Compiler()
    snapshot, spare = RandomCluster(seed).snapshot(), RandomCluster(1000 + seed).snapshot()
    for _ in range(15):
        model, anew = compiler.compile(snapshot, OPTIONS), compile(replace(snapshot), OPTIONS)
        assert said(snapshot, model) == said(snapshot, anew)
        snapshot = changed(snapshot, spare, pick)


def test_what_did_not_change_is_shared_between_models() -> None:
    compiler = Compiler()
    snapshot = a_site(*nodes("n1", "n2"), a_pod("web").on("n1"))
    first = compiler.compile(snapshot, OPTIONS)
    moved = replace(snapshot, pods={"shop/web": a_pod("web").on("n2").build()})
    second = compiler.compile(moved, OPTIONS)
    assert second.nodes is first.nodes and second.topology is first.topology and second.classes is first.classes
    assert compiler.compile(moved, OPTIONS) is compile(moved, OPTIONS) is second
    assert compile(moved, Options(physical_host="required")) is not second
    assert (first.running.nodes.tolist(), second.running.nodes.tolist()) == ([0], [1])


def test_namespace_labels_and_service_selectors_are_read_anew_when_they_change() -> None:
    compiler = Compiler()
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
    placed = []
    for snapshot in (before, changed):
        model = compiler.compile(snapshot, OPTIONS)
        placed.append({pod.key: model.nodes.names[decision.node or 0] for pod, decision in place_all(State(model))})
        assert bool(model.classes[model.pending[1].cls].soft) is (snapshot is changed)
    assert [one["shop/web"] for one in placed] == ["n1", "n2"]


def test_a_pod_of_a_node_that_vanishes_is_unbound_and_running_again_when_it_is_back() -> None:
    compiler = Compiler()
    whole = a_site(*nodes("n1", "n2"), a_pod("web").on("n2"))
    half = replace(whole, nodes={"n1": whole.nodes["n1"]})
    found = [compiler.compile(snapshot, OPTIONS) for snapshot in (whole, half, whole)]
    assert [model.running.keys for model in found] == [["shop/web"], [], ["shop/web"]]
    assert [pod.key for pod in found[1].unbound] == ["shop/web"]


def test_a_wrong_pod_is_named_every_time_and_forgotten_once_it_is_gone() -> None:
    compiler = Compiler()
    good = a_site(a_node("n1"), a_pod("web").on("n1"))
    bad = a_site(a_node("n1"), a_pod("web").on("n1"), a_pod("new").spec(affinity=[]), a_pod("big").needs(cpu="x"))
    for _ in range(2):
        with pytest.raises(BadObjectError, match=r"^Pod shop/(new: spec.affinity|big: spec.containers\[0\])"):
            compiler.compile(bad, OPTIONS)
    assert compiler.compile(good, OPTIONS).running.keys == ["shop/web"]


def test_a_compiler_forgets_the_classes_of_pods_long_gone() -> None:
    compiler = Compiler()
    pods = [a_pod(f"web-{i}", f"ns-{i}").on("n1") for i in range(6000)]
    compiler.compile(a_site(a_node("n1"), *pods), OPTIONS)
    few = a_site(a_node("n1"), *pods[:3])
    for _ in range(2):
        model = compiler.compile(replace(few), OPTIONS)
        assert [model.classes[cls].namespace for cls in model.running.classes] == ["ns-0", "ns-1", "ns-2"]
    assert len(compiler._reader.classes) == 3
