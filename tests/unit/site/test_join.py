"""Joining Kubernetes nodes to VMs and hosts."""

import itertools

import pytest
from support.build import a_node

from underhost.agents.site.join import join, located
from underhost.agents.site.snapshot import Joining, Snapshot
from underhost.schemas.records import NodeHost
from underhost.schemas.uuids import swapped, uuid_digits
from underhost.schemas.vsphere import Host, Vm

UUID = "4217d9a3-5b1c-8f2e-9d00-a1b2c3d4e5f6"
SWAPPED = "a3d91742-1c5b-2e8f-9d00-a1b2c3d4e5f6"
OTHER = "42170000-0000-0000-0000-000000000001"


def known_by(name="n1", provider_id="", system_uuid="", hostname="", since=None):
    """A node with these of the marks that a VM may be found by."""
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": hostname}]
    status = {"addresses": addresses, "nodeInfo": {"systemUUID": system_uuid}}
    node = a_node(name).spec(providerID=provider_id).metadata(creationTimestamp=since)
    return node.put("status", value=status).build()


def a_vm(id="vm-1", name="some-vm", uuid="", host="host-1", hostname="", power="on"):
    return Vm(id=id, name=name, uuid=uuid, host=host, hostname=hostname, power=power)


ESX1, ESX2 = Host(id="host-1", name="esx-1"), Host(id="host-2", name="esx-2")


@pytest.mark.parametrize(
    ("node", "vms", "expected"),
    [
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", uuid=OTHER), a_vm("vm-2", uuid=UUID)],
            ("vm-2", "providerID"),
            id="a providerID names the VM's uuid",
        ),
        pytest.param(
            known_by(provider_id=f"vSphere://{UUID.upper()}"),
            [a_vm(uuid=UUID)],
            ("vm-1", "providerID"),
            id="the case of a providerID does not matter",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm(uuid="42 17 d9 a3 5b 1c 8f 2e-9d 00 a1 b2 c3 d4 e5 f6")],
            ("vm-1", "providerID"),
            id="a uuid in VMware's own spelling is the same uuid",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{SWAPPED}"),
            [a_vm(uuid=UUID)],
            None,
            id="a providerID is never byte-swapped",
        ),
        pytest.param(
            known_by(system_uuid=UUID.upper()),
            [a_vm(uuid=UUID)],
            ("vm-1", "systemUUID"),
            id="a systemUUID in the VM's own byte order",
        ),
        pytest.param(
            known_by(system_uuid=SWAPPED),
            [a_vm(uuid=UUID)],
            ("vm-1", "systemUUID"),
            id="a systemUUID with its first three groups byte-swapped",
        ),
        pytest.param(
            known_by(system_uuid=UUID),
            [a_vm("vm-1", uuid=UUID), a_vm("vm-2", uuid=SWAPPED)],
            None,
            id="a systemUUID that is one VM's uuid and another's swapped one joins neither",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}", system_uuid=OTHER),
            [a_vm("vm-1", uuid=OTHER), a_vm("vm-2", uuid=UUID)],
            ("vm-2", "providerID"),
            id="the providerID wins over the systemUUID",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", uuid=UUID), a_vm("vm-2", uuid=UUID)],
            None,
            id="a clone with the same uuid that is on, too, makes the join ambiguous",
        ),
        pytest.param(
            known_by(name="n1", provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", name="n1", uuid=UUID), a_vm("vm-2", name="n2", uuid=UUID)],
            None,
            id="a name does not settle an ambiguous uuid",
        ),
        pytest.param(
            known_by(name="n1", provider_id="kind://docker/kni/n1"),
            [a_vm("vm-1", name="n1"), a_vm("vm-2", name="n2")],
            ("vm-1", "name"),
            id="another cloud's providerID leaves the VM name",
        ),
        pytest.param(
            known_by(name="n1"),
            [a_vm("vm-1", name="n1"), a_vm("vm-2", name="n1")],
            None,
            id="a VM name in two folders joins nothing",
        ),
        pytest.param(
            known_by(name="n1"),
            [a_vm("vm-1", name="prod-n1", hostname="N1.")],
            ("vm-1", "hostname"),
            id="the guest hostname is the node's name, whatever its case",
        ),
        pytest.param(
            known_by(name="10.0.0.1", hostname="worker-1"),
            [a_vm("vm-1", hostname="worker-1")],
            ("vm-1", "hostname"),
            id="the guest hostname is the node's Hostname address",
        ),
        pytest.param(
            known_by(name="n1"),
            [a_vm("vm-1", hostname="n1"), a_vm("vm-2", hostname="n1")],
            None,
            id="clones that share a guest hostname join nothing",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", uuid=UUID, power="off"), a_vm("vm-2", uuid=UUID)],
            ("vm-2", "providerID"),
            id="a copy with the same uuid that is off does not count",
        ),
        pytest.param(
            known_by(system_uuid=UUID),
            [a_vm("vm-1", uuid=SWAPPED, power="off"), a_vm("vm-2", uuid=UUID)],
            ("vm-2", "systemUUID"),
            id="a copy that is off does not count in the other byte order either",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", uuid=UUID, power="off"), a_vm("vm-2", uuid=UUID, power="off")],
            None,
            id="two copies that are off are as ambiguous as two that are on",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", uuid=UUID, power="off"), a_vm("vm-2", name="n1", uuid=OTHER)],
            ("vm-1", "providerID"),
            id="a VM that is off is its node's, as long as no copy is on",
        ),
        pytest.param(
            known_by(name="n1"),
            [a_vm("vm-1", name="n1", power="off"), a_vm("vm-2", name="n1")],
            ("vm-2", "name"),
            id="of two VMs of the node's name the one that is on",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm(name="n1", uuid=OTHER)],
            None,
            id="no VM of the providerID's uuid, but one of the node's name",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm(hostname="n1", uuid=OTHER)],
            None,
            id="no VM of the providerID's uuid, but one whose guest says that it is the node",
        ),
        pytest.param(
            known_by(system_uuid=UUID),
            [a_vm(name="n1", hostname="n1", uuid=OTHER)],
            None,
            id="no VM of the systemUUID, but one of the node's name and hostname",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}", system_uuid=OTHER),
            [a_vm(uuid=OTHER)],
            None,
            id="no VM of the providerID's uuid, but one of the systemUUID",
        ),
        pytest.param(
            known_by(provider_id="vsphere://n1", system_uuid=OTHER),
            [a_vm(name="n1", uuid=OTHER)],
            None,
            id="a vSphere providerID without a uuid names no VM",
        ),
        pytest.param(
            known_by(provider_id="aws:///eu-1/i-0", system_uuid=UUID),
            [a_vm(uuid=UUID)],
            ("vm-1", "systemUUID"),
            id="another cloud's providerID leaves the systemUUID",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", name="n1"), a_vm("vm-2", name="n1", uuid=OTHER)],
            ("vm-1", "name"),
            id="a VM without a uuid is found by its name among others that have one",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}", system_uuid=OTHER),
            [a_vm("vm-1", name="n1"), a_vm("vm-2", name="n2")],
            ("vm-1", "name"),
            id="an inventory without uuids leaves the VM name",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", hostname="n1")],
            ("vm-1", "hostname"),
            id="an inventory without uuids leaves the guest hostname",
        ),
        pytest.param(
            known_by(provider_id=f"vsphere://{UUID}"),
            [a_vm("vm-1", name="n1"), a_vm("vm-2", uuid=UUID), a_vm("vm-3", uuid=UUID)],
            None,
            id="the name of a VM without a uuid does not settle an ambiguous uuid",
        ),
        pytest.param(known_by(name="n1"), [a_vm("vm-1", name="n2")], None, id="a stranger joins nothing"),
        pytest.param(known_by(name="n1"), [], None, id="no VMs at all"),
        pytest.param(
            known_by(system_uuid="00000000-0000-0000-0000-000000000000"),
            [a_vm(uuid="00000000-0000-0000-0000-000000000000")],
            None,
            id="the zero uuid is no identity",
        ),
        pytest.param(known_by(hostname=""), [a_vm(hostname="")], None, id="an empty hostname is no identity"),
    ],
)
def test_a_node_joins_its_vm_by_the_strongest_identity(node, vms, expected):
    found = join([node], vms, [ESX1, ESX2]).get(node.metadata.name)
    assert (found and (found.vm, found.joined_by)) == expected


