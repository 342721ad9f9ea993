"""The simulated clusters answer the sinks' writers as the real ones do: each test runs over both."""

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from support.processes.kube import Kube
from support.processes.vcsim import PASSWORD, USERNAME, start_vcsim
from support.simulation.operated import OperatedSite, a_site

from underhost.agents.drs.names import rule_name
from underhost.agents.sinks.drs.writer import VSphereDrsWriter
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.ports import DrsWriter, KubernetesWriter
from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.kubernetes import Metadata, Node, NodeSpec, Pod, PodSpec, PodStatus, SchedulingGate
from underhost.schemas.vsphere import DrsRule
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.simulated.objects import raw, with_metadata

pytestmark = pytest.mark.real
KEY = "example.com/host"


class Cluster(Protocol):
    """A cluster that a test can prepare; `writer` is what is tested."""

    writer: KubernetesWriter

    async def node(self, name: str, labels: dict[str, str], taints: Sequence[Mapping[str, str]] = ()) -> None:
        """A node whose labels field manager `test` owns."""

    async def pod(self, name: str, *, gated: bool = False, ending: bool = False) -> None:
        """A pod of namespace `default` that waits for a node; `ending`: it has been deleted, and is not gone."""


class SimulatedCluster:
    def __init__(self, site: OperatedSite) -> None:
        self._kubernetes = site.kubernetes
        self.writer: KubernetesWriter = site.kubernetes

    async def node(self, name: str, labels: dict[str, str], taints: Sequence[Mapping[str, str]] = ()) -> None:
        spec = NodeSpec(taints=raw(list(taints)))
        self._kubernetes.create(Node(Metadata(name=name, labels=raw(labels)), spec), manager="test")

    async def pod(self, name: str, *, gated: bool = False, ending: bool = False) -> None:
        spec = PodSpec(scheduler_name="underhost", scheduling_gates=[SchedulingGate("wait")] if gated else None)
        pod = self._kubernetes.create(Pod(Metadata(name=name, namespace="default"), spec, PodStatus(phase="Pending")))
        if ending:
            self._kubernetes.update(with_metadata(pod, deletion_timestamp="2026-01-01T00:00:00Z"))


