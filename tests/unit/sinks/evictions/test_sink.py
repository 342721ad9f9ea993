"""Evicting a pod: by the Eviction API alone, once, and every refusal is an outcome that says why."""

from pathlib import Path

import pytest
from support.build import a_pod
from support.fakes.kube import FakeKube, Fault

from underhost.agents.sinks.evictions.sink import EvictionSink, outdated
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Action
from underhost.streams.kubernetes.client import connect

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
BUDGET = "The disruption budget web needs 5 healthy pods and has 5 currently"
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
MIGRATION = 'admission webhook denied the request: Eviction triggered evacuation of VMI "shop/vm-1"'


@pytest.fixture
def sink(writer: KubernetesApiWriter) -> EvictionSink:
    return EvictionSink(writer, enabled=True, clock=lambda: NOON)


def evict(uid: str = "uid-web-0", at: str = "2026-01-01T12:00:00.000Z", **more: str) -> Action:
    desired = {"uid": uid, "at": at, "node": "n1", "to": "n4", **more}
    return order("evict", "pod/shop/web-0", desired, "", {})


async def test_a_pod_is_evicted(kube: FakeKube, sink: EvictionSink) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await sink.apply(evict())
    assert (outcome.kind, outcome.target) == ("evict", "pod/shop/web-0")
    assert (outcome.result, outcome.reason) == ("applied", "evicted from n1; the next one fits on n4")
    assert "deletionTimestamp" in kube.get("pods", "web-0", "shop")["metadata"]


async def test_an_order_delivered_five_times_is_one_eviction(kube: FakeKube, sink: EvictionSink) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    assert [(await sink.apply(evict())).result for _ in range(5)] == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("evict") == 1


async def test_a_dry_run_writes_nothing(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await EvictionSink(writer, enabled=False, clock=lambda: NOON).apply(evict())
    assert (outcome.result, outcome.reason) == ("dry-run", "would evict it from n1; the next one fits on n4")
    assert kube.count("evict") == 0


async def test_a_pod_that_is_gone_is_left_in_peace(kube: FakeKube, sink: EvictionSink) -> None:
    outcome = await sink.apply(evict())
    assert (outcome.result, outcome.reason) == ("noop", "the pod is gone")
    assert kube.count("evict") == 0


async def test_another_pod_of_the_same_name_is_not_evicted(kube: FakeKube, sink: EvictionSink) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await sink.apply(evict(uid="uid-of-old"))
    assert (outcome.result, outcome.reason) == ("noop", "the pod is another one now (uid uid-web-0)")
    assert kube.count("evict") == 0


async def test_a_pod_that_was_replaced_since_it_was_read_is_not_evicted(kube: FakeKube, tmp_path: Path) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))

    class Slow(KubernetesApiWriter):
        async def request_eviction(self, namespace: str, name: str, uid: str) -> None:
            fresh = a_pod("web-0").on("n4").json()
            await kube.put("pods", {**fresh, "metadata": {**fresh["metadata"], "uid": "uid-of-new"}})
            await super().request_eviction(namespace, name, uid)

    async with await connect(kube.settings(tmp_path)) as client:
        outcome = await EvictionSink(Slow(client), enabled=True, clock=lambda: NOON).apply(evict())
    assert (outcome.result, outcome.reason) == ("noop", "the pod is another one now (uid uid-of-new)")
    assert "deletionTimestamp" not in kube.get("pods", "web-0", "shop")["metadata"]