@pytest.mark.parametrize(
    ("named", "hosts", "expected"),
    [
        pytest.param("host-2", [ESX1, ESX2], ("host-2", "esx-2"), id="a VM names its host by id"),
        pytest.param("esx-2", [ESX1, ESX2], ("host-2", "esx-2"), id="a VM names its host by name"),
        pytest.param("esx-2", [Host(name="esx-2")], ("esx-2", "esx-2"), id="a host without an id goes by its name"),
        pytest.param("host-9", [ESX1], ("host-9", "host-9"), id="a host that is not listed stays what it is called"),
        pytest.param("", [ESX1], ("", ""), id="no host yet is unknown"),
        pytest.param(
            "esx-1", [ESX1, Host(id="host-7", name="esx-1")], ("", ""), id="a name that two hosts share is unknown"
        ),
    ],
)
def test_the_host_of_a_node_is_one_reference(named, hosts, expected):
    found = join([known_by("n1")], [a_vm(name="n1", host=named)], hosts)["n1"]
    assert (found.host, found.host_name) == expected


MONDAY, TUESDAY = "2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z"
BY_PROVIDER, BY_SYSTEM = {"provider_id": f"vsphere://{UUID}"}, {"system_uuid": UUID}


@pytest.mark.parametrize(
    ("nodes", "vm", "joined", "rivals"),
    [
        pytest.param(
            [known_by("n1", **BY_PROVIDER, since=TUESDAY), known_by("n2", **BY_PROVIDER, since=MONDAY)],
            a_vm(uuid=UUID),
            ["n2"],
            {"n1": "n2"},
            id="of two that claim one uuid the older",
        ),
        pytest.param(
            [known_by("n1", **BY_PROVIDER, since=TUESDAY), known_by("n2", **BY_SYSTEM, since=MONDAY)],
            a_vm(uuid=UUID),
            ["n2"],
            {"n1": "n2"},
            id="a providerID takes no VM away from an older node of its systemUUID",
        ),
        pytest.param(
            [known_by("n1", **BY_PROVIDER), known_by("n2", **BY_PROVIDER, since=TUESDAY)],
            a_vm(uuid=UUID),
            ["n2"],
            {"n1": "n2"},
            id="a node without a time is not made yet",
        ),
        pytest.param(
            [known_by("n1", **BY_SYSTEM, since=MONDAY), known_by("n2", **BY_PROVIDER, since=MONDAY)],
            a_vm(uuid=UUID),
            ["n2"],
            {"n1": "n2"},
            id="of two of one age that which has a providerID",
        ),
        pytest.param(
            [known_by(name, **BY_PROVIDER, since=MONDAY) for name in ("n3", "n2", "n1")],
            a_vm(uuid=UUID),
            ["n1"],
            {"n2": "n1", "n3": "n1"},
            id="of equal claims that of the smallest name",
        ),
        pytest.param(
            [known_by("n1", since=MONDAY), known_by("n2", **BY_PROVIDER, since=TUESDAY)],
            a_vm(name="n1", uuid=UUID),
            ["n2"],
            {"n1": "n2"},
            id="a uuid before a name, however old",
        ),
        pytest.param(
            [known_by("n1", since=TUESDAY), known_by("n2", since=MONDAY)],
            a_vm(name="n1", hostname="n2"),
            ["n1"],
            {"n2": "n1"},
            id="a VM name before a guest hostname",
        ),
        pytest.param(
            [known_by("n1", **BY_PROVIDER), known_by("n2", system_uuid=OTHER)],
            a_vm(uuid=UUID),
            ["n1"],
            {},
            id="who claims no VM that is there has no rival",
        ),
    ],
)
def test_one_vm_is_one_node(nodes, vm, joined, rivals):
    for some in itertools.permutations(nodes):
        found = located(Snapshot(nodes={node.metadata.name: node for node in some}, vms={vm.ref: vm}))
        assert (list(found.node_hosts), found.rivals) == (joined, rivals)


