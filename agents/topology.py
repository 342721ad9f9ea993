"""Which host each node runs on: the join of nodes, VMs and hosts as state, published as it changes.

In: a snapshot without hosts. Out: the same mapping with a `since` that stays while VM and host do, and the records of
`node-hosts` (a tombstone where a node is not joined any more). Called by `decisions.py`; the join is `join.py`'s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from underhost.agents.engine.join import join
from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.records import node_key, outgoing, tombstone
from underhost.schemas.records import NodeHost
from underhost.schemas.topics import NODE_HOSTS
from underhost.streams.ports import Outgoing


@dataclass(frozen=True)
class TopologyChange:
    """The mapping as it is now, and the records that say so."""

    node_hosts: Mapping[str, NodeHost]
    records: list[Outgoing]


class Topology:
    """One site's mapping, as it was last published."""

    def __init__(self, site: str, published: Iterable[NodeHost]) -> None:
        self._site = site
        self._published: Mapping[str, NodeHost] = {row.node: row for row in published}
        self._inputs: tuple[object, ...] = ()
        self._joined: Mapping[str, NodeHost] = {}
        self._dated_now: Mapping[str, NodeHost] | None = None

    def update(self, snapshot: Snapshot, now: str) -> TopologyChange:
        """What the snapshot says; nothing is remembered before `commit`. `now` is RFC 3339."""
        inputs = (snapshot.nodes, snapshot.vms, snapshot.hosts)
        if len(self._inputs) != len(inputs) or any(a is not b for a, b in zip(inputs, self._inputs, strict=True)):
            self._joined = join(snapshot.nodes.values(), snapshot.vms.values(), snapshot.hosts.values())
            self._inputs = inputs
        elif self._dated_now is self._published:  # the very same mapping says at once that nothing is different
            return TopologyChange(self._published, [])
        node_hosts = {node: self._dated(row, now) for node, row in self._joined.items()}
        records = [
            outgoing(NODE_HOSTS, node_key(self._site, node), row)
            for node, row in sorted(node_hosts.items())
            if self._published.get(node) != row
        ]
        gone = sorted(set(self._published) - set(node_hosts))
        self._dated_now = node_hosts
        return TopologyChange(
            node_hosts, records + [tombstone(NODE_HOSTS, node_key(self._site, node)) for node in gone]
        )

    def commit(self, change: TopologyChange) -> None:
        """The records of this change are published."""
        self._published = change.node_hosts

    def _dated(self, row: NodeHost, now: str) -> NodeHost:
        before = self._published.get(row.node)
        if before is None or (before.vm, before.host) != (row.vm, row.host):
            return msgspec.structs.replace(row, since=now)
        dated = msgspec.structs.replace(row, since=before.since)
        return before if before == dated else dated
