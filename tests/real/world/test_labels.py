"""Labels from vSphere on real parts, beyond the host's name; and a dry run over a stack with KubeVirt.

One kube-apiserver (with its audit log) and one vCenter of fourteen VMs for both tests: seven are plain nodes, seven the
nodes of the manifests in `tests/data/kubevirt`. `underhost run` is a process of its own on the embedded default.
"""

import json
import signal
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyVim.task import WaitForTask
from pyVmomi import vim
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import running
from support.processes.vcsim import Tagging
from support.processes.world import CLUSTER, FOREIGN_RULE, NODES, VCenter, World, eventually, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

DUMP = json.loads((Path(__file__).parents[2] / "data" / "kubevirt" / "dump.json").read_text())
TAINT = {"key": "underhost.io/startup", "effect": "NoSchedule"}
RACK, ZONE, ROW = "topology.example/rack", "topology.example/zone", "topology.example/row"
DERIVED = [
    {"key": RACK, "from": "attribute:rack"},
    {"key": ZONE, "from": "tag:k8s-zone"},
    {"key": ROW, "from": "folder"},
]


CORDON = "node.kubernetes.io/unschedulable"
PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "Pod": "/api/v1/namespaces/default/pods",
}


@pytest.fixture(scope="module")
def here(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The world, whose vCenter has seven VMs more than it has nodes."""
    with world(tmp_path_factory.mktemp("world"), parts, more_vms=7) as made:
        yield made


def configuration(here: World, folder: Path, **changes: Any) -> tuple[Path, Listener]:
    """The file of a pipeline over the world, and what reads its topics."""
    kafka = {"embedded": str(folder / "underhost.db")}
    tree = json.loads(here.config(kafka, free_ports(1)[0]).read_text())
    path = folder / "underhost.yaml"
    path.write_text(json.dumps({**tree, **changes}))
    return path, Listener(kafka)


def answers(config: Path) -> bool:
    """Whether the worker listens, and so has opened its topics."""
    listen = json.loads(config.read_text())["web"]["listen"]
    try:
        with urllib.request.urlopen(f"http://{listen}/healthz", timeout=10):
            return True
    except OSError:
        return False


def node(here: World, name: str) -> Any:
    return here.api.ask("GET", f"/api/v1/nodes/{name}")


def labels_of(here: World, name: str) -> dict[str, str]:
    return {key: value for key, value in node(here, name)["metadata"]["labels"].items() if key in (RACK, ZONE, ROW)}


def add_row(vcenter: VCenter, row: str, hosts: Sequence[str]) -> Any:
    """A cluster in a folder of its own, with these hosts; the cluster. vcsim moves none that is there already."""
    store = vcenter.cluster.datastore[0]
    cluster = vcenter.cluster.parent.CreateFolder(row).CreateClusterEx(f"{row} C0", vim.cluster.ConfigSpecEx())
    for host in hosts:
        adding = cluster.AddHost_Task(vim.host.ConnectSpec(hostName=host), True)
        vcenter.hosts[host] = added = eventually(f"{host} is added", lambda adding=adding: adding.info.result)
        with suppress(KeyError):  # vcsim mounts it, but names no type in its answer
            added.configManager.datastoreSystem.CreateLocalDatastore(store.name, store.summary.url)
    return cluster


def test_a_new_node_gets_its_labels_loses_its_taint_and_follows_a_vmotion(here: World, tmp_path: Path) -> None:
    vcenter, new, hosts = here.vcenter, NODES[0], ("esx-7.example", "esx-8.example", "esx-9.example")
    row = add_row(vcenter, "Row 3", hosts)
    rack = vcenter.content.customFieldsManager.AddCustomFieldDef("rack", vim.HostSystem)
    for host, name in zip(hosts, ("r 7", "r8"), strict=False):
        vcenter.content.customFieldsManager.SetField(vcenter.hosts[host], rack.key, name)
    tagging = Tagging(here.vcsim)
    category = tagging.category("k8s-zone")
    tagging.attach(tagging.tag(category, "a"), "ClusterComputeResource", row._GetMoId())
    tagging.attach(tagging.tag(category, "b"), "HostSystem", vcenter.hosts[hosts[1]]._GetMoId())

    def move(number: int) -> None:
        spec = vim.vm.RelocateSpec(host=vcenter.hosts[hosts[number]], pool=row.resourcePool)
        WaitForTask(vcenter.vms[here.vm_of[new]].RelocateVM_Task(spec))

    move(0)
    here.api.ask("PATCH", f"/api/v1/nodes/{new}", {"spec": {"taints": [TAINT]}})
    config, topics = configuration(
        here,
        tmp_path,
        sinks={"labels": True},
        hostLabel={"derived": DERIVED, "startupTaint": TAINT["key"]},
    )
    with running(config, tmp_path / "underhost.log"):
        eventually("the start-up taint goes", lambda: TAINT["key"] not in taints(here, new))
        # Never before: the taint keeps pods off a node whose labels are not there.
        assert labels_of(here, new) == {RACK: "r-7", ZONE: "a", ROW: "Row-3"}
        assert here.api.node_labels()[new] == hosts[0]

        move(1)
        eventually("the labels follow", lambda: labels_of(here, new) == {RACK: "r8", ZONE: "b", ROW: "Row-3"})
        assert here.api.node_labels()[new] == hosts[1]
        move(2)  # its labels wait, for it moved within the last ten seconds
        eventually("no rack is claimed where none is", lambda: labels_of(here, new) == {ZONE: "a", ROW: "Row-3"})
        assert here.api.node_labels()[new] == hosts[2]
        eventually("three commands are told of", lambda: len(applied(topics, new)) == 3)
    assert [reason.partition("; ")[2] for reason in applied(topics, new)] == [f"removed taint {TAINT['key']}", "", ""]
    path = f"/api/v1/nodes/{new}"
    assert [write for write in here.audit.product_writes() if write[1] == path] == [("patch", path, 200)] * 4


def taints(here: World, name: str) -> list[str]:
    return [taint["key"] for taint in node(here, name)["spec"].get("taints", [])]


def applied(topics: Listener, name: str) -> list[str]:
    """What was done for each label command for the node that wrote something."""
    outcomes = [record.value for record in topics.records("underhost.outcomes")]
    mine = [said for said in outcomes if said["target"] == f"node/{name}"]
    return [said["reason"] for said in mine if said["result"] == "applied"]


def test_a_dry_run_over_a_stack_with_kubevirt_orders_everything_and_writes_nothing(here: World, tmp_path: Path) -> None:
    workers = apply_manifests(here)
    # Two replicas of the web cache on one ESXi host, though their rule keeps them apart by node.
    here.vcenter.move(workers["kni-worker3"], here.vcenter.host_of(workers["kni-worker"]))
    here.api.ask("PATCH", "/api/v1/nodes/kni-worker6", {"spec": {"taints": [TAINT]}})
    config, topics = configuration(
        here,
        tmp_path,
        sinks={},
        evictions={"wait": 0, "schedulers": ["underhost"]},
        hostLabel={"startupTaint": TAINT["key"]},
    )
    before, tasks, rules = here.audit.product_writes(), here.vcenter.tasks(), here.vcenter.rules()

    def outcomes() -> list[Any]:
        return [record.value for record in topics.records("underhost.outcomes")]

    with running(config, tmp_path / "underhost.log") as pipeline:
        eventually("the worker answers", lambda: answers(config))
        wanted = {"label", "bind", "drs-rule", "evict"}
        eventually("every decider has ordered", lambda: {said["kind"] for said in outcomes()} >= wanted)
        lifted = f"would remove taint {TAINT['key']}"
        eventually("and the taint", lambda: any(lifted in said["reason"] for said in outcomes()))
        assert pipeline.end(signal.SIGTERM) == 0
    said = outcomes()
    assert {each["result"] for each in said} == {"dry-run"}
    assert "pod/default/virt-launcher-mssql-x7k2d" in {each["target"] for each in said if each["kind"] == "bind"}
    [evicted] = {each["target"] for each in said if each["kind"] == "evict"}
    assert evicted.startswith("pod/default/varnish-6d4cf-")
    assert {each["target"].split("/")[1] for each in said if each["kind"] == "drs-rule"} == {CLUSTER}
    assert FOREIGN_RULE in rules
    assert (here.audit.product_writes(), here.vcenter.tasks(), here.vcenter.rules()) == (before, tasks, rules)


def apply_manifests(here: World) -> dict[str, str]:
    """Create what the manifests hold in `default`, for our scheduler; the VM of each of their nodes.

    As at the end of their story: no node is cordoned any more.
    """
    vms, uids = list(here.vcenter.vms)[len(NODES) :], dict[str, str]()
    items = [item for item in DUMP["items"] if item["metadata"].get("namespace", "default") == "default"]
    nodes = [item for item in items if item["kind"] == "Node"]
    for item, vm in zip(nodes, vms, strict=True):
        taints = [taint for taint in item["spec"].get("taints", ()) if taint["key"] != CORDON]
        spec = {"providerID": f"vsphere://{here.vcenter.uuid_of(vm)}", "taints": taints}
        here.api.ask("POST", "/api/v1/nodes", {**item, "metadata": kept(item, "name", "labels"), "spec": spec})
    for kind, path in PATHS.items():  # owners before what they own
        for item in items:
            if item["kind"] != kind:
                continue
            metadata = kept(item, "name", "labels")
            owners = item["metadata"].get("ownerReferences", ())
            metadata["ownerReferences"] = [{**owner, "uid": uids.get(owner["uid"], owner["uid"])} for owner in owners]
            spec = {**item["spec"], "schedulerName": "underhost"} if kind == "Pod" else item["spec"]
            made = here.api.ask("POST", path, {**item, "metadata": metadata, "spec": spec})
            uids[item["metadata"]["uid"]] = made["metadata"]["uid"]
    return {item["metadata"]["name"]: vm for item, vm in zip(nodes, vms, strict=True)}


def kept(item: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Of an object's metadata, what its author gives and the server does not."""
    return {name: value for name, value in item["metadata"].items() if name in names}
