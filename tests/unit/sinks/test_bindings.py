"""Binding pods: the order, and carrying it out on a live pod."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_kube import FakeKube, Fault, a_pod

from underhost.agents.sinks.bindings import BindSink, action_of
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.schemas.records import Action, Placement
from underhost.streams.kubernetes.client import connect


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        yield server


@pytest.fixture
async def writer(kube: FakeKube, tmp_path: Path) -> AsyncIterator[KubernetesApiWriter]:
    async with await connect(kube.settings(tmp_path)) as client:
        yield KubernetesApiWriter(client)


@pytest.fixture
def sink(writer: KubernetesApiWriter) -> BindSink:
    return BindSink(writer, enabled=True)


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


async def test_an_order_delivered_five_times_is_one_binding(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    assert [(await sink.apply(bind())).result for _ in range(5)] == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("bind") == 1


async def test_a_dry_run_binds_nothing(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    kube.seed("pods", a_pod("web-0"))
    outcome = await BindSink(writer, enabled=False).apply(bind())
    assert (outcome.result, outcome.reason) == ("dry-run", "would bind to n1")
    assert kube.count("bind") == 0


async def test_a_pod_that_is_bound_elsewhere_stays_there(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0", node="n2"))
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason) == ("refused", "bound to n2 already")
    assert kube.count("bind") == 0


async def test_another_pod_of_the_same_name_is_not_bound(kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    outcome = await sink.apply(bind(uid="uid-of-old"))
    assert (outcome.result, outcome.reason) == ("refused", "pod shop/web-0 is another one now (uid uid-web-0)")
    assert kube.count("bind") == 0


async def test_a_pod_that_is_gone_is_refused(kube: FakeKube, sink: BindSink) -> None:
    assert (await sink.apply(bind())).result == "refused"


@pytest.mark.parametrize(
    ("winner", "expected"),
    [
        pytest.param("n1", ("noop", "bound to n1 already"), id="by the same order"),
        pytest.param("n2", ("refused", "bound to n2 already"), id="by another scheduler"),
    ],
)
async def test_a_lost_race_is_told_by_who_won_it(
    winner: str, expected: tuple[str, str], kube: FakeKube, tmp_path: Path
) -> None:
    kube.seed("pods", a_pod("web-0"))

    class Slow(KubernetesApiWriter):
        async def bind_pod(self, namespace: str, name: str, uid: str, node: str) -> None:
            await kube.put("pods", a_pod("web-0", node=winner))  # between the read and the write
            await super().bind_pod(namespace, name, uid, node)

    async with await connect(kube.settings(tmp_path)) as client:
        outcome = await BindSink(Slow(client), enabled=True).apply(bind())
    assert (outcome.result, outcome.reason) == expected


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param(Fault("get", status=503), "failed", id="the server is away at the read"),
        pytest.param(Fault("bind", status=500), "failed", id="the server fails at the write"),
        pytest.param(Fault("bind", status=403), "refused", id="no right to bind"),
        pytest.param(Fault("bind", status=409), "refused", id="a conflict that the pod does not explain"),
        pytest.param(Fault("bind", status=404), "refused", id="gone since the read"),
    ],
)
async def test_what_the_server_answers_is_an_outcome(fault: Fault, result: str, kube: FakeKube, sink: BindSink) -> None:
    kube.seed("pods", a_pod("web-0"))
    kube.faults = [fault]
    outcome = await sink.apply(bind())
    assert (outcome.result, outcome.reason) == (result, f"{kube.url}: a fault was asked for ({fault.status})")


async def test_a_command_of_the_wrong_shape_is_refused(sink: BindSink) -> None:
    outcome = await sink.apply(order("bind", "pod/shop/web-0", {"node": 3}, "", {}))
    assert outcome.result == "refused"
    assert outcome.reason.startswith("not a bind command: ")
