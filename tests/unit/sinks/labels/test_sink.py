"""Labels on a live node: read first, written once, or not at all with the reason."""

from typing import Any

import pytest
from support.build import a_node
from support.fakes.kube import FakeKube, Fault, managed_by

from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.labels.managers import foremost
from underhost.agents.sinks.labels.sink import LabelSink
from underhost.agents.sinks.orders import order
from underhost.schemas.records import Action
from underhost.streams.settings.labels import HostLabelSettings

KEY = "node.cluster.x-k8s.io/esxi-host"
TAINT = "underhost.io/startup"


def sink(writer: KubernetesApiWriter, mode: str = "auto", *, enabled: bool = True) -> LabelSink:
    settings = {"mode": mode, "startupTaint": TAINT, "derived": [{"key": "rack", "from": "folder"}]}
    return LabelSink(writer, HostLabelSettings.model_validate(settings), enabled=enabled)


def label(uid: str = "uid-n1", **labels: str | None) -> Action:
    return order("label", "node/n1", {"uid": uid, "labels": labels or {KEY: "esx-1"}}, "", {})


def seeded(kube: FakeKube, manager: str | None = None, **labels: str) -> None:
    node = a_node("n1").metadata(labels=labels)
    managed = [managed_by(manager, *labels)] if manager is not None else []
    kube.seed("nodes", node.metadata(managedFields=managed))


async def test_a_missing_label_is_written(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, zone="a")
    outcome = await sink(writer).apply(label())
    assert (outcome.kind, outcome.target, outcome.result) == ("label", "node/n1", "applied")
    assert outcome.reason == f"set {KEY}=esx-1"
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {"zone": "a", KEY: "esx-1"}


