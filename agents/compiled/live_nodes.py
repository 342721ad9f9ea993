"""The nodes of a site and the hosts they are on, as they come, change and go.

In: single nodes. Out: `LiveNodes`, as every rule reads them, and a `Shift`, which tells whoever holds something by a
node's position where it belongs now. Nodes stay sorted by name, as the first of equal totals is the smallest name; that
is why others move when one comes or goes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.classifier import Outdated
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.images import LiveImages
from underhost.agents.compiled.model import hosts_of
from underhost.agents.compiled.nodes import Nodes
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.requests import PODS, allocatable
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node

Number = TypeVar("Number", bound=np.generic)
Held = TypeVar("Held")


class Shift(NamedTuple):
    """Nodes went and came. `gone`: positions as they were, `come`: positions as they are, both ascending."""

    gone: list[int]
    come: list[int]

    def array(self, held: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """What is held of each node along the last axis; zero for those that came."""
        kept = np.delete(held, self.gone, axis=-1) if self.gone else held
        return np.insert(kept, [at - before for before, at in enumerate(self.come)], 0, axis=-1) if self.come else kept

    def list(self, held: list[Held], fresh: Iterable[Held]) -> None:
        """The same of a list, in place; `fresh` is what is held of those that came."""
        for at in reversed(self.gone):
            del held[at]
        for at, one in zip(self.come, fresh, strict=True):
            held.insert(at, one)

    def positions(self, size: int) -> IndexArray:
        """The position now of each of `size` nodes; -1 for those that went."""
        moved: IndexArray = np.full(size, -1, np.intp)
        after = size - len(self.gone) + len(self.come)
        moved[np.delete(np.arange(size), self.gone)] = np.delete(np.arange(after), self.come)
        return moved


class LiveNodes(Nodes):
    """Nodes that follow their changes.

    Attributes:
        hosts: the id of each node's ESXi host, None while unknown. host_names: the hosts' names by id.
        has_hosts: whether the site has hosts at all: only then a host key means the live host.
    """

    images: LiveImages

    def __init__(self, snapshot: Snapshot) -> None:
        """Raises BadObjectError."""
        super().__init__(snapshot.nodes)
        hosts, self.host_names = hosts_of(snapshot, self)
        self.has_hosts = hosts is not None
        self.hosts: list[str | None] = hosts or [None] * len(self)
        joined = [one for one in snapshot.node_hosts.values() if one.host]
        self._is_named_alike = all(self.host_names[one.host] == one.host_name for one in joined)

    def images_of(self, nodes: Mapping[str, Node]) -> LiveImages:
        return LiveImages(nodes, self.index)

    def change(self, node: Node) -> set[str]:
        """Take in a node that is there; the label keys that changed. Raises BadObjectError."""
        name = node.metadata.name
        at = self.index[name]
        try:
            labels = terms.labels(bytes(node.metadata.labels))
            taints = terms.taints(bytes(node.spec.taints))
            amounts = allocatable(bytes(node.status.allocatable))
        except Fault as fault:
            raise fault.within(f"Node {name}") from None
        before, self.labels[at] = self.labels[at], labels
        self.unschedulable[at] = node.spec.unschedulable
        if taints not in self.taints:
            self.taints.append(taints)
        self.taint_list[at] = self.taints.index(taints)
        self.pods_allowed[at] = amounts.pop(PODS, 0)
        new = [resource for resource in sorted(amounts) if resource not in self.resources]
        if new:
            self.resources.update((resource, len(self.resources) + more) for more, resource in enumerate(new))
            self.allocatable = np.vstack([self.allocatable, np.zeros((len(new), len(self)), np.int64)])
        self.allocatable[:, at] = 0
        for resource, amount in amounts.items():
            self.allocatable[self.resources[resource], at] = amount
        return {key for key in before.keys() | labels.keys() if before.get(key) != labels.get(key)}

    def exchange(self, gone: Iterable[str], come: Iterable[Node]) -> Shift:
        """Nodes go and others come; their hosts are unknown until `place`. Raises BadObjectError."""
        fresh = sorted(come, key=lambda node: node.metadata.name)
        shift = Shift(sorted(self.index[name] for name in gone), [])
        for at in reversed(shift.gone):
            del self.names[at]
        for node in fresh:
            shift.come.append(bisect_left(self.names, node.metadata.name))
            self.names.insert(shift.come[-1], node.metadata.name)
        self.index = self.images.index = dict(zip(self.names, range(len(self.names)), strict=True))
        shift.list(self.labels, ({} for _ in fresh))
        shift.list(self.hosts, (None for _ in fresh))
        self.unschedulable, self.taint_list = shift.array(self.unschedulable), shift.array(self.taint_list)
        self.allocatable, self.pods_allowed = shift.array(self.allocatable), shift.array(self.pods_allowed)
        for node in fresh:
            self.change(node)
        return shift

    def place(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """The hosts of these nodes are as the snapshot says. Raises Outdated where a host has another name now."""
        for name in names:
            joined, at = snapshot.node_hosts.get(name), self.index.get(name)
            host = joined.host if joined is not None else ""
            if joined is not None and host and self.host_names.setdefault(host, joined.host_name) != joined.host_name:
                raise Outdated
            if at is not None:
                self.hosts[at] = host or None
        if not self._is_named_alike or self.has_hosts is not (bool(snapshot.hosts) or any(self.hosts)):
            raise Outdated
