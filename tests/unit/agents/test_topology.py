"""The mapping of nodes to hosts as state: published as it changes, dated while it stays."""

import msgspec

from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.topology import Topology
from underhost.schemas.kubernetes import Metadata, Node
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.ports import Outgoing

MONDAY, TUESDAY = "2026-01-05T08:00:00.000Z", "2026-01-06T08:00:00.000Z"


def snapshot(**hosts: str) -> Snapshot:
    """Nodes with a VM of their name on each host."""
    return Snapshot(
        nodes={node: Node(Metadata(name=node)) for node in hosts},
        vms={node: Vm(name=node, id=f"vm-{node}", host=host) for node, host in hosts.items()},
        hosts={host: Host(name=f"{host}.example", id=host) for host in hosts.values()},
    )


def update(topology: Topology, picture: Snapshot, now: str) -> list[tuple[str, str, str] | tuple[str, None]]:
    """(key, host, since) of each record, (key, None) of a tombstone."""
    change = topology.update(picture, now)
    topology.commit(change)
    return [told(record) for record in change.records]


def told(record: Outgoing) -> tuple[str, str, str] | tuple[str, None]:
    if record.value is None:
        return record.key, None
    row = msgspec.json.decode(record.value, type=NodeHost)
    return record.key, row.host_name, row.since


def test_a_mapping_is_published_once_and_again_when_the_vm_moves() -> None:
    topology = Topology("prod", [])
    assert update(topology, snapshot(n1="h1"), MONDAY) == [("prod/node//n1", "h1.example", MONDAY)]
    assert update(topology, snapshot(n1="h1"), TUESDAY) == []
    assert update(topology, snapshot(n1="h2"), TUESDAY) == [("prod/node//n1", "h2.example", TUESDAY)]


def test_where_nothing_has_changed_the_very_same_mapping_says_so() -> None:
    topology, picture = Topology("prod", []), snapshot(n1="h1", n2="h2")
    assert len(update(topology, picture, MONDAY)) == 2
    held = topology.update(picture, TUESDAY).node_hosts
    assert topology.update(picture, TUESDAY).node_hosts is held
    moved = topology.update(snapshot(n1="h1", n2="h1"), TUESDAY)
    assert moved.node_hosts["n1"] is held["n1"]
    assert [told(record) for record in moved.records] == [("prod/node//n2", "h1.example", TUESDAY)]
    # not published, so it is told once more
    assert [told(record) for record in topology.update(snapshot(n1="h1", n2="h1"), TUESDAY).records] == [
        ("prod/node//n2", "h1.example", TUESDAY)
    ]


def test_a_host_that_only_changes_its_name_keeps_the_date() -> None:
    topology = Topology("prod", [])
    update(topology, snapshot(n1="h1"), MONDAY)
    renamed = snapshot(n1="h1")
    renamed = Snapshot(nodes=renamed.nodes, vms=renamed.vms, hosts={"h1": Host(name="new.example", id="h1")})
    assert update(topology, renamed, TUESDAY) == [("prod/node//n1", "new.example", MONDAY)]


def test_a_node_that_is_joined_no_more_is_deleted() -> None:
    topology = Topology("prod", [])
    update(topology, snapshot(n1="h1", n2="h2"), MONDAY)
    assert update(topology, snapshot(n1="h1"), TUESDAY) == [("prod/node//n2", None)]


def test_a_restart_publishes_only_what_changed_meanwhile() -> None:
    before = Topology("prod", []).update(snapshot(n1="h1", n2="h2", n3="h3"), MONDAY)
    restarted = Topology("prod", before.node_hosts.values())
    assert update(restarted, snapshot(n1="h1", n2="h3"), TUESDAY) == [
        ("prod/node//n2", "h3.example", TUESDAY),
        ("prod/node//n3", None),
    ]


def test_what_is_not_committed_is_said_again() -> None:
    topology = Topology("prod", [])
    first = topology.update(snapshot(n1="h1"), MONDAY)
    assert topology.update(snapshot(n1="h1"), MONDAY).records == first.records
