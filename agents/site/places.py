"""What fails at once: an ESXi host with every node on it, or a node whose host is unknown.

In: a snapshot. Out: the place of a node. Two unknown hosts are never taken for one.
"""

from typing import NamedTuple

from underhost.agents.site.snapshot import Snapshot

HOST, NODE = "host", "node"


class SamePlace(NamedTuple):
    """A host, or a node whose host is unknown; `words` are for a sentence."""

    kind: str
    id: str
    name: str
    words: str

    def __str__(self) -> str:
        return self.words


def host_word(snapshot: Snapshot) -> str:
    """What a host is called; of one that only a node label names nobody knows whose make it is."""
    return "ESXi host" if snapshot.vsphere else "host"


def named_host(snapshot: Snapshot, name: str) -> str:
    """A host in a sentence."""
    return f"{host_word(snapshot)} {name}"


def place_of(snapshot: Snapshot, node: str) -> SamePlace:
    """Where a node is: on its host where that is known; an absent node is a place of its own."""
    joined = snapshot.node_hosts.get(node)
    if node in snapshot.nodes and joined is not None and joined.host:
        return SamePlace(HOST, joined.host, joined.host_name, named_host(snapshot, joined.host_name))
    return SamePlace(NODE, node, node, f"node {node}")


def only_kind(snapshot: Snapshot) -> str:
    """Of what there is just one for all pods, a NODE or a HOST; "" where pods can be apart."""
    if len(snapshot.nodes) == 1:
        return NODE
    return HOST if len(snapshot.hosts) == 1 else ""
