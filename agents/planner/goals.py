"""What findings ask of VMs: of which pairs on one host one must leave it, and how many members of a quorum.

In: findings, a compiled site, fleets. Out: goals by fleet, and the findings that no vMotion ends: their cause is on one
node, or has nothing to do with hosts. Which pods refuse one another is decided by `affinity/separation.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from underhost.agents.affinity.quorum import RULE as QUORUM
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, Row, Separation, pairs, separations
from underhost.agents.compiled.model import Model
from underhost.agents.planner.assignment import Goal
from underhost.agents.planner.fleet import VmCluster
from underhost.agents.rules import physical_host
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding


class Goals:
    """The findings of one site as goals."""

    def __init__(self, snapshot: Snapshot, model: Model, fleets: Sequence[VmCluster]) -> None:
        self._snapshot, self._model, self._fleets = snapshot, model, fleets
        self._place = {vm.ref: (at, fleet.number[vm.ref]) for at, fleet in enumerate(fleets) for vm in fleet.vms}
        self._of_class: defaultdict[int, list[Separation]] = defaultdict(list)
        for one in separations(model.selectors):
            for cls in {*one.owners, *one.matched}:
                self._of_class[cls].append(one)

    def of(self, findings: Iterable[Finding]) -> tuple[Mapping[int, list[Goal]], list[Finding]]:
        """(goals by the position of their fleet, other findings)."""
        goals: defaultdict[int, list[Goal]] = defaultdict(list)
        others: list[Finding] = []
        for finding in findings:
            found = self._goal(finding)
            if found is None:
                others.append(finding)
            else:
                goals[found[0]].append(found[1])
        return goals, others

    def _goal(self, finding: Finding) -> tuple[int, Goal] | None:
        if finding.rule == QUORUM:
            return self._leaving(finding)
        met = sorted({(self._at(one), self._at(other)) for one, other in self.refusing(finding)})
        places = [place for pair in met for place in pair]
        if not met or None in places or any(one == other for one, other in met):
            return None
        known = [(one, other) for one, other in met if one is not None and other is not None]
        return known[0][0][0], Goal.parting(finding.id, ((one[1], other[1]) for one, other in known))

    def _leaving(self, finding: Finding) -> tuple[int, Goal] | None:
        """A host that holds too many members of a quorum: so many as are too many must leave it."""
        joined = self._snapshot.node_hosts.get(finding.node or "")
        place = None if joined is None else self._place.get(joined.vm)
        if joined is None or place is None:
            return None
        fleet = self._fleets[place[0]]
        # Of the quorums that are told of there, it is the one whose finding names it.
        for crowd in fleet.crowds:
            here = {vm: count for vm, count in crowd.members.items() if fleet.at[vm] == fleet.at[place[1]]}
            if (
                place[1] in here
                and sum(here.values()) > crowd.spare
                and f" members of {crowd.name} " in finding.message
            ):
                return place[0], Goal(finding.id, ((here, sum(here.values()) - crowd.spare),))
        return None

    def refusing(self, finding: Finding) -> list[tuple[str, str]]:
        """Every two of its pods that refuse one another because of their host."""
        topology, running = self._model.topology, self._model.running
        across = finding.rule == physical_host.NAME
        rule = finding.source if across else finding.rule
        if finding.domain is None or (rule != INTER_POD_AFFINITY and not across):
            return []
        if not across and not topology.is_host_key(finding.domain.key):
            return []
        pods = [running.at[pod] for pod in (finding.pod or "", *finding.peers) if pod in running.at]
        found: set[tuple[int, int]] = set()
        for one in self._between({running.class_at[pod] for pod in pods}, finding):
            by_host = topology.is_host_key(one.key)
            if one.rule != rule or by_host == across or (by_host and one.key != finding.domain.key):
                continue
            codes, owners, matched = topology.of(one.key).code_list, frozenset(one.owners), frozenset(one.matched)
            rows = [
                Row(codes[running.node_at[pod]], pod, running.class_at[pod] in owners, running.class_at[pod] in matched)
                for pod in pods
            ]
            found.update(pairs(rows, across))
        return [(running.keys[one], running.keys[other]) for one, other in sorted(found)]

    def between(self, fleet: VmCluster, one: int, other: int) -> list[str]:
        """In words, the pods that keep two VMs apart; of many, the first two."""
        model, running = self._model, self._model.running
        nodes = [self._nodes_of(fleet.vms[vm].ref) for vm in (one, other)]
        mine, theirs = ([pod for node in there for pod in running.on_node[node]] for there in nodes)
        classes = {running.class_at[pod] for pod in (*mine, *theirs)}
        for each in sorted({sep for cls in classes for sep in self._of_class.get(cls, ())}):
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

    def _between(self, classes: Collection[int], finding: Finding) -> Iterable[Separation]:
        """The separations of these classes that are of the finding's namespace."""
        whose = (finding.object or "").removeprefix("Namespace/") or (finding.pod or "").partition("/")[0]
        found = {one for cls in classes for one in self._of_class.get(cls, ())}
        return sorted(one for one in found if self._model.classes[one.owners[0]].namespace == whose)

    def _at(self, pod: str) -> tuple[int, int] | None:
        """(fleet, VM) of a pod."""
        joined = self._snapshot.node_hosts.get(self._snapshot.pods[pod].spec.node_name)
        return None if joined is None else self._place.get(joined.vm)

    def _nodes_of(self, vm: str) -> list[int]:
        index = self._model.nodes.index
        return [index[name] for name, joined in self._snapshot.node_hosts.items() if joined.vm == vm and name in index]
