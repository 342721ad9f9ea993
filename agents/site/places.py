"""What fails at once: an ESXi host with every node on it, or a node whose host is unknown.

In: a snapshot. Out: the place of a node, and places that hold too much. Two unknown hosts are never taken for one.
"""

from collections import Counter
from collections.abc import Mapping
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
    if joined is not None and joined.host and node in snapshot.nodes:
        return SamePlace(HOST, joined.host, joined.host_name, named_host(snapshot, joined.host_name))
    return SamePlace(NODE, node, node, f"node {node}")


def share(snapshot: Snapshot, one: str, other: str) -> bool:
    """Whether `place_of` says the same of two different nodes."""
    first, second = snapshot.node_hosts.get(one), snapshot.node_hosts.get(other)
    if first is None or second is None or not first.host or first.host != second.host:
        return False
    return first.host_name == second.host_name and one in snapshot.nodes and other in snapshot.nodes


def crowded(snapshot: Snapshot, on: Mapping[str, int], most: int) -> set[SamePlace]:
    """The places that hold more than so many, by how many are on each node."""
    hosts, nodes_of, found = Counter[str](), dict[str, str](), set[SamePlace]()
    for node, count in on.items():
        joined = snapshot.node_hosts.get(node)
        if joined is not None and joined.host and node in snapshot.nodes:
            hosts[joined.host] += count
            nodes_of[joined.host] = node
        elif count > most:
            found.add(place_of(snapshot, node))
    return found.union(place_of(snapshot, nodes_of[host]) for host, count in hosts.items() if count > most)


def only_kind(snapshot: Snapshot) -> str:
    """Of what there is just one for all pods, a NODE or a HOST; "" where pods can be apart."""
    if len(snapshot.nodes) == 1:
        return NODE
    return HOST if len(snapshot.hosts) == 1 else ""
