"""Labels on a live pod: read first, written once with its version as precondition, or not at all, with the reason."""

import pytest
from support.build import a_pod
from support.fakes.kube import FakeKube, Fault, managed_by

from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.agents.sinks.pod_labels.sink import PodLabelSink
from underhost.schemas.records import Action
from underhost.streams.settings.labels import HostLabelSettings

KEY, RACK = "node.cluster.x-k8s.io/esxi-host", "example.com/rack"
SETTINGS = {"derived": [{"key": RACK, "from": "rack"}]}


def sink(writer: KubernetesApiWriter, mode: str = "auto", *, enabled: bool = True) -> PodLabelSink:
    return PodLabelSink(writer, HostLabelSettings.model_validate({**SETTINGS, "mode": mode}), enabled=enabled)


def label(uid: str = "uid-db-0", selected: dict[str, str] | None = None, **labels: str | None) -> Action:
    desired = {"uid": uid, "labels": labels or {KEY: "esx-2", RACK: None}, "selected": selected or {}}
    return order("pod-label", "pod/shop/db-0", desired, "", {})


def seeded(kube: FakeKube, manager: str | None = None, **labels: str) -> None:
    carried = labels or {"app": "db", KEY: "esx-1", RACK: "r1"}
    managed = [managed_by(manager, *carried)] if manager is not None else []
    kube.seed("pods", a_pod("db-0").on("n1").labels(carried).metadata(managedFields=managed))


async def test_the_labels_follow_in_one_request_as_our_manager(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    outcome = await sink(writer).apply(label())
    assert (outcome.kind, outcome.target, outcome.result) == ("pod-label", "pod/shop/db-0", "applied")
    assert outcome.reason == f"set {RACK}-, {KEY}=esx-2"
    assert kube.get("pods", "db-0", "shop")["metadata"]["labels"] == {"app": "db", KEY: "esx-2"}
    assert [one.query for one in kube.requests if one.verb == "patch"] == [{"fieldManager": "underhost"}]


async def test_a_command_delivered_five_times_is_one_write(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    results = [(await sink(writer).apply(label())).result for _ in range(5)]
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("patch") == 1


async def test_a_pod_that_changed_since_it_was_read_is_read_again(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    kube.faults += [Fault("patch", "pods", 409), Fault("patch", "pods", 409)]
    assert (await sink(writer).apply(label())).result == "applied"
    assert kube.count("get", "pods") == 3


async def test_a_dry_run_reads_and_writes_nothing(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    outcome = await sink(writer, enabled=False).apply(label())
    assert (outcome.result, outcome.reason) == ("dry-run", f"would set {RACK}-, {KEY}=esx-2")
    assert kube.count("patch") == 0


SERVICE = {KEY: "Service/shop/web"}
STAYS = f"label {KEY} stays: Service/shop/web selects by it"


@pytest.mark.parametrize(
    ("action", "manager", "expected"),
    [
        pytest.param(
            order("pod-label", "pod/shop/db-0", {"uid": "uid-db-0", "labels": {}, "selected": SERVICE}, "", {}),
            None,
            ("refused", STAYS),
            id="a label that a Service selects by",
        ),
        pytest.param(
            label(selected=SERVICE, **{RACK: "r2"}), None, ("applied", f"set {RACK}=r2; {STAYS}"), id="beside another"
        ),
        pytest.param(
            label(), "racks", ("refused", f"label {RACK} belongs to racks; label {KEY} belongs to racks"), id="foreign"
        ),
        pytest.param(label(), "kubectl-label", ("applied", f"set {RACK}-, {KEY}=esx-2"), id="a person's"),
        pytest.param(label("uid-9"), None, ("refused", "pod shop/db-0 is another one now (uid uid-db-0)"), id="uid"),
        pytest.param(
            label(app="db-2"),
            None,
            ("refused", f"label app is not configured (hostLabel): {KEY}, {RACK} is"),
            id="a label of nobody's business",
        ),
        pytest.param(
            label(**{KEY: "x" * 64}), None, ("refused", f"{KEY}={'x' * 64} is no value of a label"), id="64 characters"
        ),
        pytest.param(label(**{KEY: "esx 2"}), None, ("refused", f"{KEY}=esx 2 is no value of a label"), id="a space"),
        pytest.param(label(**{KEY: ""}), None, ("refused", f"{KEY}= is no value of a label"), id="empty"),
    ],
)
async def test_what_becomes_of_a_command(
    kube: FakeKube, writer: KubernetesApiWriter, action: Action, manager: str | None, expected: tuple[str, str]
) -> None:
    seeded(kube, manager)
    outcome = await sink(writer).apply(action)
    assert (outcome.result, outcome.reason) == expected
    assert kube.count("patch") == (expected[0] == "applied")


async def test_in_mode_own_a_foreign_label_is_taken_over(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, "racks")
    assert (await sink(writer, "own").apply(label())).result == "applied"


async def test_a_pod_without_the_host_label_gets_none(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, app="db")
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"pod shop/db-0 carries no label {KEY}")


async def test_a_pod_that_is_gone_is_refused(writer: KubernetesApiWriter) -> None:
    assert (await sink(writer).apply(label())).result == "refused"


async def test_an_api_server_that_is_away_is_a_failure(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    kube.faults += [Fault("patch", "pods", 503)]
    assert (await sink(writer).apply(label())).result == "failed"
