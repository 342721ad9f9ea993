"""The VMs of each vSphere cluster, and which of them must be apart because of the pods they run.

In: a snapshot and its model. Out: one `VmGraph` per cluster. Sets of VMs are bit sets: bit i is the i-th VM by
reference.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from underhost.agents.compiled.model import Model
from underhost.agents.drs.cliques import bits
from underhost.agents.rules.gathering import Gathering
from underhost.agents.rules.separation import Separation
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Snapshot


class Edge(NamedTuple):
    """A separation within one cluster: the VMs that run its owners, and those that run what they select."""

    separation: Separation
    owners: int
    matched: int


class VmGraph:
    """The running pods of one vSphere cluster on its VMs.

    Attributes:
        name: of the cluster. usable: hosts that are connected and not in maintenance.
        vms: references, sorted. host_of: the host of each.
        on: for each class, the VMs its pods run on. edges: the separations that concern two VMs or more.
    """

    def __init__(self, snapshot: Snapshot, model: Model, name: str, members: Mapping[str, tuple[str, int]]) -> None:
        self.name = name
        self.usable = sum(1 for one in snapshot.hosts.values() if one.cluster == name and one.state == "connected")
        self.vms = sorted(members)
        self.host_of = [members[vm][0] for vm in self.vms]
        self.on: dict[int, int] = {}
        self.edges: list[Edge] = []
        self._model = model
        self._nodes = [members[vm][1] for vm in self.vms]
        self._pods: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._same_value: dict[str, list[int]] = {}

    def place(self, pod: int, cls: int, vm: int) -> None:
        """A running pod (position in `model.running`) is on a VM."""
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
        keys = self._model.running.keys
        return sorted(keys[pod] for cls in set(classes) for vm, pod in self._pods.get(cls, ()) if vms >> vm & 1)

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


def vm_graphs(
    snapshot: Snapshot, model: Model, apart: Sequence[Separation], near: Sequence[Gathering] = ()
) -> list[VmGraph]:
    """Every vSphere cluster that runs pods. A VM whose host or cluster is unknown is in none: no rule can name it.

    DaemonSets' and mirror pods are on every node whatever they ask for: no VM is moved for them.
    """
    concerned = {cls for one in apart for cls in (*one.owners, *one.matched)}
    concerned.update(cls for one in near for cls in (one.owner, *one.matched))
    members: defaultdict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    place: dict[int, tuple[str, str]] = {}
    for name, joined in sorted(snapshot.node_hosts.items()):
        host, node = snapshot.hosts.get(joined.host), model.nodes.index.get(name)
        if host is not None and host.cluster and node is not None:
            members[host.cluster][joined.vm] = (joined.host, node)
            place[node] = (host.cluster, joined.vm)
    graphs = {name: VmGraph(snapshot, model, name, vms) for name, vms in sorted(members.items())}
    where = _bits(graphs, place)
    running = model.running
    for cls in concerned:
        for pod in model.pods_of(cls).tolist():
            node = int(running.nodes[pod])
            if node in where and not pinned(snapshot.pods[running.keys[pod]]):
                graph, vm = where[node]
                graph.place(pod, cls, vm)
    for graph in graphs.values():
        graph.connect(apart)
    return list(graphs.values())


def _bits(graphs: Mapping[str, VmGraph], place: Mapping[int, tuple[str, str]]) -> dict[int, tuple[VmGraph, int]]:
    bit = {(name, vm): at for name, graph in graphs.items() for at, vm in enumerate(graph.vms)}
    return {node: (graphs[where[0]], bit[where]) for node, where in place.items()}
