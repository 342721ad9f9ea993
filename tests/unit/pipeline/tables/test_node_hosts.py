"""The mapping of nodes to hosts as state: published as it changes, dated while it stays."""

import random

import msgspec
from support.build import a_node

from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.site.join import join
from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import Joining, Snapshot
from underhost.schemas import topics
from underhost.schemas.keys import Key
from underhost.schemas.kubernetes import Metadata, Node, NodeSpec
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


def update(topology: NodeHosts, picture: Snapshot, now: str) -> list[tuple[str, str, str] | tuple[str, None]]:
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
    topology = NodeHosts("prod", [])
    assert update(topology, snapshot(n1="h1"), MONDAY) == [("prod/node//n1", "h1.example", MONDAY)]
    assert update(topology, snapshot(n1="h1"), TUESDAY) == []
    assert update(topology, snapshot(n1="h2"), TUESDAY) == [("prod/node//n1", "h2.example", TUESDAY)]


def test_where_nothing_has_changed_the_very_same_mapping_says_so() -> None:
    topology, picture = NodeHosts("prod", []), snapshot(n1="h1", n2="h2")
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
    topology = NodeHosts("prod", [])
    update(topology, snapshot(n1="h1"), MONDAY)
    renamed = snapshot(n1="h1")
    renamed = Snapshot(nodes=renamed.nodes, vms=renamed.vms, hosts={"h1": Host(name="new.example", id="h1")})
    assert update(topology, renamed, TUESDAY) == [("prod/node//n1", "new.example", MONDAY)]


def test_a_node_that_is_joined_no_more_is_deleted() -> None:
    topology = NodeHosts("prod", [])
    update(topology, snapshot(n1="h1", n2="h2"), MONDAY)
    assert update(topology, snapshot(n1="h1"), TUESDAY) == [("prod/node//n2", None)]


def test_a_restart_publishes_only_what_changed_meanwhile() -> None:
    before = NodeHosts("prod", []).update(snapshot(n1="h1", n2="h2", n3="h3"), MONDAY)
    restarted = NodeHosts("prod", before.node_hosts.values())
    assert update(restarted, snapshot(n1="h1", n2="h3"), TUESDAY) == [
        ("prod/node//n2", "h3.example", TUESDAY),
        ("prod/node//n3", None),
    ]


def test_what_is_not_committed_is_said_again() -> None:
    topology = NodeHosts("prod", [])
    first = topology.update(snapshot(n1="h1"), MONDAY)
    assert topology.update(snapshot(n1="h1"), MONDAY).records == first.records


def test_a_node_made_anew_is_not_its_namesakes_vm_while_its_own_is_not_known() -> None:
    old, new = "42170000-0000-0000-0000-000000000001", "42170000-0000-0000-0000-000000000002"
    namesake = Vm(name="n1", id="vm-1", uuid=old, host="h1", hostname="n1")

    def picture(uuid: str, *vms: Vm) -> Snapshot:
        node = Node(Metadata(name="n1"), NodeSpec(f"vsphere://{uuid}"))
        return Snapshot(nodes={"n1": node}, vms={vm.id: vm for vm in vms}, hosts=hosts)

    hosts = {"h1": Host(name="esx-1", id="h1"), "h2": Host(name="esx-2", id="h2")}
    topology = NodeHosts("prod", [])
    assert update(topology, picture(old, namesake), MONDAY) == [("prod/node//n1", "esx-1", MONDAY)]
    assert update(topology, picture(new, namesake), MONDAY) == [("prod/node//n1", None)]
    own = Vm(name="n1", id="vm-2", uuid=new, host="h2", hostname="n1")
    assert update(topology, picture(new, namesake, own), TUESDAY) == [("prod/node//n1", "esx-2", TUESDAY)]


def test_a_node_follows_the_copy_of_its_vm_that_is_switched_on() -> None:
    uuid = "42170000-0000-0000-0000-000000000001"
    nodes = {"n1": Node(Metadata(name="n1"), NodeSpec(f"vsphere://{uuid}"))}
    hosts = {"h1": Host(name="esx-1", id="h1"), "h2": Host(name="esx-2", id="h2")}

    def picture(old: str, new: str) -> Snapshot:
        copies = [Vm("old", "vm-1", uuid, "h1", power=old), Vm("new", "vm-2", uuid, "h2", power=new)]
        return Snapshot(nodes=nodes, vms={vm.id: vm for vm in copies}, hosts=hosts)

    topology = NodeHosts("prod", [])
    assert update(topology, picture("on", "off"), MONDAY) == [("prod/node//n1", "esx-1", MONDAY)]
    assert update(topology, picture("off", "off"), MONDAY) == [("prod/node//n1", None)]
    assert update(topology, picture("off", "on"), TUESDAY) == [("prod/node//n1", "esx-2", TUESDAY)]