class RealCluster:
    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self.writer: KubernetesWriter = KubernetesApiWriter(client)

    async def _create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.call("POST", path, query=[("fieldManager", "test")], body=body)
        created: dict[str, Any] = json.loads(answer)
        return created

    async def node(self, name: str, labels: dict[str, str], taints: Sequence[Mapping[str, str]] = ()) -> None:
        spec = {"taints": list(taints)} if taints else {}
        await self._create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec})

    async def pod(self, name: str, *, gated: bool = False, ending: bool = False) -> None:
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.local/app:1"}]}
        if gated:
            spec["schedulingGates"] = [{"name": "wait"}]
        metadata = {"name": name, **({"finalizers": ["example.com/stay"]} if ending else {})}
        await self._create("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
        if ending:
            await self._client.call("DELETE", f"/api/v1/namespaces/default/pods/{name}")


@pytest.fixture(params=["simulated", "kube-apiserver"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if request.param == "simulated":
        yield SimulatedCluster(a_site())
        return
    running: Kube = request.getfixturevalue("kube")
    async with await connect(KubernetesSettings(kubeconfig=running.kubeconfig)) as client:
        yield RealCluster(client)


@pytest.fixture
def name() -> str:
    """A name that nothing else has."""
    return f"n-{uuid.uuid4().hex[:12]}"


async def labels_and_managers(cluster: Cluster, node: str) -> dict[str, tuple[str, str]]:
    _, labels, managers = await cluster.writer.node_labels(node)
    return {key: (value, managers.get(key, "")) for key, value in labels.items() if key.startswith("example.com/")}


async def test_our_label_is_added_beside_others(cluster: Cluster, name: str) -> None:
    await cluster.node(name, {"example.com/zone": "a"})
    uid, _, _ = await cluster.writer.node_labels(name)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-1"})
    assert await labels_and_managers(cluster, name) == {"example.com/zone": ("a", "test"), KEY: ("esx-1", "underhost")}


async def test_a_label_with_another_value_is_taken_over(cluster: Cluster, name: str) -> None:
    await cluster.node(name, {KEY: "esx-9"})
    uid, _, _ = await cluster.writer.node_labels(name)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-1"})
    assert await labels_and_managers(cluster, name) == {KEY: ("esx-1", "underhost")}


async def test_a_label_with_the_same_value_is_shared_and_stays_when_we_give_it_up(cluster: Cluster, name: str) -> None:
    await cluster.node(name, {KEY: "esx-1"})
    uid, _, _ = await cluster.writer.node_labels(name)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-1"})
    assert await labels_and_managers(cluster, name) == {KEY: ("esx-1", "test")}
    await cluster.writer.apply_node_labels(name, uid, {KEY: None})
    assert await labels_and_managers(cluster, name) == {KEY: ("esx-1", "test")}


@pytest.mark.parametrize("labels", [{KEY: None}, {}], ids=["None", "left out"])
async def test_a_label_of_ours_goes_when_we_give_it_up(
    cluster: Cluster, name: str, labels: dict[str, str | None]
) -> None:
    await cluster.node(name, {"example.com/zone": "a"})
    uid, _, _ = await cluster.writer.node_labels(name)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-1"})
    await cluster.writer.apply_node_labels(name, uid, labels)
    assert await labels_and_managers(cluster, name) == {"example.com/zone": ("a", "test")}


async def test_without_force_our_own_label_changes_and_anothers_is_a_conflict(cluster: Cluster, name: str) -> None:
    await cluster.node(name, {"example.com/zone": "a"})
    uid, _, _ = await cluster.writer.node_labels(name)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-1"}, force=False)
    await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-2"}, force=False)
    with pytest.raises(Conflict):
        await cluster.writer.apply_node_labels(name, uid, {KEY: "esx-3", "example.com/zone": "b"}, force=False)
    assert await labels_and_managers(cluster, name) == {"example.com/zone": ("a", "test"), KEY: ("esx-2", "underhost")}


async def test_a_node_of_another_uid_or_none_is_not_labelled(cluster: Cluster, name: str) -> None:
    with pytest.raises(Gone):
        await cluster.writer.node_labels(name)
    with pytest.raises(Conflict):
        await cluster.writer.apply_node_labels(name, str(uuid.uuid4()), {KEY: "esx-1"})
    await cluster.node(name, {})
    with pytest.raises(Conflict):
        await cluster.writer.apply_node_labels(name, str(uuid.uuid4()), {KEY: "esx-1"})
    assert await labels_and_managers(cluster, name) == {}


async def test_a_list_of_taints_is_replaced_only_if_it_is_the_one_that_was_read(cluster: Cluster, name: str) -> None:
    ours, other = ({"key": f"example.com/{key}", "effect": "NoSchedule"} for key in ("startup", "other"))
    await cluster.node(name, {}, [ours, other])
    uid, before = await cluster.writer.node_taints(name)
    kept = [taint for taint in before if taint["key"] != ours["key"]]  # the real one adds that it is not ready
    assert len(kept) == len(before) - 1
    with pytest.raises(Conflict):
        await cluster.writer.replace_taints(name, str(uuid.uuid4()), before, kept)
    with pytest.raises(Conflict):
        await cluster.writer.replace_taints(name, uid, kept, [])
    await cluster.writer.replace_taints(name, uid, before, kept)
    assert (await cluster.writer.node_taints(name))[1] == kept
    assert other["key"] in [taint["key"] for taint in kept]
    with pytest.raises(Conflict):
        await cluster.writer.replace_taints(name, uid, before, kept)
    await cluster.writer.replace_taints(name, uid, kept, [])
    assert (await cluster.writer.node_taints(name))[1] == []


async def test_a_waiting_pod_is_bound_once(cluster: Cluster, name: str) -> None:
    await cluster.pod(name)
    uid, before = await cluster.writer.pod_node("default", name)
    await cluster.writer.bind_pod("default", name, uid, "node-1")  # nothing checks that the node exists
    assert (before, await cluster.writer.pod_node("default", name)) == ("", (uid, "node-1"))
    with pytest.raises(Conflict, match=r"already assigned to node .?node-1"):
        await cluster.writer.bind_pod("default", name, uid, "node-2")
    assert (await cluster.writer.pod_node("default", name))[1] == "node-1"


async def test_a_pod_of_another_uid_or_none_is_not_bound(cluster: Cluster, name: str) -> None:
    with pytest.raises(Gone):
        await cluster.writer.pod_node("default", name)
    with pytest.raises(Gone):
        await cluster.writer.bind_pod("default", name, str(uuid.uuid4()), "node-1")
    await cluster.pod(name)
    with pytest.raises(Conflict, match="UID in precondition"):
        await cluster.writer.bind_pod("default", name, str(uuid.uuid4()), "node-1")
    assert (await cluster.writer.pod_node("default", name))[1] == ""


@pytest.mark.parametrize(
    ("state", "reason"),
    [({"gated": True}, "non-empty .spec.schedulingGates"), ({"ending": True}, "is being deleted")],
    ids=["a gated pod", "a pod that is being deleted"],
)
async def test_a_pod_that_must_not_run_is_not_bound(
    cluster: Cluster, name: str, state: dict[str, bool], reason: str
) -> None:
    await cluster.pod(name, **state)
    uid, _ = await cluster.writer.pod_node("default", name)
    with pytest.raises(Conflict, match=reason):
        await cluster.writer.bind_pod("default", name, uid, "node-1")


# ------------------------------------------------------------------------------------------------------------------ DRS
class Rules:
    """A vSphere cluster whose rules are edited, and three of its VMs."""

    def __init__(self, writer: DrsWriter, cluster: str, vms: list[str]) -> None:
        self.writer, self.cluster, self.vms = writer, cluster, vms


@pytest.fixture(params=["simulated", "vcsim"])
async def rules(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rules]:
    if request.param == "simulated":
        yield Rules(a_site().vsphere, "iberia", ["vm-101", "vm-102", "vm-103"])
        return
    simulator = start_vcsim(request.getfixturevalue("parts"), 2, 3)
    try:
        (tmp_path / "password").write_text(PASSWORD + "\n")
        (tmp_path / "ca.pem").write_text(simulator.certificate)
        settings = VSphereSettings(
            url=simulator.url, username=USERNAME, password_file=tmp_path / "password", ca_file=tmp_path / "ca.pem"
        )
        writer = VSphereDrsWriter(settings, "s")
        yield Rules(writer, "DC0_C0", await _vms(settings))
        await writer.close()
    finally:
        simulator.stop()


async def _vms(settings: VSphereSettings) -> list[str]:
    """The morefs of the VMs of vcsim, sorted."""
    from underhost.streams.vsphere.collector import open_collector

    collector = await open_collector(settings)
    try:
        page = await collector.wait("")
        return sorted(change.ref for change in page.changes if change.type == "vm") if page is not None else []
    finally:
        await collector.close()


def apart(*vms: str, key: int = 0) -> DrsRule:
    return DrsRule(rule_name("s", "shop.db"), "anti-affinity", list(vms), key=key)


async def test_a_rule_is_added_edited_in_place_and_removed(rules: Rules) -> None:
    first, second, third = rules.vms
    await rules.writer.add_rule(rules.cluster, apart(second, first))
    (added,) = await rules.writer.rules(rules.cluster)
    assert (added.name, added.type, added.vms) == (rule_name("s", "shop.db"), "anti-affinity", [first, second])
    assert (added.enabled, added.mandatory, added.cluster) == (True, False, rules.cluster)
    await rules.writer.edit_rule(rules.cluster, apart(first, third, key=added.key))
    (edited,) = await rules.writer.rules(rules.cluster)
    assert (edited.key, edited.vms) == (added.key, [first, third])
    await rules.writer.remove_rule(rules.cluster, edited)
    assert list(await rules.writer.rules(rules.cluster)) == []


async def test_a_name_is_taken_once(rules: Rules) -> None:
    await rules.writer.add_rule(rules.cluster, apart(*rules.vms[:2]))
    with pytest.raises(Conflict):
        await rules.writer.add_rule(rules.cluster, apart(*rules.vms[1:]))


async def test_a_rule_that_is_not_there_is_neither_edited_nor_removed(rules: Rules) -> None:
    with pytest.raises(Gone):
        await rules.writer.edit_rule(rules.cluster, apart(*rules.vms[:2], key=77))
    with pytest.raises(Gone):
        await rules.writer.remove_rule(rules.cluster, apart(*rules.vms[:2], key=77))


async def test_an_unknown_cluster_is_refused(rules: Rules) -> None:
    with pytest.raises(Refused):
        await rules.writer.rules("elsewhere")
