"""A label that nobody named before is learnt: only the pods that carry it are classed again, and the site stays."""

from dataclasses import replace
from typing import Any

import pytest
from support.build import (
    HOST,
    Built,
    PodBuilder,
    a_namespace,
    a_node,
    a_pod,
    a_service,
    a_site,
    a_workload,
    app,
    spread,
    term,
)

from underhost.agents.compiled.state import State
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.extender.picture import HostPicture
from underhost.agents.schedule.pending import place_all
from underhost.agents.site.snapshot import Options, Snapshot

OPTIONS = Options()
NODES = [a_node("n1"), a_node("n2"), a_node("n3")]
EXISTS = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
THERE = [
    a_pod("db-0").labels(app="db", team="red").on("n1").apart(term(HOST, app("db"))),
    a_pod("web-0").labels(app="web", team="blue").on("n2"),
    a_pod("x-0", "evil").labels(app="x", team="x").on("n3"),
    a_pod("waits").labels(app="web").apart(term(HOST, app("db"))),
    a_namespace("evil", env="dev"),
    a_namespace("shop", env="prod"),
]


def placed(state: State) -> list[object]:
    with state.trial():
        return [(pod.key, decision.node) for pod, decision in place_all(state)]


def followed(before: Snapshot, *after: Snapshot) -> Evaluator:
    """The evaluator that has followed the changes, and says after each what one that begins anew says."""
    evaluator = Evaluator(OPTIONS)
    for snapshot in (before, *after):
        anew = Evaluator(OPTIONS)
        assert evaluator.update(snapshot) == anew.update(snapshot) == check(snapshot, OPTIONS)
        assert placed(evaluator.state(snapshot)) == placed(anew.state(snapshot))
    return evaluator


def site(*more: Built, **fields: Any) -> Snapshot:
    return a_site(*NODES, *THERE, *more, **fields)


def with_pods(before: Snapshot, *pods: PodBuilder) -> Snapshot:
    """The same objects, and these pods."""
    return replace(before, pods={**before.pods, **{pod.key: pod.build() for pod in pods}})


EVIL = a_pod("x-1", "evil").labels(app="x")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(EVIL.on("n3").apart(term(HOST, {"new": "1"})), id="a label that no pod carries"),
        pytest.param(EVIL.on("n3").apart(term(HOST, {"team": "x"})), id="a label of its own namespace"),
        pytest.param(EVIL.on("n2").apart(term(HOST, {"team": "blue"}, namespaces=["shop"])), id="of another namespace"),
        pytest.param(EVIL.on("n1").apart(term(HOST, EXISTS, namespaceSelector={})), id="of every namespace"),
        pytest.param(
            EVIL.on("n2").apart(term(HOST, EXISTS, namespaceSelector={"matchLabels": {"env": "prod"}})),
            id="of namespaces that are selected",
        ),
        pytest.param(EVIL.on("n3").near(term(HOST, {"team": "x"})), id="affinity"),
        pytest.param(EVIL.prefers_apart(5, term(HOST, {"team": "x"})), id="a preference"),
        pytest.param(EVIL.on("n3").spreads(spread(HOST, {"team": "x"})), id="spread"),
        pytest.param(
            EVIL.labels(team="x").spreads(spread(HOST, app("x"), matchLabelKeys=["team"])), id="spread by key"
        ),
    ],
)
def test_a_new_label_in_a_pods_terms_compiles_nothing_anew(pod: PodBuilder) -> None:
    before = site()
    late = a_pod("web-1").labels(app="web", team="blue", new="1")
    assert followed(before, with_pods(before, pod), with_pods(before, pod, late)).rebuilt == 1


def test_a_new_label_each_time_compiles_nothing_anew() -> None:
    before = site()
    pods = [a_pod(f"y-{at}", "evil").apart(term(HOST, {f"key-{at}": "1"}, namespaceSelector={})) for at in range(20)]
    assert followed(before, *(with_pods(before, *pods[:at]) for at in range(1, 20))).rebuilt == 1


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(a_service("evil/s", team="x"), id="a Service"),
        pytest.param(a_workload("ReplicaSet", "x", 2, "evil").selects({"matchLabels": {"team": "x"}}), id="a workload"),
    ],
)
def test_a_new_label_in_an_object_that_selects_pods_compiles_nothing_anew(more: Built) -> None:
    late = a_pod("x-9", "evil").labels(app="x", team="x").owned_by("ReplicaSet/x")
    before = site()
    after = replace(site(more), pods=before.pods, nodes=before.nodes, namespaces=before.namespaces)
    assert followed(before, after, with_pods(after, late)).rebuilt == 1


@pytest.mark.parametrize(
    ("labels", "rebuilt"),
    [
        pytest.param({"env": "dev", "note": "x"}, 1, id="what no term selects by"),
        pytest.param({"env": "prod"}, 2, id="what a term selects by"),
    ],
)
def test_a_namespace_compiles_anew_only_where_a_term_selects_another_by_now(
    labels: dict[str, str], rebuilt: int
) -> None:
    chooses = EVIL.apart(term(HOST, app("db"), namespaceSelector={"matchLabels": {"env": "prod"}}))
    before = with_pods(site(), chooses)
    after = replace(before, namespaces={**before.namespaces, "evil": a_namespace("evil", **labels).build()})
    new = replace(after, namespaces={**after.namespaces, "new": a_namespace("new", env="dev").build()})
    assert followed(before, after, with_pods(new, a_pod("z", "new").labels(app="db").on("n1"))).rebuilt == rebuilt


def test_the_extenders_picture_learns_a_label_of_a_pod_that_it_is_asked_about() -> None:
    before = replace(site(), node_hosts={})
    picture = HostPicture(before, OPTIONS)
    asked = EVIL.apart(term(HOST, {"team": "blue"}, namespaces=["shop"]))
    cls, _ = picture.class_of(asked.key, asked.build())
    [term_] = picture.state.model.classes[cls].required_anti
    assert term_.selector is not None
    assert term_.selector.classes == (picture.class_at("shop/web-0"),)


def test_what_is_kept_of_a_pod_with_thousands_of_terms_is_bounded() -> None:
    before = site()
    evaluator = Evaluator(OPTIONS)
    evaluator.update(before)
    vast = EVIL.on("n3").apart(*(term(HOST, {f"k{at}": "1"}) for at in range(5000)))
    evaluator.update(with_pods(before, vast))
    model = evaluator.state(before).model
    assert sum(cls.uncounted for cls in model.classes) == 5000 - 64
    assert len(model.selectors.selectors) < 100
    assert max(len(raw.affinity) for raw in model.classifier.raws) < 10_000
    assert evaluator.rebuilt == 1
