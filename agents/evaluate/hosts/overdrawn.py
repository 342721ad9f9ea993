"""Hosts whose failure takes more pods than a disruption budget allows to be away: `co-located` advice about budgets.

In: the budgets with their pods, all at once or as they change. Out: findings in the store, one for each budget and host
(or node whose host is unknown) that holds more of the budget's healthy pods than may be disrupted once all are healthy.
Placement is judged, not health: a rolling update that uses up the budget opens nothing. What the budget allows is left
to `evaluate/disruption.py`.

Nothing is said twice, and nothing that nobody can mend. Pods that another finding says should not be together here
count as one: what is left once that has ended. A budget that no placement keeps, on the places that its pods may be
on, is a matter of lint: one that allows nothing, or more pods than the places can hold.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from underhost.agents.affinity.separation import connected
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray
from underhost.agents.compiled.matching import affinity_mask, shut_out_mask
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.budgets import Budgets
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.disruption import RULE, Covered
from underhost.agents.evaluate.hosts.colocated import CoLocated
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.site.places import SamePlace, crowded, place_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import CO_LOCATED
from underhost.schemas.vsphere import CONNECTED

REASON = "one failure takes more pods than the budget allows"
ClassesOf = Callable[[Collection[str]], Mapping[str, int]]
_Near = tuple[str, str]  # a topologyKey and the value in which required affinity holds the pods of a class together
_Reach = tuple[tuple[bytes, bytes], bytes, tuple[_Near, ...]]  # what decides on which nodes pods may be


@dataclass
class _Crowded:
    """A budget with more pods in a place than it allows to be away.

    Attributes:
        spare: how many may be away. size: how many pods there are once all are healthy.
        needs: of each reach, how many pods must find room in it. examples: of each, a class of such pods.
        is_gathered: whether affinity between pods is part of a reach.
        is_kept: whether some placement keeps the budget, as last judged.
    """

    spare: int
    size: int
    needs: Counter[_Reach] = field(default_factory=Counter)
    examples: dict[_Reach, PodClass] = field(default_factory=dict)
    is_gathered: bool = False
    is_kept: bool = False


class Overdrawn:
    """The budgets of a site that one place holds too much of."""

    def __init__(self, store: FindingStore, budgets: Budgets, colocated: CoLocated) -> None:
        """`budgets` and `colocated` judge before this does."""
        self._store, self._budgets, self._colocated = store, budgets, colocated
        self._crowded: dict[str, _Crowded] = {}
        self._dirty: set[str] = set()
        self._has_nodes_changed = False

    def judge_all(self, case: Case) -> None:
        """Look at every budget."""
        self.judge(case, self._budgets.names(), (), case.classes_of)

    # ------------------------------------------------------------------------------------------------------- changes
    def change_nodes(self) -> None:
        """Nodes or hosts are others: where pods may be can have changed."""
        self._has_nodes_changed = True

    def change_names(self) -> None:
        """Namespaces are others: selectors may match other pods."""
        self._dirty.update(self._crowded)

    def move(self, pods: Iterable[str]) -> None:
        """The hosts below these pods are others."""
        for key in pods:
            self._dirty.update(self._budgets.known_of(key))

    def judge(self, case: Case, figured: Iterable[str], regrouped: Iterable[str], classes_of: ClassesOf) -> None:
        """Look at the budgets that were figured anew or moved, and those of pods that other findings name now or did.

        `classes_of` gives the classes of pods that are on nodes.
        """
        self._dirty.update(figured)
        self.move(regrouped)
        room = _Room(case)
        if self._has_nodes_changed:
            self._has_nodes_changed = False
            again = (name for name, one in self._crowded.items() if one.is_gathered or room.keeps(one) != one.is_kept)
            self._dirty.update(list(again))
        if self._dirty:
            self._judge(case, room, classes_of)
            self._dirty.clear()

    def _judge(self, case: Case, room: "_Room", classes_of: ClassesOf) -> None:
        held = {name: self._held(case.snapshot, name) for name in sorted(self._dirty)}
        healthy = {name: self._budgets.pods_of(name).healthy() for name, places in held.items() if places}
        classes = classes_of({key for pods in healthy.values() for key in pods}) if healthy else {}
        for name, places in held.items():
            found: list[Finding] = []
            self._crowded.pop(name, None)
            if places:
                one = self._crowded[name] = self._asked(case, name, healthy[name], classes)
                one.is_kept = room.keeps(one)
                if one.is_kept:
                    found = list(self._findings(case.snapshot, name, healthy[name], places))
            self._store.put((CO_LOCATED, RULE, name), found or NOTHING)

    def _held(self, snapshot: Snapshot, name: str) -> set[SamePlace]:
        """The places that hold too much of a budget."""
        covered = self._budgets.covered(name)
        if covered is None or not covered.best:
            return set()
        pods = self._budgets.pods_of(name)
        return crowded(snapshot, pods.on, covered.best) if pods.current > covered.best else set()

    def _asked(self, case: Case, name: str, healthy: Mapping[str, str], classes: Mapping[str, int]) -> _Crowded:
        """What a placement that keeps the budget needs."""
        covered = self._budgets.covered(name)
        assert covered is not None
        assert covered.best is not None
        found = _Crowded(covered.best, covered.best + covered.figures.desired)
        nodes = case.model.nodes.index
        for key, node in healthy.items():
            cls = case.model.classes[classes[key]]
            near = _near(case, cls, nodes.get(node))
            reach = cls.node_key, cls.tolerations_key, near
            found.examples.setdefault(reach, cls)
            found.needs[reach] += 1
            found.is_gathered |= bool(near)
        return found

    def _findings(
        self, snapshot: Snapshot, name: str, healthy: Mapping[str, str], places: Collection[SamePlace]
    ) -> Iterable[Finding]:
        covered = self._budgets.covered(name)
        assert covered is not None
        here: defaultdict[SamePlace, list[str]] = defaultdict(list)
        for key, node in healthy.items():
            if (place := place_of(snapshot, node)) in places:
                here[place].append(key)
        for place in sorted(here):
            if covered.best is not None and self._counted(here[place]) > covered.best:
                yield _finding(snapshot, name, covered, sorted(here[place]), len(healthy), place)

    def _counted(self, pods: list[str]) -> int:
        """How many there are, those as one that another finding says should not be together."""
        first: dict[object, int] = {}
        links = [
            (first.setdefault(group, at), at)
            for at, key in enumerate(pods)
            for group in (*self._store.of_pod.get(key, ()), self._colocated.told_of(key))
            if group is not None
        ]
        return len(connected(range(len(pods)), links))


class _Room:
    """How many places there are for pods, worked out once for each reach. Nodes may go to any usable host of theirs."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._known: dict[frozenset[_Reach], int] = {}
        self._usable: Counter[str] | None = None

    def keeps(self, one: _Crowded) -> bool:
        """Whether the places can hold the pods, in each no more than may be away."""
        if one.size > one.spare * self._places(one, frozenset(one.needs)):
            return False
        return all(count <= one.spare * self._places(one, frozenset((reach,))) for reach, count in one.needs.items())

    def _places(self, one: _Crowded, reaches: frozenset[_Reach]) -> int:
        """How many hosts, and nodes whose host is unknown, pods may be on that have one of these reaches."""
        found = self._known.get(reaches)
        if found is None:
            mask = np.logical_or.reduce([self._mask(one.examples[reach], reach) for reach in reaches])
            found = self._known[reaches] = self._count(mask)
        return found

    def _mask(self, cls: PodClass, reach: _Reach) -> BoolArray:
        """The nodes by affinity, lasting taints, and what gathers the pods. A cordon passes."""
        case = self._case
        mask = np.ones(len(case.model.nodes), bool)
        selected, refused = affinity_mask(case.state, cls), shut_out_mask(case.state, cls)
        if selected is not None:
            mask &= selected
        if refused is not None:
            mask &= ~refused
        for key, value in reach[2]:
            domains = case.model.topology.of(key)
            mask &= domains.codes == domains.code_of.get(value, -2)
        return mask

    def _count(self, mask: BoolArray) -> int:
        hosts = self._case.model.topology.hosts
        if hosts is None:
            return int(mask.sum())
        codes = hosts.codes[mask]
        nodes_of, alone = Counter[str](), int((codes < 0).sum())
        for code, count in zip(*np.unique(codes[codes >= 0], return_counts=True), strict=True):
            host = self._case.snapshot.hosts.get(hosts.ids[int(code)])
            if host is None:
                alone += 1  # nobody says which other hosts its nodes may go to
            else:
                nodes_of[host.cluster] += int(count)
        if self._usable is None:
            every = self._case.snapshot.hosts.values()
            self._usable = Counter(host.cluster for host in every if host.state == CONNECTED)
        return alone + sum(min(count, self._usable[cluster]) for cluster, count in nodes_of.items())