async def test_an_eviction_whose_answer_was_lost_has_not_failed(kube: FakeKube, tmp_path: Path) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))

    class Cut(KubernetesApiWriter):
        async def request_eviction(self, namespace: str, name: str, uid: str) -> None:
            await super().request_eviction(namespace, name, uid)
            raise Unreachable("the connection was closed before the answer")

    async with await connect(kube.settings(tmp_path)) as client:
        outcome = await EvictionSink(Cut(client), enabled=True, clock=lambda: NOON).apply(evict())
    assert (outcome.result, outcome.reason) == ("noop", "it is being deleted already")
    assert kube.count("evict") == 1


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(
            Fault("evict", status=429, message=VIOLATES, causes=(BUDGET,)),
            ("failed", f"{VIOLATES} (429) {BUDGET}"),
            id="the budget allows none now: it is tried again",
        ),
        pytest.param(
            Fault("evict", status=500, message=SEVERAL), ("refused", f"{SEVERAL} (500)"), id="two budgets on one pod"
        ),
        pytest.param(
            Fault("evict", status=429, message=MIGRATION),
            ("applied", f"it migrates: {{server}}{MIGRATION} (429)"),
            id="KubeVirt migrates the machine instead",
        ),
        pytest.param(Fault("evict", status=403), ("refused", "a fault was asked for (403)"), id="no right to evict"),
        pytest.param(
            Fault("evict", status=409), ("refused", "a fault was asked for (409)"), id="a conflict that the pod hides"
        ),
        pytest.param(Fault("evict", status=404), ("noop", "the pod is gone"), id="gone since it was read"),
        pytest.param(
            Fault("evict", status=500), ("failed", "a fault was asked for (500)"), id="the server fails at the write"
        ),
        pytest.param(
            Fault("get", status=503), ("failed", "a fault was asked for (503)"), id="the server is away at the read"
        ),
    ],
)
async def test_what_the_server_answers_is_an_outcome(
    fault: Fault, expected: tuple[str, str], kube: FakeKube, sink: EvictionSink
) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    kube.faults = [fault]
    outcome = await sink.apply(evict())
    server = f"{kube.url}: "
    assert outcome.result == expected[0]
    assert outcome.reason in (expected[1], server + expected[1], expected[1].replace("{server}", server))


async def test_what_the_decider_gives_up_is_refused_with_its_reason_and_nothing_is_asked(
    kube: FakeKube, sink: EvictionSink
) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await sink.apply(evict(refuse="it is left to a person"))
    assert (outcome.result, outcome.reason) == ("refused", "it is left to a person")
    assert (kube.count("get"), kube.count("evict")) == (0, 0)


async def test_an_order_that_was_long_under_way_is_not_carried_out(kube: FakeKube, sink: EvictionSink) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    outcome = await sink.apply(evict(at="2026-01-01T11:58:45.000Z"))
    assert (outcome.result, outcome.reason) == ("failed", "it was decided 75 s ago, and much may have changed since")
    assert kube.count("evict") == 0


@pytest.mark.parametrize("desired", [{"uid": 3}, {"uid": "u"}], ids=["uid is a number", "no time"])
async def test_a_command_of_the_wrong_shape_is_refused(desired: dict[str, object], sink: EvictionSink) -> None:
    outcome = await sink.apply(order("evict", "pod/shop/web-0", desired, "", {}))
    assert outcome.result == "refused"
    assert outcome.reason.startswith("not an evict command: ")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param(evict(at="2025-12-30T13:00:00.000Z"), False, id="of the last two days"),
        pytest.param(evict(at="2025-12-30T11:00:00.000Z"), True, id="older than two days"),
        pytest.param(order("evict", "pod/shop/web-0", {}, "", {}), True, id="of no known shape"),
    ],
)
def test_a_command_is_remembered_for_two_days(action: Action, expected: bool) -> None:
    assert outdated(action, NOON) is expected


async def test_a_pod_of_a_namespace_that_is_excepted_is_never_evicted(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    kube.seed("pods", a_pod("web-0").on("n1"))
    sink = EvictionSink(writer, enabled=True, except_namespaces=("kube-system", "shop"), clock=lambda: NOON)
    outcome = await sink.apply(evict())
    assert (outcome.result, outcome.reason) == (
        "refused",
        "no pod of namespace shop is evicted (evictions.exceptNamespaces)",
    )
    assert kube.count("evict") == 0