async def test_a_command_delivered_five_times_is_one_write(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    results = [(await sink(writer).apply(label())).result for _ in range(5)]
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("patch") == 1


async def test_a_dry_run_reads_and_writes_nothing(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    outcome = await sink(writer, enabled=False).apply(label())
    assert (outcome.result, outcome.reason) == ("dry-run", f"would set {KEY}=esx-1")
    assert kube.count("patch") == 0


async def test_what_another_controller_owns_is_refused_with_its_name(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube, "capi-machine", **{KEY: "esx-9"})
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to capi-machine")
    assert kube.count("patch") == 0


async def test_in_mode_own_it_is_taken_over(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, "capi-machine", **{KEY: "esx-9"})
    assert (await sink(writer, "own").apply(label())).result == "applied"
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-1"}


async def test_in_mode_observe_the_host_label_is_never_written(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    outcome = await sink(writer, "observe").apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} is only observed")


@pytest.mark.parametrize(
    "manager",
    [
        *("python", "python-requests", "unknown", "openapi-generator", "before-first-apply", "curl", "k9s", "Mozilla"),
        *("kubectlx", "Kubectl-label", "capi-kubectl-label", ""),
    ],
)
async def test_a_label_of_an_in_house_controller_is_never_overwritten(
    manager: str, kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube, manager, **{KEY: "theirs"})
    outcome = await sink(writer).apply(label())
    holder = manager or "nobody that the API server names"
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to {holder}")
    assert kube.count("patch") == 0


async def test_a_label_that_the_api_server_says_nobody_set_is_left(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, **{KEY: "theirs"})
    outcome = await sink(writer).apply(label())
    assert outcome.reason == f"label {KEY} belongs to nobody that the API server names"
    assert kube.count("patch") == 0


@pytest.mark.parametrize("first", ["kubectl-label", "capi-machine"])
async def test_a_label_that_a_person_and_a_controller_have_set_is_the_controllers(
    first: str, kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    second = {"kubectl-label": "capi-machine", "capi-machine": "kubectl-label"}[first]
    node = a_node("n1").metadata(labels={KEY: "theirs"})
    kube.seed("nodes", node.metadata(managedFields=[managed_by(first, KEY), managed_by(second, KEY)]))
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to capi-machine")


@pytest.mark.parametrize(
    ("managers", "decides"),
    [
        pytest.param(["kubectl", "zone-labeller"], "zone-labeller", id="a controller before a person"),
        pytest.param(["underhost", "zone-labeller"], "zone-labeller", id="a controller before us"),
        pytest.param(["capi", "underhost"], "capi", id="whatever they are called"),
        pytest.param(["underhost", "kubectl"], "kubectl", id="a person before us"),
        pytest.param(["underhost"], "underhost", id="nobody else"),
    ],
)
def test_whose_a_label_of_several_managers_is(managers: list[str], decides: str) -> None:
    assert foremost(managers) == decides
    assert foremost(reversed(managers)) == decides


async def test_a_label_that_a_controller_sets_after_the_look_is_not_overwritten(
    kube: FakeKube, writer: KubernetesApiWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded(kube)
    look = writer.node_labels

    async def then_somebody_else_writes(node: str) -> Any:
        found = await look(node)
        theirs = {**kube.get("nodes", node)["metadata"], "labels": {KEY: "theirs"}}
        await kube.put("nodes", {"metadata": {**theirs, "managedFields": [managed_by("capi-machine", KEY)]}})
        return found

    monkeypatch.setattr(writer, "node_labels", then_somebody_else_writes)
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to capi-machine")
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "theirs"}


@pytest.mark.parametrize(
    "manager", ["kubectl", "kubectl-label", "kubectl-edit", "kubectl-patch", "kubectl-client-side-apply"]
)
async def test_a_label_set_by_hand_is_repaired(manager: str, kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, manager, **{KEY: "mine"})
    assert (await sink(writer).apply(label())).result == "applied"
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-1"}


async def test_what_is_ours_is_written_beside_what_is_not(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, "capi-machine", **{KEY: "esx-9"})
    outcome = await sink(writer).apply(label(**{KEY: "esx-1", "rack": "r17"}))
    assert (outcome.result, outcome.reason) == ("applied", f"set rack=r17; label {KEY} belongs to capi-machine")
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-9", "rack": "r17"}


async def test_a_second_write_keeps_the_labels_that_the_first_one_set(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube)
    await sink(writer).apply(label(**{KEY: "esx-1", "rack": "r17"}))
    await sink(writer).apply(label(**{KEY: "esx-2"}))
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-2", "rack": "r17"}


async def test_a_label_is_removed_when_that_is_the_order(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    await sink(writer).apply(label(**{KEY: "esx-1", "rack": "r17"}))
    outcome = await sink(writer).apply(label(**{KEY: "esx-1", "rack": None}))
    assert (outcome.result, outcome.reason) == ("applied", "set rack-")
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-1"}


async def test_a_label_that_somebody_else_set_is_not_removed(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube, "kubectl-label", rack="r17")
    outcome = await sink(writer, "own").apply(label(rack=None))
    assert (outcome.result, outcome.reason) == ("refused", "label rack was not set by underhost: it stays")
    assert kube.count("patch") == 0


# ---------------------------------------------------------------------------------- without a look at the node
def watching(kube: FakeKube, writer: KubernetesApiWriter, mode: str = "auto") -> LabelSink:
    """A sink that is shown every change at once."""
    settings = HostLabelSettings.model_validate({"mode": mode, "derived": [{"key": "rack", "from": "folder"}]})
    return LabelSink(writer, settings, enabled=True, seen=lambda node: kube.get("nodes", node)["metadata"]["labels"])


async def test_what_our_last_write_left_is_written_again_without_a_look(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube, zone="a")
    one = watching(kube, writer)
    await one.apply(label(**{KEY: "esx-1", "rack": "r17"}))
    reads = kube.count("get")
    outcome = await one.apply(label(**{KEY: "esx-2", "rack": "r17"}))
    assert (outcome.result, outcome.reason) == ("applied", f"set {KEY}=esx-2")
    outcome = await one.apply(label(**{KEY: "esx-2", "rack": None}))
    assert (outcome.result, outcome.reason) == ("applied", "set rack-")
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {"zone": "a", KEY: "esx-2"}
    assert kube.count("get") == reads
    _, _, managers = await writer.node_labels("n1")
    assert managers == {KEY: "underhost"}, "what is not ours does not become ours"


async def test_a_command_that_comes_again_is_looked_at_and_not_written(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube)
    one = watching(kube, writer)
    results = [(await one.apply(label())).result for _ in range(5)]
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    assert kube.count("patch") == 1


@pytest.mark.parametrize(
    ("manager", "mode", "result", "labels"),
    [
        pytest.param("kubectl-label", "auto", "applied", {KEY: "esx-2"}, id="by hand: repaired"),
        pytest.param("capi-machine", "auto", "refused", {KEY: "esx-9"}, id="by a controller: left"),
        pytest.param("capi-machine", "own", "applied", {KEY: "esx-2"}, id="by a controller, mode own: taken back"),
    ],
)
@pytest.mark.parametrize("shown", [True, False], ids=["as the watch has shown", "as the watch has not shown yet"])
async def test_a_label_of_ours_that_somebody_has_taken_over_is_looked_at(
    shown: bool,
    manager: str,
    mode: str,
    result: str,
    labels: dict[str, str],
    kube: FakeKube,
    writer: KubernetesApiWriter,
) -> None:
    seeded(kube)
    one, late = watching(kube, writer, mode), {KEY: "esx-1"}
    await one.apply(label())
    if not shown:
        one = LabelSink(writer, HostLabelSettings.model_validate({"mode": mode}), enabled=True, seen=lambda node: late)
        await one.apply(label(**{KEY: "esx-0"}))
        await one.apply(label())
    live = kube.get("nodes", "n1")
    metadata = {**live["metadata"], "labels": {KEY: "esx-9"}, "managedFields": [managed_by(manager, KEY)]}
    await kube.put("nodes", {**live, "metadata": metadata})
    assert (await one.apply(label(**{KEY: "esx-2"}))).result == result
    assert kube.get("nodes", "n1")["metadata"]["labels"] == labels


async def test_labels_added_by_somebody_since_are_read_and_a_node_made_anew_is_refused(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube)
    one = watching(kube, writer)
    await one.apply(label())
    live = kube.get("nodes", "n1")
    metadata = {**live["metadata"], "labels": {KEY: "esx-1", "rack": "r9"}}
    metadata["managedFields"] = [managed_by("underhost", KEY, "rack")]  # another deployment of the same name
    await kube.put("nodes", {**live, "metadata": metadata})
    assert (await one.apply(label(**{KEY: "esx-2"}))).result == "applied"
    assert kube.get("nodes", "n1")["metadata"]["labels"] == {KEY: "esx-2", "rack": "r9"}
    outcome = await one.apply(label("uid-of-old", **{KEY: "esx-3"}))
    assert (outcome.result, outcome.reason) == ("refused", "node n1 is another one now (uid uid-n1)")


async def test_after_a_write_that_failed_the_node_is_looked_at(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    one = watching(kube, writer)
    await one.apply(label())
    kube.faults = [Fault("patch", status=500)]
    assert (await one.apply(label(**{KEY: "esx-2"}))).result == "failed"
    reads = kube.count("get")
    assert (await one.apply(label(**{KEY: "esx-2"}))).result == "applied"
    assert kube.count("get") == reads + 1


OTHER = {"key": "other", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


def lifting(**labels: str | None) -> Action:
    desired = {"uid": "uid-n1", "labels": labels, "taint": {"key": TAINT, "needs": [KEY, "rack"]}}
    return order("label", "node/n1", desired, "", {})


def tainted(kube: FakeKube, *taints: dict[str, str], **labels: str) -> None:
    node = a_node("n1").metadata(labels=labels)
    kube.seed("nodes", node.spec(taints=[{"key": TAINT, "effect": "NoSchedule"}, *taints]))


@pytest.mark.parametrize("others", [[], [OTHER]], ids=["the only taint", "one beside another"])
async def test_the_start_up_taint_goes_once_the_labels_are_there(
    others: list[dict[str, str]], kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    tainted(kube, *others)
    outcome = await sink(writer).apply(lifting(**{KEY: "esx-1", "rack": "r17"}))
    assert (outcome.result, outcome.reason) == ("applied", f"set {KEY}=esx-1, rack=r17; removed taint {TAINT}")
    node = kube.get("nodes", "n1")
    assert node["metadata"]["labels"] == {KEY: "esx-1", "rack": "r17"}
    assert node["spec"].get("taints", []) == others
    again = await sink(writer).apply(lifting(**{KEY: "esx-1", "rack": "r17"}))
    assert (again.result, again.reason) == ("noop", f"taint {TAINT} is not there")


async def test_a_node_that_lacks_a_label_keeps_the_taint(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    tainted(kube, rack="")
    outcome = await sink(writer).apply(lifting(**{KEY: "esx-1"}))
    assert (outcome.result, outcome.reason) == (
        "applied",
        f"set {KEY}=esx-1; taint {TAINT} stays: label rack is missing",
    )
    outcome = await sink(writer).apply(lifting(**{KEY: "esx-1"}))
    assert (outcome.result, outcome.reason) == ("refused", f"taint {TAINT} stays: label rack is missing")
    assert [taint["key"] for taint in kube.get("nodes", "n1")["spec"]["taints"]] == [TAINT]


async def test_a_dry_run_leaves_the_taint(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    tainted(kube, rack="r17")
    outcome = await sink(writer, enabled=False).apply(lifting(**{KEY: "esx-1"}))
    assert (outcome.result, outcome.reason) == ("dry-run", f"would set {KEY}=esx-1; would remove taint {TAINT}")
    assert kube.count("patch") == 0


async def test_taints_that_somebody_else_changes_meanwhile_are_read_again_and_kept(
    kube: FakeKube, writer: KubernetesApiWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    tainted(kube, **{KEY: "esx-1", "rack": "r17"})
    replace, changes = writer.replace_taints, iter([[OTHER]])

    async def after_somebody_else(node: str, uid: str, before: Any, after: Any) -> None:
        for more in changes:
            live = kube.get("nodes", node)
            await kube.put("nodes", {**live, "spec": {"taints": [*live["spec"]["taints"], *more]}})
        await replace(node, uid, before, after)

    monkeypatch.setattr(writer, "replace_taints", after_somebody_else)
    outcome = await sink(writer).apply(lifting())
    assert (outcome.result, outcome.reason) == ("applied", f"removed taint {TAINT}")
    assert kube.get("nodes", "n1")["spec"]["taints"] == [OTHER]


async def test_taints_that_change_all_the_time_are_left_for_later(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    tainted(kube, **{KEY: "esx-1", "rack": "r17"})
    kube.faults = [Fault("patch", status=422)] * 5
    outcome = await sink(writer).apply(lifting())
    assert (outcome.result, outcome.reason) == (
        "failed",
        f"taint {TAINT} stays: the node's taints change all the time",
    )


async def test_a_node_that_was_made_anew_is_refused(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    seeded(kube)
    outcome = await sink(writer).apply(label("uid-of-old"))
    assert (outcome.result, outcome.reason) == ("refused", "node n1 is another one now (uid uid-n1)")


async def test_a_node_that_is_gone_is_refused(kube: FakeKube, writer: KubernetesApiWriter) -> None:
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == ("refused", f"{kube.url}: nodes not found (404)")


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param(Fault("get", status=503), "failed", id="the server is away at the read"),
        pytest.param(Fault("patch", status=500), "failed", id="the server fails at the write"),
        pytest.param(Fault("patch", status=429, headers={"Retry-After": "1"}), "failed", id="throttled"),
        pytest.param(Fault("patch", status=403), "refused", id="no right to patch"),
        pytest.param(Fault("patch", status=409), "refused", id="another uid since the read"),
    ],
)
async def test_what_the_server_answers_is_an_outcome(
    fault: Fault, result: str, kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    seeded(kube)
    kube.faults = [fault] * 3
    outcome = await sink(writer).apply(label())
    assert (outcome.result, outcome.reason) == (result, f"{kube.url}: a fault was asked for ({fault.status})")


async def test_a_command_of_the_wrong_shape_is_refused(writer: KubernetesApiWriter) -> None:
    outcome = await sink(writer).apply(order("label", "node/n1", {"labels": 3}, "", {}))
    assert outcome.result == "refused"
    assert outcome.reason.startswith("not a label command: ")


# -------------------------------------------------------------------------------------------------- whose a label is
RACK, TENANT = "example.com/rack", "node-restriction.kubernetes.io/tenant"
CONFIGURED = {"startupTaint": TAINT, "derived": [{"key": RACK, "from": "folder"}]}


@pytest.mark.parametrize("mode", ["own", "auto"])
@pytest.mark.parametrize(
    ("labels", "taint", "reason"),
    [
        pytest.param(
            {TENANT: "evil"}, None, f"label {TENANT} is not configured (hostLabel): {KEY}, {RACK} is", id="set"
        ),
        pytest.param(
            {TENANT: None}, None, f"label {TENANT} is not configured (hostLabel): {KEY}, {RACK} is", id="removed"
        ),
        pytest.param(
            {KEY: "esx-1", TENANT: "evil"},
            None,
            f"label {TENANT} is not configured (hostLabel): {KEY}, {RACK} is",
            id="beside one of ours",
        ),
        pytest.param(
            {KEY: "esx-1"},
            {"key": "node-role.kubernetes.io/control-plane", "needs": [KEY, RACK]},
            "taint node-role.kubernetes.io/control-plane is not configured (hostLabel.startupTaint)",
            id="another taint",
        ),
        pytest.param(
            {KEY: "esx-1"},
            {"key": TAINT, "needs": []},
            f"taint {TAINT} goes only with {KEY}, {RACK}",
            id="a taint too early",
        ),
    ],
)
async def test_only_labels_and_the_taint_that_are_configured_are_ever_written(
    mode: str,
    labels: dict[str, str | None],
    taint: dict[str, object] | None,
    reason: str,
    kube: FakeKube,
    writer: KubernetesApiWriter,
) -> None:
    taints = [{"key": key, "effect": "NoSchedule"} for key in (TAINT, "node-role.kubernetes.io/control-plane")]
    kube.seed("nodes", a_node("n1").metadata(labels={TENANT: "shop"}).spec(taints=taints))
    settings = HostLabelSettings.model_validate({**CONFIGURED, "mode": mode})
    desired = {"uid": "uid-n1", "labels": labels, **({"taint": taint} if taint else {})}
    outcome = await LabelSink(writer, settings, enabled=True).apply(order("label", "node/n1", desired, "", {}))
    assert (outcome.result, outcome.reason) == ("refused", reason)
    node = kube.get("nodes", "n1")
    assert (node["metadata"]["labels"], node["spec"]["taints"]) == ({TENANT: "shop"}, taints)


async def test_without_a_start_up_taint_in_the_settings_no_taint_is_ever_removed(
    kube: FakeKube, writer: KubernetesApiWriter
) -> None:
    kube.seed("nodes", a_node("n1").spec(taints=[{"key": TAINT, "effect": "NoSchedule"}]))
    desired = {"uid": "uid-n1", "labels": {KEY: "esx-1"}, "taint": {"key": TAINT, "needs": [KEY]}}
    without = LabelSink(writer, HostLabelSettings(), enabled=True)
    outcome = await without.apply(order("label", "node/n1", desired, "", {}))
    assert (outcome.result, outcome.reason) == ("refused", f"taint {TAINT} is not configured (hostLabel.startupTaint)")
    assert kube.count("patch") == 0


async def test_a_label_command_for_a_pod_is_refused(writer: KubernetesApiWriter) -> None:
    outcome = await sink(writer).apply(order("label", "pod/shop/n1", label().desired, "", {}))
    assert outcome.reason == "pod/shop/n1 is not the target of a command of kind label"
