"""Objects of files become a snapshot: joined to hosts, with the pods of manifests where they are wanted."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.errors import BadObjectError
from underhost.schemas.records import NodeHost
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import load_files

UUID = "4201a3b4-5c6d-7e8f-9012-34567890abcd"
DEPLOYMENT: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}},
    },
}
NODE = {"kind": "Node", "metadata": {"name": "n1"}, "spec": {"providerID": f"vsphere://{UUID}"}}


def read(*items: dict[str, Any], inventory: Path | None = None) -> Objects:
    document = json.dumps({"kind": "List", "items": items}).encode()
    return load_files(["-"], inventory=inventory, stdin=io.BytesIO(document))


def test_nodes_are_joined_to_the_hosts_of_the_inventory(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(
        f"hosts: [{{name: esx-1, id: host-1}}]\nvms: [{{name: vm1, id: vm-1, uuid: {UUID}, host: esx-1}}]\n"
        "clusters: [{name: C0, rules: [{name: r, type: anti-affinity, vms: [vm-1]}]}]\n"
    )
    site, _ = snapshot_of(read(NODE, inventory=path))
    assert site.node_hosts == {"n1": NodeHost("n1", "vm-1", "host-1", "esx-1", "providerID")}
    assert site.vsphere
    assert (list(site.hosts), list(site.vms), list(site.clusters)) == (["host-1"], ["vm-1"], ["C0"])
    assert site.rules["C0", "r"].vms == ["vm-1"]


def test_without_an_inventory_there_is_no_vsphere_side() -> None:
    site, _ = snapshot_of(read(NODE))
    assert not site.vsphere
    assert site.node_hosts == {}


@pytest.mark.parametrize(
    ("manifests", "pods"),
    [
        pytest.param(True, ["shop/web-0", "shop/web-1"], id="to be tried"),
        pytest.param(False, [], id="not for a check of what runs"),
    ],
)
def test_manifests_become_pods_where_they_are_wanted(manifests: bool, pods: list[str]) -> None:
    site, notes = snapshot_of(read(DEPLOYMENT), manifests=manifests)
    assert list(site.pods) == pods
    assert list(site.workloads)[:1] == ["Deployment/shop/web"]
    added = ["pods added, pending, for workloads that lack them: Deployment/shop/web 2"]
    assert notes == (added if manifests else [])


def test_notes_of_reading_come_first() -> None:
    _, notes = snapshot_of(read({"kind": "ConfigMap"}, DEPLOYMENT))
    assert notes == [
        "ignored, no rule reads them: 1 ConfigMap",
        "pods added, pending, for workloads that lack them: Deployment/shop/web 2",
    ]


def test_volumes_of_claims_are_said_not_to_be_judged() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    pods = [
        {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{}], "volumes": [claim], **spec}}
        for name, spec in (("waits", {}), ("runs", {"nodeName": "n1"}))
    ]
    _, notes = snapshot_of(read(*pods))
    assert notes == [
        "VolumeBinding, VolumeZone and NodeVolumeLimits are not judged: 1 pending pods have volumes of claims"
    ]


def test_where_the_input_has_claims_their_volumes_are_judged_and_nothing_is_said() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    pod = {"kind": "Pod", "metadata": {"name": "waits"}, "spec": {"containers": [{}], "volumes": [claim]}}
    site, notes = snapshot_of(read(pod, {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}}))
    assert list(site.claims) == ["default/c"]
    assert notes == []


def test_a_manifest_that_the_api_refuses_is_named_with_its_file() -> None:
    wrong = DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"replicas": -1}}
    objects = read(wrong)
    with pytest.raises(BadObjectError) as caught:
        snapshot_of(objects)
    assert str(objects.within(caught.value)) == (
        "stdin: Deployment/shop/web: spec.replicas: must be a whole number, not '-1'"
    )
