"""Which DRS VM-VM rules a site needs: exactly what Kubernetes asks to be apart or together, in few rules.

In: a snapshot and its model. Out: the desired rules of every vSphere cluster. Pure, and equal for every order of the
input. The decider compares them with the rules that are there; what the hosts cannot hold is a finding
(`evaluate/unsatisfiable.py`).

An anti-affinity rule keeps all its members apart, so cliques cover the pairs that must be apart (`cliques.py`): never
two VMs that need no separation, never a VM from itself, never fewer than two VMs, never VMs of two clusters.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.gathering import Gathering
from underhost.agents.affinity.quorum import Quorum
from underhost.agents.compiled.model import Model
from underhost.agents.drs.asked import AskedByParty
from underhost.agents.drs.cliques import bits, clique_cover, split
from underhost.agents.drs.names import numbered, rule_name
from underhost.agents.drs.placed import Part, PlacedPods
from underhost.agents.drs.quorums import QuorumVms, quorum_rules, quorum_vms
from underhost.agents.drs.shares import TOGETHER, LeftOut, OwnedRule, owned, within_shares
from underhost.agents.drs.vm_graph import ClusterVms, Together, VmGraph, gathered
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY, DrsRule

EDGES = 8
"""Separations of a namespace that are looked at, for each rule that it may have."""


class RulesByCluster:
    """The rules of one site, thought through again only for the parties whose pods, VMs or terms have changed.

    Only running pods on nodes whose VM and host are known count, and only hosts that are connected and not in
    maintenance are usable. Where more VMs must be apart than hosts are usable, as many as fit are kept apart.

    Each party's rules are worked out for themselves in each vSphere cluster, and each namespace has its share of them:
    what one asks for changes nobody else's.

    Attributes:
        left_out: the rules that are beyond somebody's share, as `of` was last asked.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._model: Model | None = None
        self._asked: AskedByParty
        self._placed: PlacedPods
        self._parts: dict[Part, _PartRules] = {}
        self._known: dict[str, tuple[Sequence[QuorumVms], _Made]] = {}
        self.left_out: list[LeftOut] = []

    def of(self, snapshot: Snapshot, model: Model, quorums: Iterable[Quorum] = ()) -> list[DrsRule]:
        """The rules by cluster and name, those of the snapshot's quorums among them.

        `model` is compiled from the snapshot, or has followed to it.
        """
        if model is not self._model:
            self._model, self._parts, self._known = model, {}, {}
            self._asked = AskedByParty(model, self._options)
            self._placed = PlacedPods(model, self._asked)
        parts, moved = self._placed.follow(snapshot)
        for part in parts | {part for part in moved if part in self._parts and self._parts[part].by_host}:
            self._known.pop(part.cluster, None)
            if part in self._placed.parts:
                self._parts[part] = self._of_part(snapshot.site, part)
            else:
                self._parts.pop(part, None)
        usable = {cluster: self._placed.usable[cluster] for cluster in sorted(self._placed.vms)}
        held = quorum_vms(snapshot, usable, quorums)
        before, self._known = self._known, {}
        for cluster in usable:
            wanted, known = held.get(cluster, []), before.get(cluster)
            if known is None or known[0] != wanted:
                known = wanted, self._of_cluster(snapshot.site, cluster, wanted)
            self._known[cluster] = known
        self.left_out = [one for _, made in self._known.values() for one in made.left_out]
        return [rule for _, made in self._known.values() for rule in made.rules]

    def _of_cluster(self, site: str, cluster: str, held: Sequence[QuorumVms]) -> "_Made":
        """Of all parties, by name."""
        mine = sorted(part for part in self._parts if part.cluster == cluster)
        rules = [one for part in mine for one in self._parts[part].rules]
        if held:
            rules += owned(site, quorum_rules(site, cluster, held, [one.rule for one in rules]))
        rules.sort(key=lambda one: one.rule.name)
        return _Made(*within_shares(site, rules, self._options.shares))

    def _of_part(self, site: str, part: Part) -> "_PartRules":
        """What a party asks for in a cluster; it is looked at with the VMs alone that run its pods."""
        assert self._model is not None
        placed, there, index = self._placed.parts[part], self._placed.vms[part.cluster], self._model.nodes.index
        vms = sorted(placed)
        nodes = np.array([index[there[vm].node] for vm in vms], np.intp)
        hosts = [there[vm].host for vm in vms]
        cluster = ClusterVms(part.cluster, vms, nodes, hosts, self._placed.usable[part.cluster])
        graph, applications = VmGraph(self._model, cluster), dict[str, str]()
        for at, vm in enumerate(vms):
            for pod in placed[vm]:
                graph.place(pod.key, pod.cls, at)
                applications[pod.key] = pod.application
        graph.connect(self._asked.apart(part.party))
        if part.party:  # of a namespace, not of all that there are
            del graph.edges[EDGES * self._options.shares.drs_rules :]
        rules = _rules_of(site, graph, self._asked.near(part.party), applications)
        return _PartRules(owned(site, rules), graph.asked_host)


class _PartRules(NamedTuple):
    """The rules of one part, and whether they are others where its VMs are on other hosts."""

    rules: list[OwnedRule]
    by_host: bool


class _Made(NamedTuple):
    """The rules of one cluster, by name, and those that are beyond somebody's share."""

    rules: list[DrsRule]
    left_out: list[LeftOut]


def _rules_of(site: str, graph: VmGraph, near: Sequence[Gathering], applications: Mapping[str, str]) -> list[DrsRule]:
    """The rules of one part, in any order."""
    namer, groups = _Namer(site, graph, applications), gathered(graph, near)
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

    def __init__(self, site: str, graph: VmGraph, applications: Mapping[str, str]) -> None:
        """`applications`: `NAMESPACE.NAME` of each pod's."""
        self._site, self._graph, self._applications = site, graph, applications
        self._labels: dict[int, str] = {}
        self._numbers: Counter[str] = Counter()  # the last of each label
        self._edges_on: defaultdict[int, list[int]] = defaultdict(list)
        for position, edge in enumerate(graph.edges):
            for at in bits(edge.owners | edge.matched):
                self._edges_on[at].append(position)

    def rules(self, type_: str, wanted: Iterable[tuple[str, int]]) -> list[DrsRule]:
        """The rules; a second one of a label is numbered, and leaves out a number that is another's label."""
        found = []
        ordered = sorted(wanted, key=lambda item: (item[0], list(bits(item[1]))))
        self._numbers.update(dict.fromkeys((label for label, _ in ordered), 0))
        for label, mask in ordered:
            self._numbers[label] += 1
            while self._numbers[label] > 1 and numbered(label, self._numbers[label]) in self._numbers:
                self._numbers[label] += 1
            name = rule_name(self._site, numbered(label, self._numbers[label]))
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
        return min(self._applications[pod] for pod in self._graph.pods_on(classes, vms))

    def _of_edge(self, position: int) -> str:
        label = self._labels.get(position)
        if label is None:
            edge = self._graph.edges[position]
            label = self._labels[position] = self.of_classes(edge.separation.owners, edge.owners)
        return label
