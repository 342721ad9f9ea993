"""Binding pods: the order, and carrying it out on a live pod."""

import pytest
from support.build import a_node, a_pod
from support.fakes.kube import FakeKube, Fault

from underhost.agents.sinks.bindings import BindSink, action_of
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.schemas.records import Action, Placement

NODES = {"n1", "n2"}
KEY = "node.cluster.x-k8s.io/esxi-host"


@pytest.fixture
def sink(writer: KubernetesApiWriter) -> BindSink:
    return BindSink(writer, enabled=True, is_node=NODES.__contains__)


def bind(node: str = "n1", uid: str = "uid-web-0") -> Action:
    return order("bind", "pod/shop/web-0", {"uid": uid, "node": node}, "", {})


def test_a_placement_is_the_order_to_bind() -> None:
    placement = Placement("shop/web-0", "u1", "n1", 412, 0, {}, {"pods": 9})
    action = action_of(placement, "prod")
    assert action is not None
    assert (action.kind, action.target, action.desired) == ("bind", "pod/shop/web-0", {"uid": "u1", "node": "n1"})
    assert (action.because, action.snapshot) == ("shop/web-0 is placed on n1 of site prod", {"pods": 9})


def test_a_pod_that_waits_is_no_order() -> None:
    assert action_of(Placement("shop/web-0", "u1", None, None, 0, {"Insufficient cpu": 3}, {}), "prod") is None