def _near(case: Case, cls: PodClass, node: int | None) -> tuple[_Near, ...]:
    """The domains in which required affinity holds pods of the class together, as one of them is on this node."""
    if node is None or not cls.required_affinity:
        return ()
    found = set[_Near]()
    for term in cls.required_affinity:
        domains = case.model.topology.of(term.key)
        code = domains.code_list[node]
        if term.selector is not None and cls.id in term.selector.classes and code >= 0:
            found.add((term.key, domains.ids[code]))
    return tuple(sorted(found))


def _finding(
    snapshot: Snapshot, name: str, covered: Covered, pods: list[str], healthy: int, place: SamePlace
) -> Finding:
    """More healthy pods of a budget in one place than it allows to be away."""
    first = snapshot.pods[pods[0]]
    message = (
        f"{len(pods)} of the {healthy} healthy pods of budget {name} ({f.listing(pods)}) run on "
        f"{place}: its failure takes more than the {covered.best} that may be away ({covered.why})."
    )
    return Finding(
        id=f.finding_id(snapshot.site, CO_LOCATED, RULE, f"{name}/{place.kind}", place.id, f.uid_of(pods[0], first)),
        severity=CO_LOCATED,
        rule=RULE,
        reason=REASON,
        message=message,
        pod=pods[0],
        node=first.spec.node_name,
        peers=pods[1:],
        domain=Domain(key=place.kind, value=place.name),
        object=f"{RULE}/{name}",
    )
