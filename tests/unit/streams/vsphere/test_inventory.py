"""The inventory document: what is in it, and that equal inventories give equal bytes."""

import json
from contextlib import aclosing

import pytest
from msgspec.structs import replace
from support.fakes.vcenter import FakeVCenter, a_vm

from underhost.agents.commands.handlers.inventory import fields_of, render
from underhost.agents.commands.output.documents import versioned
from underhost.schemas.errors import Refused
from underhost.schemas.kubernetes import decode
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Inventory, Vm
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.changes import ClusterState
from underhost.streams.vsphere.inventory import follow_inventory, read_inventory

SETTINGS = VSphereSettings(url="https://vc", username="u")


def a_vcenter() -> FakeVCenter:
    vcenter = FakeVCenter(hosts=2, vms=3, page=2)
    vcenter.vms["vm-9"] = a_vm("golden-9", "host-1", **{"config.template": True})
    vcenter.set_rules(
        DrsRule("keep-apart", "anti-affinity", ["vm-1", "vm-2"], mandatory=True, cluster="C0", key=7),
        DrsRule("licence", "other", cluster="C0", key=8),
    )
    return vcenter


async def test_the_document_holds_every_field_that_is_documented_and_no_others() -> None:
    found = json.loads(
        versioned("Inventory", fields_of(await read_inventory(SETTINGS, connect=a_vcenter().connect)), "json")
    )
    assert sorted(found) == ["apiVersion", "clusters", "hosts", "kind", "vms"]
    assert (found["apiVersion"], found["kind"]) == ("underhost/v1", "Inventory")
    assert found["hosts"][0] == {
        "id": "host-1",
        "name": "esx-1",
        "cluster": "C0",
        "state": "connected",
        "cpuMhz": 41600,
        "memoryMiB": 65536,
        "labels": {},
        "datastores": [],
        "networks": [],
    }
    assert found["vms"][2] == {
        "id": "vm-3",
        "name": "node-3",
        "uuid": "420b5c8e-0000-0000-0000-000000000003",
        "host": "host-1",
        "hostname": "node-3",
        "cpus": 4,
        "memoryMiB": 8192,
        "power": "on",
        "reservedMiB": 0,
        "datastores": [],
        "networks": [],
        "pinned": "",
    }
    assert found["clusters"] == [
        {
            "name": "C0",
            "drs": True,
            "ha": True,
            "automation": "fullyAutomated",
            "overrides": {},
            "admission": None,
            "rules": [
                {
                    "name": "keep-apart",
                    "type": "anti-affinity",
                    "vms": ["vm-1", "vm-2"],
                    "hosts": [],
                    "enabled": True,
                    "mandatory": True,
                }
            ],
        }
    ]


async def test_what_is_written_is_read_back_as_it_was() -> None:
    found = await read_inventory(SETTINGS, connect=a_vcenter().connect)
    again = decode(versioned("Inventory", fields_of(found), "jsonl").encode(), Inventory)
    assert [host.name for host in again.hosts] == ["esx-1", "esx-2"]
    assert (again.hosts, again.vms) == (found.hosts, found.vms)
    assert [(cluster.name, cluster.rules) for cluster in again.clusters] == [
        (cluster.name, cluster.rules) for cluster in found.clusters
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_the_order_in_which_vcenter_tells_changes_no_byte(output: str) -> None:
    straight, turned = a_vcenter(), a_vcenter()
    turned.vms = dict(reversed(turned.vms.items()))
    turned.hosts = dict(reversed(turned.hosts.items()))
    turned.clusters["domain-1"] = turned.clusters["domain-1"]._replace(
        rules=tuple(reversed(turned.clusters["domain-1"].rules or ()))
    )
    documents = [
        versioned("Inventory", fields_of(await read_inventory(SETTINGS, connect=one.connect)), output)
        for one in (straight, turned)
    ]
    assert documents[0] == documents[1]


async def test_only_the_named_clusters_are_in_it() -> None:
    vcenter = a_vcenter()
    vcenter.clusters["domain-2"] = ClusterState("domain-2", "C1", True, True, ())
    vcenter.hosts["host-2"]["parent"] = "domain-2"
    found = await read_inventory(SETTINGS.model_copy(update={"clusters": ("C1",)}), connect=vcenter.connect)
    assert [host.name for host in found.hosts] == ["esx-2"]
    assert [vm.name for vm in found.vms] == ["node-2"]
    assert [cluster.name for cluster in found.clusters] == ["C1"]


async def test_an_unknown_cluster_is_refused_and_the_session_is_not_left_behind() -> None:
    vcenter = a_vcenter()
    with pytest.raises(Refused, match=r"cluster C9 is not there, or not ours to see \(we see: C0\)"):
        await read_inventory(SETTINGS.model_copy(update={"clusters": ("C9",)}), connect=vcenter.connect)
    assert vcenter.logins == vcenter.logouts == 1


def test_a_hostile_name_cannot_speak_to_the_terminal() -> None:
    table = render(
        Inventory(
            hosts=[Host(name="esx-1\x1b[2J", id="host-1", cluster="C0")],
            vms=[Vm(name="n\n1", id="vm-1", host="host-1"), Vm(name="n2", id="vm-2")],
            clusters=[Cluster(name="C0")],
        ),
        None,
        "table",
    )
    assert table == (
        "\nHOST        CLUSTER   STATE       VMS   CPU      MEMORY\n"
        "esx-1?[2J   C0        connected   1     0.0GHz   0Gi\n"
        "VM    HOST        POWER   CPUS   MEMORY   UUID\n"
        "n?1   esx-1?[2J   on      0      0.0Gi\n"
        "n2    <unknown>   on      0      0.0Gi\n"
    )


def test_a_hostile_name_that_is_gone_cannot_speak_to_the_terminal_either() -> None:
    before = Inventory(hosts=[], vms=[Vm(name="n1\x1b[2J", id="vm-1", host="host-1")], clusters=[])
    assert render(Inventory(hosts=[], vms=[], clusters=[]), before, "table") == "\nn1?[2J is gone\n"


async def test_a_watch_shows_what_moves_in_one_session() -> None:
    vcenter = a_vcenter()
    async with aclosing(follow_inventory(SETTINGS, connect=vcenter.connect)) as inventories:
        first = await anext(inventories)
        assert render(first, None, "table").startswith("\nHOST ")
        assert [vm.host for vm in first.vms] == ["host-1", "host-2", "host-1"]
        vcenter.move("vm-2", to="host-1")
        second = await anext(inventories)
    shown = render(second, first, "table").splitlines()
    assert [line.split()[:3] for line in shown] == [
        [],
        ["HOST", "CLUSTER", "STATE"],
        ["esx-1", "C0", "connected"],
        ["esx-2", "C0", "connected"],
        ["VM", "HOST", "POWER"],
        ["node-2", "esx-1", "on"],
    ]
    assert render(second, second, "table") == render(second, second, "json") == ""
    without = replace(second, vms=second.vms[:2])
    assert render(without, second, "table").endswith("node-3 is gone\n")
