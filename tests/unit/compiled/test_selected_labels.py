"""Labels are cut down to what selectors name, before pods are numbered: never too narrow, whatever comes later."""

from dataclasses import replace

import pytest
from msgspec import Raw
from msgspec.json import encode
from support.build import HOST, a_node, a_pod, a_site, app, nodes, term

from underhost.agents.compiled.classes import Parser
from underhost.agents.compiled.model import compile
from underhost.agents.compiled.selected_labels import SelectedLabels
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import BadObjectError
from underhost.schemas.kubernetes import Metadata, Service, ServiceSpec, Workload, WorkloadSpec


def labelled(name: str, node: str, **labels: str):  # type: ignore[no-untyped-def]  # a builder
    return a_pod(name).put("metadata", "labels", value=labels).on(node)


def test_labels_of_their_own_do_not_make_pods_of_one_application_differ_to_a_reader() -> None:
    pods = [labelled(f"web-{at}", "n1", app="web", pod=f"web-{at}").apart(term(HOST, app("web"))) for at in range(5)]
    assert len(compile(a_site(a_node("n1"), *pods), Options()).classes) == 1


def test_a_label_that_a_later_pod_names_tells_pods_apart_that_were_read_before() -> None:
    evaluator, here = Evaluator(Options()), nodes("n1", "n2")
    first = a_site(*here, labelled("a", "n1", app="web", tier="gold"), labelled("b", "n2", app="web", tier="tin"))
    assert len(evaluator.state(first).model.classes) == 1
    late = a_pod("late").apart(term(HOST, {"matchLabels": {"tier": "gold"}})).on("n1")
    second = replace(first, pods={**first.pods, "shop/late": late.build()})
    (found,) = evaluator.update(second).findings
    assert (found.rule, found.pod, found.peers) == ("InterPodAffinity", "shop/a", ["shop/late"])


def test_services_and_owners_name_labels_as_well() -> None:
    service = Service(Metadata(name="web", namespace="shop"), ServiceSpec(Raw(b'{"app":"web"}')))
    owner = Workload(
        "ReplicaSet", Metadata(name="web", namespace="shop"), "apps/v1",
        WorkloadSpec(selector=Raw(b'{"matchExpressions":[{"key":"tier","operator":"Exists"}]}')),
    )  # fmt: skip
    selected = SelectedLabels(
        Snapshot(services={"shop/web": service}, workloads={"ReplicaSet/shop/web": owner}), Parser(64)
    )
    assert selected.of(b'{"tier":"gold","pod":"web-1","app":"web"}') == b'{"app":"web","tier":"gold"}'


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([], id="few keys"),
        pytest.param([f"key-{at}" for at in range(40)], id="many keys"),
        pytest.param(['a "quoted" key', "\\", "", "ключ"], id="keys that no API server lets in"),
    ],
)
@pytest.mark.parametrize("checked", [False, True], ids=["", "checked as they were read"])
def test_labels_are_cut_alike_however_many_keys_are_named(more: list[str], checked: bool) -> None:
    selector = encode(dict.fromkeys(["app", "tier", *more], "x"))
    service = Service(Metadata(name="web", namespace="shop"), ServiceSpec(Raw(selector)))
    selected = SelectedLabels(Snapshot(services={"shop/web": service}, checked=checked), Parser(64))
    assert selected.of(b'{"tier":"\\u0067old", "pod":"web-1","app":"web"}') == b'{"app":"web","tier":"gold"}'
    assert selected.of(b'{"pod":"web-1"}') == selected.of(b"null") == selected.of(b"{}") == b"{}"
    assert selected.of(b'{"app":1}') == b'{"app":1}', "wrong, and refused as it is"


def test_what_is_wrong_in_labels_that_do_not_count_is_kept_to_be_refused() -> None:
    service = Service(Metadata(name="web", namespace="shop"), ServiceSpec(Raw(b'{"app":"web"}')))
    selected = SelectedLabels(Snapshot(services={"shop/web": service}), Parser(64))
    assert selected.of(b'{"app":"web","pod":1}') == b'{"app":"web","pod":1}'


def test_labels_that_are_no_text_are_still_refused_by_the_name_of_their_pod() -> None:
    broken = a_pod("web").put("metadata", "labels", value={"app": 1}).on("n1")
    with pytest.raises(BadObjectError, match="web"):
        compile(a_site(a_node("n1"), broken), Options())
