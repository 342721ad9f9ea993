"""Groups of pods that must be apart, kept up to date: broken and undone separations, place by place.

In: the places (separation and domain, separation and host) that changes have touched. Out: findings in the store, in
the words of `violations.py` and `physical.py`. A place is looked at whole, and formed again with the separations that
share pods with it there, others not at all. Domains are named by their value, which stays while codes are given anew.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.evaluate import physical, violations
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.relations import Relations
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.evaluate.sweep import Meeting, merge
from underhost.agents.rules.separation import Row, SeparationId, refusing
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding

Place = tuple[SeparationId, str]  # a separation and a domain's value, or a host's id
_BROKEN, _UNDONE = "broken", "undone"
_Spot = tuple[str, str, str]  # broken or undone; a topology key, or a rule; a domain's value, or a host's id


class _Meetings:
    """The pods that do not keep apart in one spot, by separation; separations that share pods are one knot.

    `knots` are the separations whose findings are in one slot of the store, by that slot.
    """

    __slots__ = ("by_at", "knots", "of_pod", "slot_of")

    def __init__(self) -> None:
        self.by_at: dict[SeparationId, list[list[str]]] = {}
        self.of_pod: defaultdict[str, set[SeparationId]] = defaultdict(set)
        self.slot_of: dict[SeparationId, SeparationId] = {}
        self.knots: dict[SeparationId, set[SeparationId]] = {}

    def put(self, at: SeparationId, groups: list[list[str]]) -> None:
        """What the separation holds from now on."""
        for pods in self.by_at.pop(at, ()):
            for pod in pods:
                self.of_pod[pod].discard(at)
                if not self.of_pod[pod]:
                    del self.of_pod[pod]
        if groups:
            self.by_at[at] = groups
            for pods in groups:
                for pod in pods:
                    self.of_pod[pod].add(at)

    def untie(self, touched: Iterable[SeparationId]) -> tuple[list[SeparationId], list[list[SeparationId]]]:
        """The slots that are void now, and the knots to form instead."""
        void: dict[SeparationId, None] = {}
        loose = list(touched)
        seen = set(loose)
        while loose:
            at = loose.pop()
            near = {other for pods in self.by_at.get(at, ()) for pod in pods for other in self.of_pod[pod]}
            slot = self.slot_of.pop(at, None)
            if slot is not None:
                void[slot] = None
                near |= self.knots.pop(slot, set())
            loose += near - seen
            seen |= near
        knots = []
        left = {at for at in seen if at in self.by_at}
        while left:
            knot = self._knot(left.pop())
            left -= knot
            slot = min(knot)
            self.knots[slot] = knot
            self.slot_of.update(dict.fromkeys(knot, slot))
            knots.append(sorted(knot))
        return list(void), knots

    def _knot(self, start: SeparationId) -> set[SeparationId]:
        knot, loose = {start}, [start]
        while loose:
            near = {other for pods in self.by_at[loose.pop()] for pod in pods for other in self.of_pod[pod]}
            loose += near - knot
            knot |= near
        return knot


class Groups:
    """The pods of each place where a separation is broken or undone, by name."""

    def __init__(self, live: CompiledSite, relations: Relations, store: FindingStore) -> None:
        self._live, self._relations, self._store = live, relations, store
        self._spots: dict[_Spot, _Meetings] = {}

    def judge(self, snapshot: Snapshot, judge: Judge, broken: Iterable[Place], undone: Iterable[Place]) -> None:
        """Look at these places again."""
        touched: defaultdict[_Spot, list[SeparationId]] = defaultdict(list)
        for at, value in broken:
            self._meet((_BROKEN, at.key, value), at, self._broken_at(at, value), touched)
        for at, host in undone:
            self._meet((_UNDONE, at.rule, host), at, self._undone_at(at, host), touched)
        for spot, ats in touched.items():
            meetings = self._spots[spot]
            void, knots = meetings.untie(ats)
            formed = {knot[0]: self._form(snapshot, judge, spot, knot) for knot in knots}
            for slot in void:
                if slot not in formed:
                    self._store.put((*spot, slot), NOTHING)
            for slot, found in formed.items():
                self._store.put((*spot, slot), found)
            if not meetings.by_at:
                del self._spots[spot]

    def _meet(
        self, spot: _Spot, at: SeparationId, met: list[list[int]], touched: "defaultdict[_Spot, list[SeparationId]]"
    ) -> None:
        kept, keys = self._spots.get(spot), self._live.model.running.keys
        if kept is None:
            if not met:
                return
            kept = self._spots[spot] = _Meetings()
        if met or at in kept.by_at:
            kept.put(at, [[keys[pod] for pod in pods] for pods in met])
            touched[spot].append(at)

    def _form(self, snapshot: Snapshot, judge: Judge, spot: _Spot, knot: Sequence[SeparationId]) -> list[Finding]:
        model, (kind, source, value) = self._live.model, spot
        domains = model.topology.hosts if kind == _UNDONE else model.topology.of(source)
        assert domains is not None
        code = domains.code_of[value]
        held = self._spots[spot].by_at
        meetings = [
            Meeting(code, self._relations.separation(at), [model.running.at[key] for key in pods])
            for at in knot
            for pods in held[at]
        ]
        shown = domains.values[code]
        if kind == _UNDONE:
            return [
                physical.physical_finding(snapshot, model, source, group, shown) for group in merge(model, meetings)
            ]
        return [violations.apart_finding(snapshot, judge, source, shown, group) for group in merge(model, meetings)]

    def _broken_at(self, at: SeparationId, value: str) -> list[list[int]]:
        domains = self._live.model.topology.of(at.key)
        return refusing(self._rows(at, domains, value, domains), False)

    def _undone_at(self, at: SeparationId, host: str) -> list[list[int]]:
        topology = self._live.model.topology
        if topology.hosts is None:
            return []
        return refusing(self._rows(at, topology.hosts, host, topology.of(at.key)), True)

    def _rows(self, at: SeparationId, domains: Domains, value: str, own: Domains) -> list[Row]:
        """The pods on either side of the separation in one domain: by class, or by node where that is fewer."""
        model, code = self._live.model, domains.code_of.get(value)
        if code is None:
            return []
        separation = self._relations.separation(at)
        owners, matched = frozenset(separation.owners), frozenset(separation.matched)
        if domains.unique:
            pods: Iterable[int] = model.running.on_node[code]
        else:
            pods = (pod for cls in owners | matched for pod in model.running.members[cls])
        class_at, node_at, codes, values = (
            model.running.class_at,
            model.running.node_at,
            domains.code_list,
            own.code_list,
        )
        rows = []
        for pod in pods:
            node = node_at[pod]
            cls = class_at[pod]
            if codes[node] == code and (cls in owners or cls in matched):
                rows.append(Row(values[node], pod, cls in owners, cls in matched))
        return rows
