"""Which DRS VM-VM rules a site needs: exactly what Kubernetes asks to be apart or together, in few rules.

In: a snapshot and its model. Out: the desired rules of every vSphere cluster. Pure, and equal for every order of the
input. The decider compares them with the rules that are there; what the hosts cannot hold is a finding
(`evaluate/unsatisfiable.py`).

An anti-affinity rule keeps all its members apart, so cliques cover the pairs that must be apart (`cliques.py`): never
two VMs that need no separation, never a VM from itself, never fewer than two VMs, never VMs of two clusters.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underhost.agents.affinity.gathering import Gathering, gatherings
from underhost.agents.affinity.quorum import Quorum
from underhost.agents.affinity.reach import ACT, TermReach
from underhost.agents.affinity.separation import separations
from underhost.agents.compiled.model import Model
from underhost.agents.drs.cliques import bits, clique_cover, split
from underhost.agents.drs.names import AFFINITY, ANTI_AFFINITY, rule_name
from underhost.agents.drs.quorums import QuorumVms, quorum_rules, quorum_vms
from underhost.agents.drs.shares import TOGETHER, LeftOut, within_shares
from underhost.agents.drs.vm_graph import ClusterVms, Concerns, Edge, Together, VmGraph, clusters_of, gathered, vm_graph
from underhost.agents.site.changes import same_objects
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.vsphere import DrsRule

EDGES = 8
"""Separations of a namespace that are looked at, for each rule that it may have."""


class RulesByCluster:
    """The rules of one site, thought through again only for the vSphere clusters in which something has changed.

    Only running pods on nodes whose VM and host are known count, and only hosts that are connected and not in
    maintenance are usable. Where more VMs must be apart than hosts are usable, as many as fit are kept apart.

    Each namespace's rules are worked out for themselves, and each has its share of them: what one asks for changes
    nobody else's.

    Attributes:
        left_out: the rules that are beyond somebody's share, as `of` was last asked.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._model: Model | None = None
        self._owners = 0
        self._inputs: tuple[object, ...] = (None, None, None)
        self._clusters: list[ClusterVms] = []
        self._concerns: Concerns
        self._known: dict[str, tuple[object, Made]] = {}
        self.left_out: list[LeftOut] = []

    def of(self, snapshot: Snapshot, model: Model, quorums: Iterable[Quorum] = ()) -> list[DrsRule]:
        """The rules by cluster and name, those of the snapshot's quorums among them.

        `model` is compiled from the snapshot, or has followed to it.
        """
        if model is not self._model or model.owners != self._owners:
            self._model, self._owners, self._inputs, self._known = model, model.owners, (None, None, None), {}
        inputs = (snapshot.node_hosts, snapshot.hosts, model.nodes.index)
        if not same_objects(self._inputs, inputs):
            self._inputs, self._clusters = inputs, clusters_of(snapshot, model)
        self._learn(model)
        held = quorum_vms(snapshot, self._clusters, quorums)
        before, self._known = self._known, {}
        for cluster in self._clusters:
            self._known[cluster.name] = self._of(
                snapshot, model, cluster, held.get(cluster.name, ()), before.get(cluster.name)
            )
        self.left_out = [one for _, made in self._known.values() for one in made.left_out]
        return [rule for _, made in self._known.values() for rule in made.rules]

    def _learn(self, model: Model) -> None:
        """Classes only come: what they ask for is looked through when one has."""
        if not self._known or len(self._concerns.classes) != len(model.classes):
            reach = TermReach(model.classes, self._options)
            near = reach.gatherings(gatherings(model.classes, self._options.host_keys))
            self._concerns = Concerns(model, reach.separations(separations(model.selectors)), near)

    def _of(
        self,
        snapshot: Snapshot,
        model: Model,
        cluster: ClusterVms,
        held: Sequence[QuorumVms],
        known: "tuple[object, Made] | None",
    ) -> "tuple[object, Made]":
        changed = int(model.running.changed[cluster.nodes].max(initial=0))
        inputs = cluster.usable, cluster.vms, cluster.hosts, changed, held
        if known is not None and known[0] == inputs:
            return known
        graph = vm_graph(snapshot, model, cluster, self._concerns)
        return inputs, self._make(snapshot, model, graph, held)

    def _make(self, snapshot: Snapshot, model: Model, graph: VmGraph, held: Sequence[QuorumVms]) -> "Made":
        rules: list[DrsRule] = []
        for part, near in self._parts(model, graph):
            rules += _rules_of(snapshot, part, near)
        rules += quorum_rules(snapshot.site, graph.name, held, rules)
        return Made(*within_shares(snapshot.site, sorted(rules, key=lambda rule: rule.name), self._options.shares))

    def _parts(self, model: Model, graph: VmGraph) -> Iterable[tuple[VmGraph, Sequence[Gathering]]]:
        """What each namespace asks for, by name; all of it together where terms act across namespaces."""
        if self._options.cross_namespace == ACT:
            yield graph, self._concerns.near
            return
        edges: defaultdict[str, list[Edge]] = defaultdict(list)
        near: defaultdict[str, list[Gathering]] = defaultdict(list)
        for edge in graph.edges:
            edges[model.classes[edge.separation.owners[0]].namespace].append(edge)
        for one in self._concerns.near:
            near[model.classes[one.owner].namespace].append(one)
        for namespace in sorted({*edges, *near}):
            yield graph.within(edges[namespace][: EDGES * self._options.shares.drs_rules]), near[namespace]


