"""The VMs of each vSphere cluster, and which of them must be apart because of the pods they run.

In: a snapshot and its model. Out: one `VmGraph` per cluster. Sets of VMs are bit sets: bit i is the i-th VM by
reference.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.gathering import Gathering
from underhost.agents.affinity.separation import Separation, connected
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.model import Model
from underhost.agents.drs.cliques import bits
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import CONNECTED


class Edge(NamedTuple):
    """A separation within one cluster: the VMs that run its owners, and those that run what they select."""

    separation: Separation
    owners: int
    matched: int


class VmGraph:
    """The running pods of one vSphere cluster on its VMs.

    Attributes:
        name: of the cluster. usable: hosts that are connected and not in maintenance.
        vms: references, sorted.
        on: for each class, the VMs its pods run on. edges: the separations that concern two VMs or more.
        asked_host: whether anybody has asked which host a VM is on.
    """

    def __init__(self, model: Model, cluster: "ClusterVms") -> None:
        self.name, self.vms, self._hosts, self.usable = cluster.name, cluster.vms, cluster.hosts, cluster.usable
        self.on: dict[int, int] = {}
        self.edges: list[Edge] = []
        self._model = model
        self._nodes = cluster.nodes.tolist()
        self._pods: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        self._same_value: dict[str, list[int]] = {}
        self.asked_host = False

    def host(self, vm: int) -> str:
        """The host of a VM."""
        self.asked_host = True
        return self._hosts[vm]

    def place(self, pod: str, cls: int, vm: int) -> None:
        """A running pod (`namespace/name`) of a class is on a VM."""
        self.on[cls] = self.on.get(cls, 0) | 1 << vm
        self._pods[cls].append((vm, pod))

    def connect(self, apart: Iterable[Separation]) -> None:
        """Keep the separations that concern this cluster."""
        for one in apart:
            owners, matched = self.mask(one.owners), self.mask(one.matched)
            if owners and matched and (owners | matched).bit_count() > 1:
                self.edges.append(Edge(one, owners, matched))

    def mask(self, classes: Iterable[int]) -> int:
        """The VMs that run a pod of these classes."""
        mask = 0
        for one in classes:
            mask |= self.on.get(one, 0)
        return mask

    def pods_on(self, classes: Iterable[int], vms: int) -> list[str]:
        """The names of the pods of these classes on these VMs, sorted."""
        return sorted(pod for cls in set(classes) for vm, pod in self._pods.get(cls, ()) if vms >> vm & 1)

    def pods_by_vm(self, classes: Iterable[int], vms: int) -> Counter[int]:
        """How many pods of these classes each of these VMs runs."""
        return Counter(vm for cls in set(classes) for vm, _ in self._pods.get(cls, ()) if vms >> vm & 1)

    def adjacency(self, edges: Sequence[Edge]) -> list[int]:
        """For each VM those it must be apart from: their nodes differ in the key, or the key is the host itself."""
        rows = [0] * len(self.vms)
        for edge in edges:
            same = self._same(edge.separation.key)
            for at in bits(edge.owners):
                rows[at] |= edge.matched & ~same[at]
            for at in bits(edge.matched):
                rows[at] |= edge.owners & ~same[at]
        return rows

    def kept_apart(self, groups: Iterable["Together"]) -> list[int]:
        """For each VM those that rules keep it apart from: all, but those of its group that only PhysicalHost parts.

        Of two VMs that must share a host, Kubernetes asks for the affinity, and PhysicalHost is ours alone.
        """
        asked = self.must_part()
        ours = self.adjacency([edge for edge in self.edges if not self._by_host(edge)])
        for group in groups:
            for at in bits(0 if group.impossible else group.vms):
                ours[at] &= ~group.vms
        return [one | other for one, other in zip(asked, ours, strict=True)]

    def must_part(self) -> list[int]:
        """For each VM those that a term on the host itself keeps from it."""
        return self.adjacency([edge for edge in self.edges if self._by_host(edge)])

    def _by_host(self, edge: Edge) -> bool:
        return self._model.topology.is_host_key(edge.separation.key)

    def _same(self, key: str) -> list[int]:
        """For each VM, the VMs that a term on this key does not keep from it: of the same value, or without one."""
        found = self._same_value.get(key)
        if found is None:
            size = len(self.vms)
            if self._model.topology.is_host_key(key):
                found = [1 << at for at in range(size)]
            else:
                codes = [self._model.topology.of(key).code_list[node] for node in self._nodes]
                masks: defaultdict[int, int] = defaultdict(int)
                for at, code in enumerate(codes):
                    masks[code] |= 1 << at
                absent, everything = masks.get(-1, 0), (1 << size) - 1
                found = [everything if code < 0 else masks[code] | absent for code in codes]
            self._same_value[key] = found
        return found


class ClusterVms(NamedTuple):
    """The VMs of a vSphere cluster that are nodes, with the position of the node (intp) and the host of each.

    `usable`: hosts of the cluster that are connected and not in maintenance.
    """

    name: str
    vms: list[str]
    nodes: IndexArray
    hosts: list[str]
    usable: int


def clusters_of(snapshot: Snapshot, model: Model) -> list[ClusterVms]:
    """Every vSphere cluster, by name. A VM whose host or cluster is unknown is in none: no rule can name it."""
    members: defaultdict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for name, joined in sorted(snapshot.node_hosts.items()):
        host, node = snapshot.hosts.get(joined.host), model.nodes.index.get(name)
        if host is not None and host.cluster and node is not None:
            members[host.cluster][joined.vm] = (node, joined.host)
    usable = Counter(host.cluster for host in snapshot.hosts.values() if host.state == CONNECTED)
    return [
        ClusterVms(
            name,
            sorted(found),
            np.array([found[vm][0] for vm in sorted(found)], np.intp),
            [found[vm][1] for vm in sorted(found)],
            usable[name],
        )
        for name, found in sorted(members.items())
    ]


class Concerns:
    """What keeps pods apart (`apart`) or together (`near`), and bool[C], the classes that take part in it."""

    def __init__(self, model: Model, apart: Sequence[Separation], near: Sequence[Gathering]) -> None:
        self.apart, self.near = apart, near
        self.classes = np.zeros(len(model.classes), bool)
        for one in apart:
            self.classes[[*one.owners, *one.matched]] = True
        for other in near:
            self.classes[[other.owner, *other.matched]] = True


def vm_graph(snapshot: Snapshot, model: Model, cluster: ClusterVms, concerns: Concerns) -> VmGraph:
    """The running pods of one cluster.

    DaemonSets' and mirror pods are on every node whatever they ask for: no VM is moved for them.
    """
    graph, running = VmGraph(model, cluster), model.running
    vm_of = np.full(len(model.nodes), -1, np.intp)
    vm_of[cluster.nodes] = np.arange(len(cluster.nodes))
    chosen = np.flatnonzero((vm_of[running.nodes] >= 0) & concerns.classes[running.classes])
    columns = chosen.tolist(), running.classes[chosen].tolist(), vm_of[running.nodes[chosen]].tolist()
    for pod, cls, vm in zip(*columns, strict=True):
        key = running.keys[pod]
        if not pinned(snapshot.pods[key]):
            graph.place(key, cls, vm)
    graph.connect(concerns.apart)
    return graph


def vm_graphs(snapshot: Snapshot, model: Model, concerns: Concerns) -> list[VmGraph]:
    """The running pods of every vSphere cluster."""
    return [vm_graph(snapshot, model, cluster, concerns) for cluster in clusters_of(snapshot, model)]


class Together(NamedTuple):
    """VMs that required affinity on the host keeps together.

    Attributes:
        owners: the classes that ask for it.
        contradicts: some of them must be apart, too. impossible: by a term on the host itself.
    """

    vms: int
    owners: set[int]
    contradicts: bool
    impossible: bool


def gathered(graph: VmGraph, near: Sequence[Gathering]) -> list[Together]:
    """Connected groups of VMs, each pod's VM with one other that its affinity allows."""
    links: list[tuple[int, int]] = []
    owners: dict[int, set[int]] = {}
    if not near:
        return []
    rows, parted = graph.adjacency(graph.edges), graph.must_part()
    for one in near:
        matched = graph.pods_by_vm(one.matched, -1)
        itself = one.owner in one.matched
        for at in bits(graph.on.get(one.owner, 0)):
            mates = sum(1 << other for other in matched if other != at)
            if matched[at] <= itself and mates:  # a pod is no mate of its own
                links.append((at, _mate(graph, rows, at, mates)))
                owners.setdefault(at, set()).add(one.owner)
    found = []
    for group in connected({at for link in links for at in link}, links):
        vms = sum(1 << at for at in group)
        asking = {cls for at in group for cls in owners.get(at, ())}
        contradicts, impossible = (any(apart[at] & vms for at in group) for apart in (rows, parted))
        found.append(Together(vms, asking, contradicts, impossible))
    return found


def _mate(graph: VmGraph, rows: Sequence[int], at: int, mates: int) -> int:
    """The VM to stay with: one that need not be apart, on the same host already if there is one."""
    allowed = list(bits(mates & ~rows[at])) or list(bits(mates))
    return min(allowed, key=lambda other: (graph.host(other) != graph.host(at), other))
