"""What findings ask of VMs: of which pairs on one host one must leave it, and how many members of a quorum.

In: findings, a compiled site, fleets. Out: goals by fleet, and the findings that no vMotion is planned for: their cause
is on one node or on VMs that are off, is none of hosts, is asked of pods of other namespaces (`repair/reached.py`), is
a spread over hosts or an affinity for one, or parts pods alone that belong to their nodes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from underhost.agents.affinity.quorum import RULE as QUORUM
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD, Row, pairs
from underhost.agents.compiled.model import Model
from underhost.agents.planner.assignment import Goal
from underhost.agents.planner.fleet import VmCluster
from underhost.agents.repair.reached import ReachedRules
from underhost.agents.repair.refusers import REACHES
from underhost.agents.rules import node_ports, node_resources_fit
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding

OF_NODES = "its pods belong to their nodes, and no VM is moved for these"
_OTHERS_COUNT = (node_resources_fit.NAME, node_ports.NAME, POD_TOPOLOGY_SPREAD)


class Goals:
    """The findings of one site as goals."""

    def __init__(self, snapshot: Snapshot, model: Model, fleets: Sequence[VmCluster]) -> None:
        self._snapshot, self._model, self._fleets = snapshot, model, fleets
        self._place = {vm.ref: (at, fleet.number[vm.ref]) for at, fleet in enumerate(fleets) for vm in fleet.vms}
        self._host = {
            host.ref: (at, number) for at, fleet in enumerate(fleets) for number, host in enumerate(fleet.hosts)
        }
        self._rules = ReachedRules(model)

    def of(self, findings: Iterable[Finding]) -> tuple[Mapping[int, list[Goal]], list[Finding]]:
        """(goals by the position of their fleet, findings that no vMotion is planned for)."""
        goals: defaultdict[int, list[Goal]] = defaultdict(list)
        others: list[Finding] = []
        for finding in findings:
            found = self._goal(finding)
            if found is None:
                others.append(finding)
            else:
                goals[found[0]].append(found[1])
        return goals, others

    def might_end(self, finding: Finding) -> bool:
        """Whether a vMotion might end a finding that is no goal: its rule is about hosts, and parts no pods of one VM.

        Pods that want a host's company, or a number of them on each, ask for more than that some leave a host.
        """
        topology, running = self._model.topology, self._model.running
        if not self._place or finding.rule == QUORUM:
            return False
        if finding.domain is not None:
            return (finding.rule == PHYSICAL_HOST or topology.is_host_key(finding.domain.key)) and not any(
                self._at(one) == self._at(other) for one, other in self._rules.refusing(finding)
            )
        at = running.at.get(finding.pod or "")
        if finding.rule != INTER_POD_AFFINITY or at is None:
            return False
        asked = self._model.classes[running.class_at[at]].required_affinity
        return any(topology.is_host_key(term.key) for term in asked)

    def ends_by_its_pods(self, finding: Finding) -> bool:
        """Whether the finding stays as long as none of its pods goes; of room, ports, a spread or an affinity others
        count, too."""
        near = finding.rule == INTER_POD_AFFINITY and finding.domain is None
        return not near and finding.rule not in _OTHERS_COUNT

    def _goal(self, finding: Finding) -> tuple[int, Goal] | None:
        if finding.rule == QUORUM:
            return self._leaving(finding)
        met = {(self._at(one), self._at(other)) for one, other in self._parted(finding)}
        if not met or any(one == other for one, other in met):  # on one VM, or on two that do not run
            return None
        known = [[place for place in pair if place is not None] for pair in met]
        return known[0][0][0], Goal.parting(finding.id, ([vm for _, vm in pair] for pair in known))

    def why_left(self, finding: Finding) -> str:
        """Why no VM is moved for a finding about pods, wherever it could go; "" where one might be."""
        if finding.rule != QUORUM and self._rules.within(finding) is None:
            return REACHES
        return OF_NODES if self._rules.refusing(finding) and not self._parted(finding) else ""

    def _parted(self, finding: Finding) -> list[tuple[str, str]]:
        """Every two of its pods that a VM is moved for: DaemonSets' and mirror pods are on their nodes whatever they
        ask of one another."""
        pods = self._snapshot.pods
        return [pair for pair in self._rules.refusing(finding) if not all(pinned(pods[one]) for one in pair)]

    def _leaving(self, finding: Finding) -> tuple[int, Goal] | None:
        """A host that holds too many members of a quorum: so many as are too many must leave it."""
        joined = self._snapshot.node_hosts.get(finding.node or "")
        place = None if joined is None else self._host.get(joined.host)
        if place is None:
            return None
        at, host = place
        fleet = self._fleets[at]
        # Of the quorums that are told of there, it is the one whose finding names it.
        for crowd in fleet.crowds:
            here = {vm: count for vm, count in crowd.members.items() if fleet.at[vm] == host}
            excess = sum(here.values()) + crowd.off[host] - crowd.spare
            if excess > 0 and f" members of {crowd.name} " in finding.message:
                return at, Goal(finding.id, ((here, excess),))
        return None

    def between(self, fleet: VmCluster, one: int, other: int) -> list[str]:
        """In words, the pods that keep two VMs apart; of many, the first two."""
        model, running = self._model, self._model.running
        nodes = [self._nodes_of(fleet.vms[vm].ref) for vm in (one, other)]
        mine, theirs = ([pod for node in there for pod in running.on_node[node]] for there in nodes)
        classes = {running.class_at[pod] for pod in (*mine, *theirs)}
        for each in self._rules.of(classes):
            codes, owners, matched = model.topology.of(each.key).code_list, set(each.owners), set(each.matched)
            by_host = model.topology.is_host_key(each.key)
            rows = [
                Row(codes[running.node_at[pod]], pod, running.class_at[pod] in owners, running.class_at[pod] in matched)
                for pod in (*mine, *theirs)
            ]
            for a, b in combinations([row for row in rows if row.owner or row.match], 2):
                if (a.pod in mine) != (b.pod in mine) and next(pairs((a, b), not by_host), None):
                    names = sorted((running.keys[a.pod], running.keys[b.pod]))
                    return [*names, each.rule, each.key]
        return []

    def _at(self, pod: str) -> tuple[int, int] | None:
        """(fleet, VM) of a pod; None where its VM is off, or not known."""
        joined = self._snapshot.node_hosts.get(self._snapshot.pods[pod].spec.node_name)
        return None if joined is None else self._place.get(joined.vm)

    def _nodes_of(self, vm: str) -> list[int]:
        index = self._model.nodes.index
        return [index[name] for name, joined in self._snapshot.node_hosts.items() if joined.vm == vm and name in index]
