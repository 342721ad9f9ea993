"""Pods that must be apart and are not, place by place: what broken and undone separations have in common.

In: the places to look at: a separation with a domain's value, or with a host's id; None for the whole site. Out: groups
of pods as findings in the store, worded by a subclass. Who refuses whom is decided by `affinity/separation.py`. A
place is looked at whole, and formed again with the separations that share pods with it there, others not at all.
Domains are named by their value, which stays while codes are given anew.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.separation import Row, Separation, SeparationId, connected, refusing
from underhost.agents.compiled.domains import Domains, Topology
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.running import Running
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.marks import Place, Relations
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.evaluate.sweep import sweep
from underhost.schemas.records import Finding

_Met = tuple[SeparationId, str, list[list[int]]]  # of a place, the groups of pods that refuse one another
_Pods = dict[str, int]  # the class of each pod, by key
_Spot = tuple[str, str, str]  # what `together` says of a separation; whose rule it is; a domain's value, or a host's id


class Group(NamedTuple):
    """Pods that refuse one another in one domain, connected through one or more separations of one namespace.

    `pods` are keys, sorted; `cls` is the class of the first; `namespace` is that of the pods that carry the terms.
    """

    pods: list[str]
    cls: int
    separations: list[Separation]
    namespace: str

    @property
    def stranger(self) -> str:
        """Whose rule it is where the first pod is of another namespace; else ""."""
        return "" if self.pods[0].startswith(f"{self.namespace}/") else self.namespace

    @property
    def whose(self) -> str | None:
        """`Namespace/NAME` of whose rule it is, where pods of several namespaces are in the group."""
        several = any(not pod.startswith(f"{self.namespace}/") for pod in self.pods)
        return f"Namespace/{self.namespace}" if several else None


class Meetings(ABC):
    """The pods of each place that do not keep apart. A subclass says of which places, and words the findings.

    Attributes:
        across: the places are hosts, and pods refuse one another across domains of the key; else in one domain of it.
    """

    across: bool

    def __init__(self, store: FindingStore, relations: Relations) -> None:
        self._store, self._relations = store, relations
        self._spots: dict[_Spot, _Kept] = {}
        self._of_value: defaultdict[str, set[_Spot]] = defaultdict(set)

    @abstractmethod
    def concerns(self, topology: Topology, at: SeparationId) -> bool:
        """Whether the separation is judged here."""

    @abstractmethod
    def domains(self, topology: Topology, at: SeparationId) -> Domains:
        """The domains that are the places of the separation."""

    @abstractmethod
    def together(self, at: SeparationId) -> str:
        """Separations of which this is equal may share a finding."""

    @abstractmethod
    def finding(self, case: Case, source: str, value: str, group: Group) -> Finding:
        """A group in words: `source` is what `together` said, `value` the domain as people name it."""

    def judge_all(self, case: Case) -> None:
        """Sweep the whole site."""
        self._take(case, self._sweep(case))

    def judge(self, case: Case, places: Collection[Place]) -> None:
        """Look at these places again."""
        if places:
            self._take(case, self._look(case.model, places))

    def held(self, value: str) -> Iterator[Place]:
        """The places of this value in which pods do not keep apart, as far as they were judged."""
        return ((at, value) for spot in self._of_value.get(value, ()) for at in self._spots[spot].by_id)

    def _sweep(self, case: Case) -> Iterator[_Met]:
        topology = case.model.topology
        by_key: defaultdict[tuple[str, str], list[SeparationId]] = defaultdict(list)
        for at in self._relations.every():
            if self.concerns(topology, at):
                by_key[at.rule, at.key].append(at)
        for ats in by_key.values():
            domains, apart = self.domains(topology, ats[0]), [self._relations.separation(at) for at in ats]
            for met in sweep(case.model, domains, topology.of(ats[0].key) if self.across else None, apart):
                yield ats[met.separation], domains.ids[met.domain], met.groups

    def _look(self, model: Model, places: Collection[Place]) -> Iterator[_Met]:
        """Domain by domain, so that its pods are looked for once for all of its separations."""
        topology = model.topology
        within: defaultdict[tuple[Domains, str], list[SeparationId]] = defaultdict(list)
        for at, value in places:
            if self.concerns(topology, at):
                within[self.domains(topology, at), value].append(at)
            else:
                yield at, value, []
        for (domains, value), ats in within.items():
            there = _There(model.running, domains, value)
            for at in ats:
                yield at, value, refusing(_rows(model, self._relations.separation(at), there), self.across)

    def _take(self, case: Case, found: Iterable[_Met]) -> None:
        """Keep what was met, and form the groups that it changes."""
        touched: defaultdict[_Spot, list[SeparationId]] = defaultdict(list)
        keys, class_at = case.model.running.keys, case.model.running.class_at
        for at, value, groups in found:
            spot = self.together(at), at.namespace, value
            kept = self._spots.get(spot)
            if groups or (kept is not None and at in kept.by_id):
                if kept is None:
                    kept = self._spots[spot] = _Kept()
                    self._of_value[value].add(spot)
                kept.put(at, [{keys[pod]: class_at[pod] for pod in pods} for pods in groups])
                touched[spot].append(at)
        for spot, ats in touched.items():
            void, knots = self._spots[spot].untie(ats)
            formed = {knot[0]: self._form(case, spot, knot) for knot in knots}
            for slot in void:
                if slot not in formed:
                    self._store.put((self.across, *spot, slot), NOTHING)
            for slot, findings in formed.items():
                self._store.put((self.across, *spot, slot), findings)
            if not self._spots[spot].by_id:
                del self._spots[spot]
                self._of_value[spot[2]].discard(spot)
                if not self._of_value[spot[2]]:
                    del self._of_value[spot[2]]

    def _form(self, case: Case, spot: _Spot, knot: Sequence[SeparationId]) -> list[Finding]:
        source, namespace, value = spot
        domains = self.domains(case.model.topology, knot[0])
        shown, held = domains.values[domains.code_of[value]], self._spots[spot].by_id
        meetings = [(self._relations.separation(at), pods) for at in knot for pods in held[at]]
        return [self.finding(case, source, shown, group) for group in _merged(meetings, namespace)]


class _There:
    """The running pods of one domain, asked for by class.

    They are looked for among all pods of a class until as many were looked at as are in the domain: then among these.
    """

    def __init__(self, running: Running, domains: Domains, value: str) -> None:
        self._running, self._domains, self._code = running, domains, domains.code_of.get(value)
        self._looked, self._enough = 0, len(running.keys) // max(1, domains.size)  # as many are in a domain on average
        self._by_class: defaultdict[int, list[int]] | None = None

    def pods(self, classes: Collection[int]) -> list[int]:
        """The pods of these classes."""
        running, code = self._running, self._code
        if code is None:
            return []
        if self._by_class is None:
            members = [running.members[cls] for cls in classes]
            self._looked += sum(map(len, members))
            if self._looked <= self._enough or not self._index(code):
                codes, node_at = self._domains.code_list, running.node_at
                return [pod for mine in members for pod in mine if codes[node_at[pod]] == code]
        assert self._by_class is not None
        return [pod for cls in classes for pod in self._by_class.get(cls, ())]

    def _index(self, code: int) -> bool:
        """Whether fewer pods are there than were looked at; they are by class then."""
        nodes = [code] if self._domains.unique else np.flatnonzero(self._domains.codes == code).tolist()
        there = [self._running.on_node[node] for node in nodes]
        self._enough = sum(map(len, there))
        if self._looked <= self._enough:
            return False
        class_at, self._by_class = self._running.class_at, defaultdict(list)
        for pod in chain.from_iterable(there):
            self._by_class[class_at[pod]].append(pod)
        return True


def _rows(model: Model, separation: Separation, there: _There) -> list[Row]:
    """The pods on either side of the separation in one domain; none where no pod there carries the term.

    Of the terms that select a whole site, most are carried elsewhere alone: their other side is not looked at.
    """
    owners, matched = separation.owners, separation.matched
    if not (carriers := there.pods(owners)):
        return []
    others = there.pods(set(matched).difference(owners)) if matched != owners else []
    if len(carriers) + len(others) < 2:  # as in most places
        return []
    selected, running = frozenset(matched), model.running
    class_at, node_at, values = running.class_at, running.node_at, model.topology.of(separation.key).code_list
    rows = [Row(values[node_at[pod]], pod, True, class_at[pod] in selected) for pod in carriers]
    rows += [Row(values[node_at[pod]], pod, False, True) for pod in others]
    return rows


def _merged(meetings: Sequence[tuple[Separation, _Pods]], namespace: str) -> list[Group]:
    """Meetings in one place that share a pod are one group; sorted by the first pod."""
    first: dict[str, int] = {}
    links = [(first.setdefault(pod, at), at) for at, (_, pods) in enumerate(meetings) for pod in pods]
    found = []
    for group in connected(range(len(meetings)), links) if len(meetings) > 1 else [[0]]:
        class_of = {pod: cls for at in group for pod, cls in meetings[at][1].items()}
        pods = sorted(class_of)
        found.append(Group(pods, class_of[pods[0]], sorted({meetings[at][0] for at in group}), namespace))
    return sorted(found)


class _Kept:
    """The pods that do not keep apart in one spot, by separation; separations that share pods are one knot.

    `knots` are the separations whose findings are in one slot of the store, by that slot.
    """

    __slots__ = ("_of_pod", "by_id", "knots", "slot_of")

    def __init__(self) -> None:
        self.by_id: dict[SeparationId, list[_Pods]] = {}
        self.slot_of: dict[SeparationId, SeparationId] = {}
        self.knots: dict[SeparationId, Sequence[SeparationId]] = {}
        self._of_pod: dict[str, set[SeparationId]] = {}  # made when something in the spot changes

    def put(self, at: SeparationId, groups: list[_Pods]) -> None:
        """What the separation holds from now on."""
        if self.slot_of and not self._of_pod:
            for one, held in self.by_id.items():
                self._index(one, held)
        for pods in self.by_id.pop(at, ()):
            for pod in pods:
                self._of_pod[pod].discard(at)
                if not self._of_pod[pod]:
                    del self._of_pod[pod]
        if groups:
            self.by_id[at] = groups
            if self.slot_of:
                self._index(at, groups)

    def _index(self, at: SeparationId, groups: list[_Pods]) -> None:
        for pods in groups:
            for pod in pods:
                self._of_pod.setdefault(pod, set()).add(at)

    def untie(self, touched: Iterable[SeparationId]) -> tuple[list[SeparationId], list[Sequence[SeparationId]]]:
        """The slots that are void now, and the knots to form instead; what was touched was `put` before."""
        if not self.slot_of:
            return [], self._tie(list(self.by_id))
        void: dict[SeparationId, None] = {}
        loose, walked = list(touched), set[str]()
        seen = set(loose)
        while loose:
            at = loose.pop()
            near = set[SeparationId]()
            for pods in self.by_id.get(at, ()):
                fresh = pods.keys() - walked  # each pod once: hundreds of separations may hold the very same pods
                walked |= fresh
                near.update(*(self._of_pod[pod] for pod in fresh))
            slot = self.slot_of.pop(at, None)
            if slot is not None:
                void[slot] = None
                near.update(self.knots.pop(slot, ()))
            loose += near - seen
            seen |= near
        return list(void), self._tie([at for at in seen if at in self.by_id])

    def _tie(self, loose: Sequence[SeparationId]) -> list[Sequence[SeparationId]]:
        """Form the knots of separations that share pods with one another, and with no others."""
        found: list[Sequence[SeparationId]] = [tuple(loose)] if len(loose) == 1 else self._knotted(loose)  # mostly one
        for knot in found:
            self.knots[knot[0]] = knot
            self.slot_of.update(dict.fromkeys(knot, knot[0]))
        return found

    def _knotted(self, loose: Sequence[SeparationId]) -> list[Sequence[SeparationId]]:
        first: dict[str, int] = {}
        links = [
            (first.setdefault(pod, number), number)
            for number, at in enumerate(loose)
            for pods in self.by_id[at]
            for pod in pods
        ]
        groups = connected(range(len(loose)), links)
        return [tuple(sorted(loose[number] for number in group)) for group in groups]