def test_of_two_nodes_that_claim_one_vm_the_older_follows_it() -> None:
    uuid = "42170000-0000-0000-0000-000000000001"

    def node(name: str, since: str) -> Node:
        return Node(Metadata(name=name, creation_timestamp=since), NodeSpec(f"vsphere://{uuid}"))

    def picture(host: str, *nodes: Node) -> Snapshot:
        by_name = {each.metadata.name: each for each in nodes}
        return Snapshot(nodes=by_name, vms={"vm-1": Vm("worker", "vm-1", uuid, host)}, hosts=hosts)

    hosts = {"h1": Host(name="esx-1", id="h1"), "h2": Host(name="esx-2", id="h2")}
    old, new = node("n2", MONDAY), node("n1", TUESDAY)
    topology = NodeHosts("prod", [])
    assert update(topology, picture("h1", old, new), MONDAY) == [("prod/node//n2", "esx-1", MONDAY)]
    assert update(topology, picture("h2", old, new), TUESDAY) == [("prod/node//n2", "esx-2", TUESDAY)]
    assert (topology.update(picture("h2", old, new), TUESDAY).rivals, topology.joins) == ({"n1": "n2"}, 1)
    younger = node("n2", "2026-01-07T08:00:00.000Z")  # deleted and made anew
    assert update(topology, picture("h2", younger, new), TUESDAY) == [
        ("prod/node//n1", "esx-2", TUESDAY),
        ("prod/node//n2", None),
    ]
    assert topology.update(picture("h2", younger, new), TUESDAY).rivals == {"n2": "n1"}


class Site:
    """A site's rows as the tables keep them, and one topology that follows them."""

    def __init__(self) -> None:
        self.rows = SiteState("prod", [topics.NODES, topics.VMS, topics.HOSTS, topics.DRS_RULES])
        self.topology = NodeHosts("prod", [])
        self.told: dict[str, NodeHost] = {}

    def node(self, name: str, zone: str = "") -> None:
        labels = msgspec.Raw(msgspec.json.encode({"zone": zone}))
        self.rows.put(topics.NODES, Key("prod", "node", "", name), Node(Metadata(name=name, labels=labels)))

    def vm(self, ref: str, name: str, host: str) -> None:
        self.rows.put(topics.VMS, Key("prod", "vm", "", ref), Vm(name=name, id=ref, host=host))

    def host(self, ref: str, name: str) -> None:
        self.rows.put(topics.HOSTS, Key("prod", "host", "", ref), Host(name=name, id=ref))

    def gone(self, topic: topics.Topic, kind: str, name: str) -> None:
        self.rows.put(topic, Key("prod", kind, "", name), None)

    def follow(self) -> Snapshot:
        """Join, publish, and keep what a reader of the topic has by then."""
        picture = self.rows.snapshot(vsphere=True, offsets={})
        change = self.topology.update(picture, MONDAY)
        self.topology.commit(change)
        for record in change.records:
            name = record.key.rpartition("/")[2]
            if record.value is None:
                del self.told[name]
            else:
                self.told[name] = msgspec.json.decode(record.value, type=NodeHost)
        return picture


def test_a_vmotion_or_a_label_does_not_join_the_site_anew_but_another_vm_does() -> None:
    site = Site()
    for number in range(3):
        site.node(f"n{number}")
        site.vm(f"vm-{number}", f"n{number}", "h1")
    site.host("h1", "esx-1")
    site.host("h2", "esx-2")
    site.follow()
    site.vm("vm-1", "n1", "h2")
    site.node("n2", zone="a")
    site.follow()
    assert {node: row.host_name for node, row in site.told.items()} == {"n0": "esx-1", "n1": "esx-2", "n2": "esx-1"}
    assert site.topology.joins == 1
    site.vm("vm-1", "somebody-elses", "h2")
    site.follow()
    assert (sorted(site.told), site.topology.joins) == (["n0", "n2"], 2)


def test_what_is_followed_is_what_a_join_of_everything_says_whatever_changes() -> None:
    for seed in range(60):
        rng, site = random.Random(seed), Site()
        for _ in range(40):
            for _ in range(rng.randint(1, 3)):
                number, host = rng.randint(0, 4), rng.choice(["", "h0", "h1", "h2", "h9"])
                name = rng.choice([f"n{number}"] * 8 + ["n0", "other"])
                act = rng.random()
                if act < 0.6:
                    site.vm(f"vm-{number}", name, host)
                elif act < 0.8:
                    site.node(f"n{number}", zone=rng.choice("ab"))
                elif act < 0.9:
                    site.host(f"h{number}", f"esx-{number}-{rng.randint(0, 1)}")
                else:
                    place = rng.choice([("node", f"n{number}"), ("vm", f"vm-{number}"), ("host", f"h{number}")])
                    site.gone({"node": topics.NODES, "vm": topics.VMS, "host": topics.HOSTS}[place[0]], *place)
            picture = site.follow()
            expected = join(picture.nodes.values(), picture.vms.values(), picture.hosts.values())
            assert {node: msgspec.structs.replace(row, since="") for node, row in site.told.items()} == expected, seed


def test_a_label_dates_the_host_by_its_manager_and_else_by_when_it_was_seen() -> None:
    def site(**hosts: str) -> Snapshot:
        owned = {"time": "2026-01-01T08:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {"f:rack/host": {}}}}}
        nodes = {name: a_node(name).labels({"rack/host": host}) for name, host in hosts.items()}
        nodes["n1"] = nodes["n1"].metadata(managedFields=[owned])
        made = {name: node.build() for name, node in nodes.items()}
        return Snapshot(nodes=made, joining=Joining(label="rack/host"))

    topology = NodeHosts("prod", [])
    assert update(topology, site(n1="a", n2="a"), MONDAY) == [
        ("prod/node//n1", "a", "2026-01-01T08:00:00Z"),
        ("prod/node//n2", "a", MONDAY),
    ]
    same = site(n1="a", n2="a")
    first, second = topology.update(same, TUESDAY), topology.update(same, TUESDAY)
    assert (first.records, second.hosts) == ([], {"a": Host(name="a")})
    assert second.hosts is first.hosts  # the very same mapping says at once that nothing is different
    assert update(topology, site(n1="a", n2="b"), TUESDAY) == [("prod/node//n2", "b", TUESDAY)]