async def test_a_waiting_pod_is_bound(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    outcome = await sink.apply(bind())
    assert (outcome.kind, outcome.target) == ("bind", "pod/shop/web-0")
    assert (outcome.result, outcome.reason) == ("applied", "bound to n1")
    assert kube.get("pods", "web-0", "shop")["spec"]["nodeName"] == "n1"


def test_the_labels_of_a_placement_are_part_of_the_order() -> None:
    action = action_of(Placement("shop/web-0", "u1", "n1", 412, 0, {}, {}, {KEY: "esx-1"}), "prod")
    assert action is not None
    assert action.desired == {"uid": "u1", "node": "n1", "labels": {KEY: "esx-1"}}


async def test_a_binding_hands_over_what_is_configured_and_valid_in_the_same_request(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    kube.seed("pods", a_pod("web-0").labels(app="web"))
    labels = {KEY: "esx-1", "app": "another", "rack": "not valid", "zone": "z" * 64}
    sink = BindSink(writer, enabled=True, is_node=NODES.__contains__, keys=[KEY, "rack", "zone"])
    await sink.apply(order("bind", "pod/shop/web-0", {"uid": "uid-web-0", "node": "n1", "labels": labels}, "", {}))
    assert kube.get("pods", "web-0", "shop")["metadata"]["labels"] == {"app": "web", KEY: "esx-1"}
    assert [request.verb for request in kube.requests if request.verb != "version"] == ["bind"]


async def test_a_binding_is_one_request(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    await sink.apply(bind())
    assert [request.verb for request in kube.requests if request.verb != "version"] == ["bind"]


async def test_an_order_delivered_five_times_is_one_request(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    assert [(await sink.apply(bind())).result for _ in range(5)] == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("bind") == 1


async def test_an_order_from_before_a_restart_is_not_carried_out_twice(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await sink.again(bind())
    assert (outcome.result, outcome.reason) == ("noop", "bound to n1 already")
    assert kube.count("bind") == 0


async def test_an_order_from_before_a_restart_that_was_not_carried_out_is(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    assert (await sink.again(bind())).result == "applied"
    assert kube.get("pods", "web-0", "shop")["spec"]["nodeName"] == "n1"


async def test_a_dry_run_binds_nothing(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    kube.seed("pods", a_pod("web-0"))
    outcome = await BindSink(writer, enabled=False, is_node=NODES.__contains__).apply(bind())
    assert (outcome.result, outcome.reason) == ("dry-run", "would bind to n1")
    assert kube.count("bind") == 0


@pytest.mark.parametrize("enabled", [pytest.param(True, id="for good"), pytest.param(False, id="in a dry run")])
async def test_a_pod_is_never_bound_to_a_node_that_is_not_there(
    kube: FakeKube, writer: KubernetesApiWriter, enabled: bool
) -> None:
    kube.seed("pods", a_pod("web-0"))
    sink = BindSink(writer, enabled=enabled, is_node=NODES.__contains__)
    outcome = await sink.apply(bind(node="n9"))
    assert (outcome.result, outcome.reason) == ("refused", "there is no node n9")
    assert kube.count("bind") == 0


async def test_a_node_that_the_picture_lacks_is_asked_for(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    kube.seed("nodes", a_node("n9"))
    assert (await sink.apply(bind(node="n9"))).reason == "bound to n9"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param("n1", ("noop", "bound to n1 already"), id="by the same order"),
        pytest.param("n2", ("refused", "bound to n2 already"), id="by another scheduler"),
    ],
)
async def test_a_lost_race_is_told_by_who_won_it(
    node: str, expected: tuple[str, str], kube: FakeKube, sink: BindSink
) -> None:
    kube.seed("pods", a_pod("web-0").on(node))
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason) == expected
    assert kube.get("pods", "web-0", "shop")["spec"]["nodeName"] == node


async def test_another_pod_of_the_same_name_is_not_bound(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    outcome = await sink.apply(bind(uid="uid-of-old"))
    assert (outcome.result, outcome.reason) == ("refused", "pod shop/web-0 is another one now (uid uid-web-0)")
    assert "nodeName" not in kube.get("pods", "web-0", "shop")["spec"]


async def test_a_pod_that_is_gone_is_refused(kube: FakeKube, sink: BindSink) -> None:
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason) == ("refused", f"{kube.url}: pod not found (404)")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param("n1", ("noop", "bound to n1 already"), id="it was carried out"),
        pytest.param("", ("failed", "a fault was asked for (500)"), id="it was not"),
    ],
)
async def test_where_nobody_knows_what_became_of_the_request_the_pod_is_looked_at(
    node: str, expected: tuple[str, str], kube: FakeKube, sink: BindSink
) -> None:
    kube.seed("pods", a_pod("web-0").on(node))
    kube.faults = [Fault("bind", status=500)]
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason.removeprefix(f"{kube.url}: ")) == expected


@pytest.mark.parametrize(
    ("faults", "result", "status"),
    [
        pytest.param([Fault("bind", status=403)], "refused", 403, id="no right to bind"),
        pytest.param([Fault("bind", status=409)], "refused", 409, id="a conflict that the pod does not explain"),
        pytest.param([Fault("bind", status=429)], "failed", 429, id="the server has too much to do"),
        pytest.param([Fault("bind", status=500), Fault("get", status=503)], "failed", 503, id="the server is away"),
    ],
)
async def test_what_the_server_answers_is_an_outcome(
    faults: list[Fault], result: str, status: int, kube: FakeKube, sink: BindSink
) -> None:
    kube.seed("pods", a_pod("web-0"))
    kube.faults = faults
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason) == (result, f"{kube.url}: a fault was asked for ({status})")


async def test_an_order_that_failed_is_carried_out_when_it_comes_again(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    kube.faults = [Fault("bind", status=429)]
    assert [(await sink.apply(bind())).result for _ in range(2)] == ["failed", "applied"]


async def test_an_order_that_was_refused_is_carried_out_when_it_comes_again(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    assert (await sink.apply(bind(node="n9"))).result == "refused"
    kube.seed("nodes", a_node("n9"))
    assert (await sink.apply(bind(node="n9"))).reason == "bound to n9"


async def test_a_command_of_the_wrong_shape_is_refused(sink: BindSink) -> None:
    outcome = await sink.apply(order("bind", "pod/shop/web-0", {"node": 3}, "", {}))
    assert outcome.result == "refused"
    assert outcome.reason.startswith("not a bind command: ")


@pytest.mark.parametrize(
    ("scheduler", "result", "reason"),
    [
        pytest.param("underhost", "applied", "bound to n1", id="a pod of ours"),
        pytest.param(
            "default-scheduler", "refused", "pod shop/web-0 is scheduler default-scheduler's to place", id="not ours"
        ),
    ],
)
async def test_what_another_worker_has_decided_is_done_only_for_pods_of_our_scheduler(
    scheduler: str, result: str, reason: str, kube: FakeKube, sink: BindSink
) -> None:
    kube.seed("pods", a_pod("web-0").spec(schedulerName=scheduler))
    outcome = await sink.told(bind())
    assert (outcome.result, outcome.reason) == (result, reason)
    assert kube.count("bind") == (1 if result == "applied" else 0)
