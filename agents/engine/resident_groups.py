"""Groups of pods that must be apart, kept up to date: broken and undone separations, place by place.

In: the places (separation and domain, separation and host) that changes have touched. Out: findings in the store, in
the words of `violations.py` and `physical.py`. Called by `resident.py`. A place is looked at whole, others not at all.
Domains are named by their value, which stays while codes are given anew.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.engine import physical, violations
from underhost.agents.engine.domains import Domains
from underhost.agents.engine.judge import Judge
from underhost.agents.engine.resident_live import Live
from underhost.agents.engine.resident_relations import At, Relations
from underhost.agents.engine.resident_store import NOTHING, FindingStore
from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.engine.sweep import Meeting, Row, different, meets, merge
from underhost.schemas.records import Finding

Place = tuple[At, str]  # a separation and a domain's value, or a host's id
Spot = tuple[str, str]  # a topology key (or a rule) and such a value
Held = defaultdict[Spot, dict[At, list[list[str]]]]


class Groups:
    """The pods of each place where a separation is broken or undone, by name."""

    def __init__(self, live: Live, relations: Relations, store: FindingStore) -> None:
        self._live, self._relations, self._store = live, relations, store
        self._broken: Held = defaultdict(dict)
        self._undone: Held = defaultdict(dict)

    def judge(self, snapshot: Snapshot, judge: Judge, broken: Iterable[Place], undone: Iterable[Place]) -> None:
        """Look at these places again."""
        touched = {self._meet(self._broken, (at.key, value), at, self._broken_at(at, value)) for at, value in broken}
        for spot in touched:
            found = self._apart(snapshot, judge, spot) if self._is_held(self._broken, spot) else NOTHING
            self._store.put(("apart", spot), found)
        touched = {self._meet(self._undone, (at.rule, host), at, self._undone_at(at, host)) for at, host in undone}
        for spot in touched:
            found = self._together(snapshot, spot) if self._is_held(self._undone, spot) else NOTHING
            self._store.put(("undone", spot), found)

    def _meet(self, kept: Held, spot: Spot, at: At, met: list[list[int]]) -> Spot:
        keys = self._live.model.running.keys
        if met:
            kept[spot][at] = [[keys[pod] for pod in pods] for pods in met]
        elif spot in kept:
            kept[spot].pop(at, None)
        return spot

    @staticmethod
    def _is_held(kept: Held, spot: Spot) -> bool:
        if kept.get(spot):
            return True
        kept.pop(spot, None)
        return False

    def _meetings(self, kept: Mapping[At, list[list[str]]], code: int) -> list[Meeting]:
        position = self._live.model.at
        return [
            Meeting(code, self._relations.separation(at), [position[key] for key in pods])
            for at, groups in kept.items()
            for pods in groups
        ]

    def _apart(self, snapshot: Snapshot, judge: Judge, spot: Spot) -> list[Finding]:
        key, value = spot
        domains = self._live.model.topology.of(key)
        code = domains.code_of[value]
        shown = domains.values[code]
        groups = merge(self._live.model, self._meetings(self._broken[spot], code))
        return [violations.apart_finding(snapshot, judge, key, shown, group) for group in groups]

    def _together(self, snapshot: Snapshot, spot: Spot) -> list[Finding]:
        model, (source, host) = self._live.model, spot
        assert model.topology.hosts is not None
        code = model.topology.hosts.code_of[host]
        groups = merge(model, self._meetings(self._undone[spot], code))
        name = model.topology.hosts.values[code]
        return [physical.physical_finding(snapshot, model, source, group, name) for group in groups]

    def _broken_at(self, at: At, value: str) -> list[list[int]]:
        domains = self._live.model.topology.of(at.key)
        rows = self._rows(at, domains, value, domains)
        return [sorted(row[1] for row in rows)] if meets(rows, False) else []

    def _undone_at(self, at: At, host: str) -> list[list[int]]:
        topology = self._live.model.topology
        if topology.hosts is None:
            return []
        rows = self._rows(at, topology.hosts, host, topology.of(at.key))
        return different(rows) if meets(rows, True) else []

    def _rows(self, at: At, domains: Domains, value: str, own: Domains) -> list[Row]:
        """The pods on either side of the separation in one domain: by class, or by node where that is fewer."""
        model, code = self._live.model, domains.code_of.get(value)
        if code is None:
            return []
        separation = self._relations.separation(at)
        owners, matched = frozenset(separation.owners), frozenset(separation.matched)
        if domains.unique:
            pods: Iterable[int] = model.on_node[code]
        else:
            pods = (pod for cls in owners | matched for pod in model.members[cls])
        class_at, node_at, codes, values = model.class_at, model.node_at, domains.code_list, own.code_list
        rows = []
        for pod in pods:
            cls, node = class_at[pod], node_at[pod]
            if codes[node] == code and values[node] >= 0 and (cls in owners or cls in matched):
                rows.append((values[node], pod, cls in owners, cls in matched))
        return rows
