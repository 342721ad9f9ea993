"""What fails at once: an ESXi host with every node on it, or a node whose host is unknown.

In: a snapshot. Out: the place of a node, and places that hold too much. Two unknown hosts are never taken for one.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import NodeHost

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
    host = _host_of(snapshot, node)
    if host is None:
        return SamePlace(NODE, node, node, f"node {node}")
    return SamePlace(HOST, host.host, host.host_name, named_host(snapshot, host.host_name))


def share(snapshot: Snapshot, one: str, other: str) -> bool:
    """Whether two different nodes are in one place, which `place_of` puts into words."""
    first, second = _host_of(snapshot, one), _host_of(snapshot, other)
    if first is None or second is None or first.host != second.host:
        return False
    return first.host_name == second.host_name


def _host_of(snapshot: Snapshot, node: str) -> NodeHost | None:
    """The host of a node that is there, None where it is unknown."""
    joined = snapshot.node_hosts.get(node)
    return joined if joined is not None and joined.host and node in snapshot.nodes else None


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