class Made(NamedTuple):
    """The rules of one cluster, by name, and those that are beyond somebody's share."""

    rules: list[DrsRule]
    left_out: list[LeftOut]


def _rules_of(snapshot: Snapshot, graph: VmGraph, near: Sequence[Gathering]) -> list[DrsRule]:
    """The rules of one cluster, in any order."""
    namer, groups = _Namer(snapshot, graph), gathered(graph, near)
    return [
        *namer.rules(ANTI_AFFINITY, _apart(graph, namer, groups)),
        *namer.rules(AFFINITY, _together(namer, groups)),
    ]


def _apart(graph: VmGraph, namer: "_Namer", groups: Sequence[Together]) -> list[tuple[str, int]]:
    """(label, VMs) of rules that keep exactly the pairs apart; a clique of more VMs than hosts is cut into parts."""
    cliques: set[int] = set()
    for clique in clique_cover(graph.kept_apart(groups), [edge.owners & edge.matched for edge in graph.edges]):
        fits = clique.bit_count() <= graph.usable
        cliques.update([clique] if fits else split(clique, graph.usable, _pairs(graph, clique).__getitem__, graph.host))
    held: defaultdict[int, list[int]] = defaultdict(list)
    for one in cliques:
        for at in bits(one):
            held[at].append(one)
    # a part may lie within another clique
    kept = [
        one for one in cliques if not any(one != other and one & other == one for other in held[one.bit_length() - 1])
    ]
    return [(namer.of_clique(one), one) for one in kept]


def _pairs(graph: VmGraph, clique: int) -> Counter[int]:
    """For each VM of the clique, how many pairs of pods on it and on the others must be apart."""
    pairs: Counter[int] = Counter()
    for edge in graph.edges:
        if not (edge.owners & clique and edge.matched & clique):
            continue
        owners, matched = set(edge.separation.owners), set(edge.separation.matched)
        own, met, both = (graph.pods_by_vm(side, clique) for side in (owners, matched, owners & matched))
        # Each pair counts once, also where either of its pods carries the term and is selected.
        for here, there, sign in ((own, met, 1), (met, own, 1), (both, both, -1)):
            total = there.total()
            for at, pods in here.items():
                pairs[at] += sign * pods * (total - there[at])
    return pairs


def _together(namer: "_Namer", groups: Sequence[Together]) -> list[tuple[str, int]]:
    """(label, VMs) of rules that keep a pod's VM with one VM that its required affinity on the host allows."""
    return [
        (namer.of_classes(group.owners, group.vms) + TOGETHER, group.vms) for group in groups if not group.impossible
    ]


class _Namer:
    """Names rules after the applications they are for: members come and go, the name stays, and the rule is edited."""

    def __init__(self, snapshot: Snapshot, graph: VmGraph) -> None:
        self._snapshot, self._graph = snapshot, graph
        self._labels: dict[int, str] = {}
        self._edges_on: defaultdict[int, list[int]] = defaultdict(list)
        for position, edge in enumerate(graph.edges):
            for at in bits(edge.owners | edge.matched):
                self._edges_on[at].append(position)

    def rules(self, type_: str, wanted: Iterable[tuple[str, int]]) -> list[DrsRule]:
        """The rules; a second one of a label is numbered."""
        found = []
        used: defaultdict[str, int] = defaultdict(int)
        for label, mask in sorted(wanted, key=lambda item: (item[0], list(bits(item[1])))):
            used[label] += 1
            number = f".{used[label]}" if used[label] > 1 else ""
            name = rule_name(self._snapshot.site, f"{label}{number}")
            vms = [self._graph.vms[at] for at in bits(mask)]
            found.append(DrsRule(name=name, type=type_, vms=vms, cluster=self._graph.name))
        return found

    def of_clique(self, clique: int) -> str:
        """The application that asks for most pairs of the clique, the smallest name of several."""
        edges = self._graph.edges
        pairs = {
            position: (edges[position].owners & clique).bit_count() * (edges[position].matched & clique).bit_count()
            for position in {position for at in bits(clique) for position in self._edges_on[at]}
        }
        most = max(pairs.values())
        return min(self._of_edge(position) for position, count in pairs.items() if count == most)

    def of_classes(self, classes: Iterable[int], vms: int) -> str:
        """`NAMESPACE.NAME` of the smallest application among the pods of these classes on these VMs."""
        names = set()
        for pod_name in self._graph.pods_on(classes, vms):
            owner = application_of(self._snapshot, self._snapshot.pods[pod_name])
            names.add(f"{owner.namespace}.{owner.name}" if owner is not None else pod_name.replace("/", "."))
        return min(names)

    def _of_edge(self, position: int) -> str:
        label = self._labels.get(position)
        if label is None:
            edge = self._graph.edges[position]
            label = self._labels[position] = self.of_classes(edge.separation.owners, edge.owners)
        return label