@pytest.mark.parametrize(
    ("node", "vm", "joined"),
    [
        pytest.param(known_by("n1"), a_vm(name="n1", uuid=UUID), {}, id="a VM name"),
        pytest.param(known_by("n1"), a_vm(hostname="n1", uuid=UUID), {}, id="a guest hostname"),
        pytest.param(known_by("n1", **BY_PROVIDER), a_vm(name="n1"), {}, id="the name of a VM without a uuid"),
        pytest.param(known_by("n1", **BY_SYSTEM), a_vm(uuid=UUID), {"n1": "vm-1"}, id="a uuid joins all the same"),
    ],
)
def test_where_names_may_not_be_asked_none_joins(node, vm, joined):
    site = Snapshot(nodes={"n1": node}, vms={"vm-1": vm}, joining=Joining(by_name=False))
    assert {name: row.vm for name, row in located(site).node_hosts.items()} == joined
    assert {name: row.vm for name, row in join([node], [vm], [], by_name=False).items()} == joined


def test_a_vm_claimed_by_uuid_is_not_given_to_a_node_of_its_name():
    nodes = [known_by("n1"), known_by("n2", provider_id=f"vsphere://{UUID}")]
    assert join(nodes, [a_vm("vm-1", name="n1", uuid=UUID)], [ESX1]) == {
        "n2": NodeHost(node="n2", vm="vm-1", host="host-1", host_name="esx-1", joined_by="providerID")
    }


def test_a_vm_claimed_by_name_is_not_given_to_a_node_by_hostname():
    nodes = [known_by("n1"), known_by("n2")]
    assert sorted(join(nodes, [a_vm("vm-1", name="n1", hostname="n2")], [ESX1])) == ["n1"]


def test_the_order_of_nodes_vms_and_hosts_does_not_matter():
    nodes = [known_by("n1"), known_by("n2", provider_id=f"vsphere://{UUID}"), known_by("n3", system_uuid=SWAPPED)]
    vms = [a_vm("vm-1", name="n1", host="esx-1"), a_vm("vm-2", uuid=UUID, host="host-2"), a_vm("vm-3", hostname="n3")]
    expected = join(nodes, vms, [ESX1, ESX2])
    assert {name: found.vm for name, found in expected.items()} == {"n1": "vm-1", "n2": "vm-2"}
    for some_nodes, some_vms in itertools.product(itertools.permutations(nodes), itertools.permutations(vms)):
        found = join(some_nodes, some_vms, [ESX2, ESX1])
        assert (list(found), found) == (["n1", "n2"], expected)


def test_swapping_twice_gives_the_uuid_back():
    assert swapped(uuid_digits(UUID)) == uuid_digits(SWAPPED)
    assert swapped(swapped(uuid_digits(UUID))) == uuid_digits(UUID)
