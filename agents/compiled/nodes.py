"""The nodes of a site as arrays: what the rules read of them, and the hosts they are on.

In: `Node` objects, all at first, then single ones. Out: `Nodes`, sorted by name, so that the first of equal totals is
the smallest name; when a node comes or goes others move, and a `Shift` tells whoever holds something by position.
Topology keys are left to `domains.py`, what runs on the nodes to `running.py` and `state.py`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.domains import BoolArray, IndexArray
from underhost.agents.compiled.images import Images
from underhost.agents.site import terms
from underhost.agents.site.changes import Outdated
from underhost.agents.site.fault import Fault, faults_of
from underhost.agents.site.requests import BASE_RESOURCES, PODS, allocatable
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node

SPARE = 64
"""Names of hosts that may be known beside those of two hosts for each node."""

IntArray = npt.NDArray[np.int64]
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


NO_FEATURES: frozenset[str] = frozenset()


def _features_of(node: Node) -> frozenset[str]:
    return frozenset(node.status.declared_features) if node.status.declared_features else NO_FEATURES


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


class Nodes:
    """N nodes.

    Attributes:
        names: sorted bytewise. index: position by name. labels: one mapping per node (shared between equal ones).
        taints: the distinct lists of taints. taint_list: intp[N], which of them a node has.
        unschedulable: bool[N]. features: those that each node's kubelet declares.
        resources: row of each resource name; the first three are cpu (thousandths), memory and ephemeral storage.
        allocatable: int64[R, N]. pods_allowed: int64[N].
        images: which nodes hold which.
        hosts: the id of each node's ESXi host, None while unknown. host_names: the hosts' names by id.
        has_hosts: whether the site has hosts at all: only then a host key means the live host.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Raises BadObjectError."""
        ordered = [snapshot.nodes[name] for name in sorted(snapshot.nodes)]
        self.names = [node.metadata.name for node in ordered]
        self.index = {name: at for at, name in enumerate(self.names)}
        self.unschedulable: BoolArray = np.array([node.spec.unschedulable for node in ordered], bool)
        self.features = [_features_of(node) for node in ordered]
        self.resources = {name: row for row, name in enumerate(BASE_RESOURCES)}
        self._parse(ordered)
        self.images = Images(snapshot.nodes, self.index)
        joined = [one for one in snapshot.node_hosts.values() if one.host]
        self.host_names = {one.host: one.host_name for one in joined}
        self._is_named_alike = all(self.host_names[one.host] == one.host_name for one in joined)
        host_of = {one.node: one.host for one in joined}
        self.hosts: list[str | None] = [host_of.get(name) for name in self.names]
        self.has_hosts = bool(snapshot.hosts) or any(self.hosts)

    def __len__(self) -> int:
        return len(self.names)

    def row(self, resource: str) -> int:
        """The row of a resource; -1 where no node has it."""
        return self.resources.get(resource, -1)

    def _parse(self, ordered: list[Node]) -> None:
        labels: dict[bytes, dict[str, str]] = {}
        amounts: dict[bytes, dict[str, int]] = {}
        lists: dict[bytes, int] = {}
        self.labels: list[dict[str, str]] = []
        self.taints: list[tuple[terms.Taint, ...]] = []
        own_amounts, own_list = [], []
        for node in ordered:
            try:  # `faults_of` for each node would cost more than what it guards
                raw = bytes(node.metadata.labels)
                if raw not in labels:
                    labels[raw] = terms.labels(raw)
                self.labels.append(labels[raw])
                raw = bytes(node.status.allocatable)
                if raw not in amounts:
                    amounts[raw] = allocatable(raw)
                own_amounts.append(amounts[raw])
                raw = bytes(node.spec.taints)
                if raw not in lists:
                    lists[raw] = len(self.taints)
                    self.taints.append(terms.taints(raw))
                own_list.append(lists[raw])
            except Fault as fault:
                raise fault.within(f"Node {node.metadata.name}") from None
        self.taint_list: IndexArray = np.array(own_list, np.intp)
        for one in {id(one): one for one in own_amounts}.values():
            for name in sorted(one):
                if name != PODS:
                    self.resources.setdefault(name, len(self.resources))
        self.allocatable: IntArray = np.zeros((len(self.resources), len(ordered)), np.int64)
        self.pods_allowed: IntArray = np.zeros(len(ordered), np.int64)
        for at, one in enumerate(own_amounts):
            for name, amount in one.items():
                if name == PODS:
                    self.pods_allowed[at] = amount
                else:
                    self.allocatable[self.resources[name], at] = amount

    # --------------------------------------------------------------------------------------------------- following
    def differing(self, node: Node) -> set[str]:
        """The label keys of which a node that is there has other values now. Raises BadObjectError."""
        with faults_of(f"Node {node.metadata.name}"):
            labels = terms.labels(bytes(node.metadata.labels))
        return _differing(self.labels[self.index[node.metadata.name]], labels)

    def change(self, node: Node) -> set[str]:
        """Take in a node that is there; the label keys that changed. Raises BadObjectError."""
        name = node.metadata.name
        at = self.index[name]
        with faults_of(f"Node {name}"):
            labels = terms.labels(bytes(node.metadata.labels))
            taints = terms.taints(bytes(node.spec.taints))
            amounts = allocatable(bytes(node.status.allocatable))
        before, self.labels[at] = self.labels[at], labels
        self.unschedulable[at] = node.spec.unschedulable
        self.features[at] = _features_of(node)
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
        return _differing(before, labels)

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
        shift.list(self.features, (NO_FEATURES for _ in fresh))
        self.unschedulable, self.taint_list = shift.array(self.unschedulable), shift.array(self.taint_list)
        self.allocatable, self.pods_allowed = shift.array(self.allocatable), shift.array(self.pods_allowed)
        for node in fresh:
            self.change(node)
        return shift

    def place(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """The hosts of these nodes are as the snapshot says.

        Raises Outdated where a host has another name now, and where most of the names that are known are of no use.
        """
        for name in names:
            joined, at = snapshot.node_hosts.get(name), self.index.get(name)
            host = joined.host if joined is not None else ""
            if joined is not None and host and self.host_names.setdefault(host, joined.host_name) != joined.host_name:
                raise Outdated
            if at is not None:
                self.hosts[at] = host or None
        if len(self.host_names) > 2 * len(self.names) + SPARE:
            raise Outdated  # names of hosts that are gone
        if not self._is_named_alike or self.has_hosts is not (bool(snapshot.hosts) or any(self.hosts)):
            raise Outdated
