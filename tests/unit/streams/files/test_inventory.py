"""The inventory file: the forms that are read, and the one line for what is wrong in it."""

from pathlib import Path

import pytest

from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Admission, DrsRule, Host, Inventory, Vm
from underhost.streams.files.reader import load_files


def read(tmp_path: Path, text: str) -> Inventory | None:
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    return load_files([], inventory=path).inventory


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            '{"kind": "Inventory", "hosts": [{"name": "e1"}], "vms": [{"name": "v", "host": "e1"}]}', id="JSON"
        ),
        pytest.param("hosts: [{name: e1}]\nvms: [{name: v, host: e1, power: on}]\n", id="bare YAML, with a bare on"),
        pytest.param("hosts: [{name: e1, cluster: null}]\nvms: [{name: v, host: e1}]\nclusters:\n", id="nulls"),
    ],
)
def test_only_names_and_the_host_of_a_vm_are_required(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == Inventory(hosts=[Host(name="e1")], vms=[Vm(name="v", host="e1")])


def test_a_host_is_named_by_its_id_or_its_name_or_not_at_all(tmp_path: Path) -> None:
    text = "hosts: [{name: e1, id: host-1}]\nvms: [{name: a, host: e1}, {name: b, host: host-1}, {name: c, host: ''}]"
    inventory = read(tmp_path, text)
    assert inventory is not None
    assert [vm.host for vm in inventory.vms] == ["host-1", "host-1", ""]


def test_rules_name_their_vms_by_id_and_know_their_cluster(tmp_path: Path) -> None:
    text = """
vms: [{name: b, id: vm-2, host: ""}, {name: a, id: vm-1, host: ""}]
clusters: [{name: C0, rules: [{name: r, type: anti-affinity, vms: [b, vm-1, gone]}]}]
"""
    inventory = read(tmp_path, text)
    assert inventory is not None
    rule = DrsRule(name="r", type="anti-affinity", vms=["gone", "vm-1", "vm-2"], cluster="C0")
    assert inventory.clusters[0].rules == [rule]


def test_what_ha_keeps_free_names_its_hosts_by_id(tmp_path: Path) -> None:
    text = """
hosts: [{name: esx-1, id: host-1}, {name: esx-2, id: host-2}]
clusters: [{name: C0, admission: {failoverHosts: [esx-2, host-1]}}, {name: C1, admission: null}]
"""
    inventory = read(tmp_path, text)
    assert inventory is not None
    assert [one.admission for one in inventory.clusters] == [Admission(failover_hosts=["host-1", "host-2"]), None]


def test_an_inventory_among_the_files_counts_too(tmp_path: Path) -> None:
    (tmp_path / "i.yaml").write_text("kind: Inventory\nhosts: [{name: e1}]")
    assert load_files([tmp_path]).inventory == Inventory(hosts=[Host(name="e1")])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("[1]", "expected an object with hosts and vms", id="a list"),
        pytest.param("kind: Pod", "is a 'Pod', not an Inventory", id="another kind"),
        pytest.param("a: 1", "holds neither hosts nor vms: not an inventory", id="something else"),
        pytest.param(
            "hosts: [{id: host-1}]", "hosts[0]: object missing required field `name`", id="a host without name"
        ),
        pytest.param("hosts: [{name: 5}]", "hosts[0].name: expected a string, got an integer", id="a number as name"),
        pytest.param("vms: [{name: v}]", "vm v: vms[0].host: missing: the id or name of the host", id="no host"),
        pytest.param(
            "hosts: [{name: e1}]\nvms: [{name: v, host: e2}]",
            "vm v: vms[0].host: 'e2' is the id or name of no host of the inventory",
            id="an unknown host",
        ),
        pytest.param(
            "hosts: [{name: e, id: 'a'}, {name: e, id: 'b'}]\nvms: [{name: v, host: e}]",
            "vm v: vms[0].host: 'e' is the name of several hosts: give the id",
            id="a host's name that two hosts share",
        ),
        pytest.param(
            "hosts: [{name: e1, state: off}]", "hosts[0].state: expected a string, got true or false", id="a bare off"
        ),
        pytest.param(
            "hosts: [{name: e1, state: dead}]",
            "hosts[0].state: 'dead' is none of connected, maintenance, disconnected",
            id="an unknown state",
        ),
        pytest.param("hosts: [{name: e}, {name: e}]", "hosts: 'e' is given 2 times", id="a host twice"),
        pytest.param(
            "vms: [{name: a, id: v, host: ''}, {name: b, id: v, host: ''}]",
            "vms: 'v' is given 2 times",
            id="a VM twice",
        ),
        pytest.param(
            "vms: []\nclusters: [{name: C0, rules: [{name: r, type: anti}]}]",
            "clusters[0].rules[0].type: 'anti' is none of anti-affinity, affinity, vm-host, other",
            id="an unknown type of rule",
        ),
        pytest.param('{"hosts": [', "not valid JSON: input data was truncated", id="truncated"),
    ],
)
def test_a_fault_is_one_line_with_file_and_field(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(f"{tmp_path}/inventory.yaml: {fault}")
