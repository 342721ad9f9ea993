"""Which host each node runs on: the join of nodes, VMs and hosts as state, published as it changes.

In: a snapshot without `node_hosts`. Out: what `located` makes of it, with a `since` that stays while VM and host do,
and the records of `node-hosts` (a tombstone where a node is not joined any more).
"""

from collections.abc import Iterable, Mapping

import msgspec

from underhost.agents.pipeline.decisions import NodeHostChange
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.host_labels import read
from underhost.agents.site.join import HostIndex, located
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import NodeHost
from underhost.schemas.topics import NODE_HOSTS
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.derived import node_key, outgoing, tombstone
from underhost.streams.ports import Outgoing


class NodeHosts:
    """One site's mapping, as it was last published. Where nothing but the hosts of VMs changed, only those are joined.

    Attributes:
        joins: how often the whole site was joined.
    """

    def __init__(self, site: str, published: Iterable[NodeHost]) -> None:
        self._site = site
        self._published: Mapping[str, NodeHost] = {row.node: row for row in published}
        self._inputs: tuple[Mapping[str, Node], Mapping[str, Vm], Mapping[str, Host]] = ({}, {}, {})
        self._nodes_on: dict[str, str] = {}
        self._rivals: Mapping[str, str] = {}
        self._hosts = HostIndex(())
        self._named: Mapping[str, Host] = {}
        self._dated_now: Mapping[str, NodeHost] | None = None
        self.joins = 0

    def update(self, snapshot: Snapshot, now: str) -> NodeHostChange:
        """What the snapshot says; nothing is remembered before `commit`. `now` is RFC 3339."""
        moved = self._moved(snapshot) if self._dated_now is self._published else None
        self._inputs = (snapshot.nodes, snapshot.vms, snapshot.hosts)
        if moved is None:
            return self._join(snapshot, now)
        if not moved:  # the very same mapping says at once that nothing is different
            return NodeHostChange(self._published, self._hosts_of(snapshot), self._rivals, [])
        changed = {}
        for vm in moved:
            before = self._published[self._nodes_on[vm.ref]]
            host, host_name = self._hosts.resolve(vm.host)
            row = msgspec.structs.replace(before, host=host, host_name=host_name, since="")
            changed[before.node] = self._dated(row, now)
        self._dated_now = {**self._published, **changed}
        return NodeHostChange(self._dated_now, self._hosts_of(snapshot), self._rivals, self._records(changed))

    def _join(self, snapshot: Snapshot, now: str) -> NodeHostChange:
        self.joins += 1
        found = located(snapshot)
        joined, self._rivals = found.node_hosts, found.rivals
        if found.hosts != self._named:  # the very same mapping says at once that nothing is different
            self._named = found.hosts
        self._hosts = HostIndex(snapshot.hosts.values())
        self._nodes_on = {row.vm: node for node, row in joined.items()}
        self._dated_now = {node: self._dated(row, now) for node, row in joined.items()}
        gone = sorted(set(self._published) - set(joined))
        return NodeHostChange(
            self._dated_now,
            self._hosts_of(snapshot),
            self._rivals,
            self._records(self._dated_now) + [tombstone(NODE_HOSTS, node_key(self._site, node)) for node in gone],
        )

    def _hosts_of(self, snapshot: Snapshot) -> Mapping[str, Host]:
        """The hosts of vSphere, or those that labels name."""
        return self._named if snapshot.joining.label else snapshot.hosts

    def _moved(self, snapshot: Snapshot) -> list[Vm] | None:
        """The nodes' VMs that may have another host now; None where it may be another VM that a node runs on."""
        nodes, vms, hosts = self._inputs
        if hosts is not snapshot.hosts:
            return None
        changed_nodes, changed_vms = changed_keys(nodes, snapshot.nodes), changed_keys(vms, snapshot.vms)
        label = snapshot.joining.label
        claims = (
            (_node_claim(nodes.get(name), label), _node_claim(snapshot.nodes.get(name), label))
            for name in changed_nodes
        )
        if any(before != now for before, now in claims):
            return None
        if any(_vm_claim(vms.get(ref)) != _vm_claim(snapshot.vms.get(ref)) for ref in changed_vms):
            return None
        now = (snapshot.vms[ref] for ref in changed_vms if ref in snapshot.vms)
        return [vm for vm in now if vm.ref in self._nodes_on]

    def _records(self, rows: Mapping[str, NodeHost]) -> list[Outgoing]:
        return [
            outgoing(NODE_HOSTS, node_key(self._site, node), row)
            for node, row in sorted(rows.items())
            if self._published.get(node) != row
        ]

    def commit(self, change: NodeHostChange) -> None:
        """The records of this change are published."""
        self._published = change.node_hosts

    def _dated(self, row: NodeHost, now: str) -> NodeHost:
        before = self._published.get(row.node)
        if before is None or (before.vm, before.host) != (row.vm, row.host):
            return msgspec.structs.replace(row, since=row.since or now)
        dated = msgspec.structs.replace(row, since=before.since)
        return before if before == dated else dated


def _node_claim(node: Node | None, label: str) -> tuple[object, ...]:
    """All that is read of a node to tell its host, by the label where there is one."""
    if node is None:
        return ()
    if label:
        return read(node, label)
    info = node.status.node_info
    addresses = [(item.type, item.address) for item in node.status.addresses or ()]
    uuids = (node.spec.provider_id, info.system_uuid if info is not None else "")
    return (node.metadata.name, node.metadata.creation_timestamp, *uuids, addresses)


def _vm_claim(vm: Vm | None) -> tuple[object, ...]:
    """All that the join reads of a VM to tell whose it is."""
    return (vm.ref, vm.name, vm.uuid, vm.hostname, vm.power) if vm is not None else ()
