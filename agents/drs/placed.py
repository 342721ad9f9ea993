"""Which pods run on the VMs of each vSphere cluster, followed from snapshot to snapshot.

In: snapshots with their model, and what the parties of the site ask for. Out: by cluster and party, the VMs that run
pods which DRS rules are for, and the parties for which something else is true than before. Only nodes are looked at on
which something has changed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from underhost.agents.compiled.model import Model
from underhost.agents.drs.asked import AskedByParty
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.owners import application_of, pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import CONNECTED


class PlacedPod(NamedTuple):
    """A running pod: its class, and `NAMESPACE.NAME` of its application, or of itself where it has none."""

    key: str
    cls: int
    application: str


class PlacedVm(NamedTuple):
    """A VM that is a node: its host (id), the labels of the node, and the pods that DRS rules are for."""

    node: str
    host: str
    labels: Mapping[str, str]
    pods: tuple[PlacedPod, ...]


class Part(NamedTuple):
    """What one party has in one vSphere cluster."""

    cluster: str
    party: str


class PartChanges(NamedTuple):
    """Parts of which something has changed, and those of which nothing has but the hosts that VMs are on."""

    parts: set[Part]
    hosts: set[Part]


_Slot = tuple[str, str]  # a vSphere cluster and a VM in it


class PlacedPods:
    """The pods of one model on their VMs. A VM whose host or cluster is unknown is in none: no rule can name it.

    Attributes:
        usable: by cluster, the hosts that are connected and not in maintenance.
        vms: by cluster and VM reference. parts: by part, the pods on each VM that runs some of the party.
    """

    def __init__(self, model: Model, asked: AskedByParty) -> None:
        self._model, self._asked = model, asked
        self._seen = -1
        self._before = Snapshot()
        self._owners = model.owners
        self._clusters: dict[str, str] = {}
        self._slots: dict[str, _Slot | None] = {}
        self._claims: defaultdict[_Slot, set[str]] = defaultdict(set)
        self.usable: Counter[str] = Counter()
        self.vms: dict[str, dict[str, PlacedVm]] = {}
        self.parts: dict[Part, dict[str, list[PlacedPod]]] = {}

    def follow(self, snapshot: Snapshot) -> PartChanges:
        """Take in what has changed, and which parts it matters to."""
        changes = PartChanges(set(), set())
        classes, fresh = self._asked.learn()
        if classes:
            changes.parts.update(
                part
                for part, vms in self.parts.items()
                if any(pod.cls in classes for pods in vms.values() for pod in pods)
            )
        touched = {*self._touched(), *self._running(fresh), *self._renamed(snapshot), *self._rehosted(snapshot)}
        self._before = snapshot
        slots = set[_Slot]()
        for name in touched:
            slots.update(self._claim(snapshot, name))
        for slot in slots:
            self._see(snapshot, slot, changes)
        usable = Counter(host.cluster for host in snapshot.hosts.values() if host.state == CONNECTED)
        if usable != self.usable:
            before, self.usable = self.usable, usable
            changes.parts.update(part for part in self.parts if before[part.cluster] != usable[part.cluster])
        return changes

    def _touched(self) -> Iterator[str]:
        """Nodes on which something has changed, and those that came or went."""
        running, nodes = self._model.running, self._model.nodes
        if self._seen < 0:
            yield from nodes.names
        else:
            for at in (running.changed > self._seen).nonzero()[0].tolist():
                yield nodes.names[at]
        self._seen = int(running.changed.max(initial=0)) if len(running.changed) else 0
        if len(nodes.index) != len(self._slots) or not self._slots.keys() >= nodes.index.keys():
            yield from self._slots.keys() - nodes.index.keys()

    def _running(self, classes: Iterable[int]) -> Iterator[str]:
        """Nodes with pods of these classes."""
        running, names = self._model.running, self._model.nodes.names
        for cls in classes:
            for at in running.of_class(cls).tolist():
                yield names[running.node_at[at]]

    def _renamed(self, snapshot: Snapshot) -> Iterator[str]:
        """Nodes with pods that may be of another application: workloads have come, gone, or have other owners."""
        owners, self._owners = self._owners, self._model.owners
        if owners == self._owners:
            return
        changed = changed_keys(self._before.workloads, snapshot.workloads)
        namespaces = {name.split("/")[1] for name in changed}
        parties = {self._asked.party_of(namespace) for namespace in namespaces}
        for part, vms in self.parts.items():
            if part.party in parties:
                for vm, pods in vms.items():
                    if any(pod.key.partition("/")[0] in namespaces for pod in pods):
                        yield self.vms[part.cluster][vm].node

    def _rehosted(self, snapshot: Snapshot) -> Iterator[str]:
        """Nodes whose host came, went, or is of another cluster."""
        if snapshot.hosts is self._before.hosts:
            return
        clusters = {ref: host.cluster for ref, host in snapshot.hosts.items()}
        before, self._clusters = self._clusters, clusters
        changed = {ref for ref in before.keys() | clusters.keys() if before.get(ref) != clusters.get(ref)}
        if changed:
            for name in self._slots:
                joined = snapshot.node_hosts.get(name)
                if joined is not None and joined.host in changed:
                    yield name

    def _claim(self, snapshot: Snapshot, name: str) -> Iterator[_Slot]:
        """A node says which VM it is, or is none any more: the VMs that are concerned."""
        was = self._slots.pop(name, None)
        if was is not None:
            self._claims[was].discard(name)
            yield was
        if name not in self._model.nodes.index:
            return
        joined = snapshot.node_hosts.get(name)
        host = snapshot.hosts.get(joined.host) if joined is not None else None
        slot = (host.cluster, joined.vm) if joined is not None and host is not None and host.cluster else None
        self._slots[name] = slot
        if slot is not None:
            self._claims[slot].add(name)
            yield slot

    def _see(self, snapshot: Snapshot, slot: _Slot, changes: PartChanges) -> None:
        """Look at one VM anew."""
        cluster, vm = slot
        vms = self.vms.setdefault(cluster, {})
        was, now = vms.get(vm), self._read(snapshot, slot)
        before, after = set(was.pods if was else ()), set(now.pods if now else ())
        moved = before ^ after
        if was is None or now is None or self._is_labelled_otherwise(was, now):
            moved = before | after
        elif was.host != now.host:
            changes.hosts.update(self._part(cluster, pod) for pod in after)
        for part in {self._part(cluster, pod) for pod in moved}:
            self._put(part, vm, [pod for pod in after if self._part(cluster, pod) == part])
            changes.parts.add(part)
        if now is not None:
            vms[vm] = now
            return
        del self._claims[slot]
        vms.pop(vm, None)
        if not vms:
            del self.vms[cluster]

    def _part(self, cluster: str, pod: PlacedPod) -> Part:
        return Part(cluster, self._asked.party_of_class(pod.cls))

    def _put(self, part: Part, vm: str, pods: list[PlacedPod]) -> None:
        there = self.parts.setdefault(part, {})
        if pods:
            there[vm] = pods
        else:
            there.pop(vm, None)
            if not there:
                del self.parts[part]

    def _is_labelled_otherwise(self, was: PlacedVm, now: PlacedVm) -> bool:
        """Whether a separation may be told of another domain of the node."""
        before, after = was.labels, now.labels
        return before is not after and any(before.get(key) != after.get(key) for key in self._asked.keys)

    def _read(self, snapshot: Snapshot, slot: _Slot) -> PlacedVm | None:
        """The VM as it is now; of several nodes that claim to be it, the last one by name is believed."""
        name = max(self._claims[slot], default=None)
        if name is None:
            return None
        at = self._model.nodes.index[name]
        pods = tuple(self._pods_on(snapshot, at))
        return PlacedVm(name, snapshot.node_hosts[name].host, self._model.nodes.labels[at], pods)

    def _pods_on(self, snapshot: Snapshot, node: int) -> Iterator[PlacedPod]:
        """DaemonSets' and mirror pods are on every node whatever they ask for: no VM is moved for them."""
        running = self._model.running
        for at in running.of_node(node):
            cls = running.class_at[at]
            if self._asked.concerns(cls):
                key = running.keys[at]
                pod = snapshot.pods[key]
                if not pinned(pod):
                    owner = application_of(snapshot, pod)
                    named = f"{owner.namespace}.{owner.name}" if owner is not None else key.replace("/", ".")
                    yield PlacedPod(key, cls, named)
