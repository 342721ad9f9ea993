"""Where a kept evaluator and a full evaluation of one snapshot differ: the few objects that still show it.

In: the snapshot, and both reports. Out: two small snapshots, before and after a step: an evaluator that follows from
one to the other reports something else than a full evaluation of the second. What led there hours ago nobody keeps, so
steps are tried that may have gone wrong: the pods that are named came, were bound, or their nodes came. The objects are
reduced by delta debugging (Zeller and Hildebrandt, 2002). Pure, and bounded in time.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.errors import UnderhostError
from underhost.schemas.kubernetes import EMPTY_LIST, Pod, encode
from underhost.schemas.records import Finding, pods_named

Unit = tuple[str, str]
"""A table of a snapshot, and a key in it. A node brings its VM and host along."""
TABLES = ("nodes", "pods", "namespaces", "services", "workloads", "budgets")
MOST = 8
"""Named pods that are each tried alone; then all of them at once."""
BUDGET = 60.0
"""Seconds for the reduction; what is left then is small enough to begin with."""

Kept = Callable[[Snapshot, Snapshot], Report]
"""The report of an evaluator that was brought from one snapshot to the next."""
Full = Callable[[Snapshot], Report]
Step = Callable[[Snapshot], Snapshot]


@dataclass(frozen=True)
class Difference:
    """What the kept evaluator lacks, and what it alone reports."""

    lacks: tuple[Finding, ...]
    alone: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return bool(self.lacks or self.alone)


@dataclass(frozen=True)
class Reproduction:
    """Two snapshots; `replays` says whether the step from one to the other shows a difference by itself."""

    before: Snapshot
    after: Snapshot
    replays: bool

    @property
    def objects(self) -> list[str]:
        """What is in it, by kind and name."""
        return [f"{table}/{key}" for table, key in _units(self.after)]


def difference(kept: Report, full: Report) -> Difference:
    """Of two reports of one snapshot; also where only a budget's figures differ, which no finding tells of."""
    mine = {encode(finding): finding for finding in kept.findings}
    right = {encode(finding): finding for finding in full.findings}
    return Difference(
        tuple(finding for data, finding in right.items() if data not in mine),
        tuple(finding for data, finding in mine.items() if data not in right),
    )


def reproduce(snapshot: Snapshot, differing: Difference, kept: Kept, full: Full) -> Reproduction:
    """The smallest step that is found within BUDGET; where none shows a difference, what the findings name."""
    deadline = time.monotonic() + BUDGET
    bare = _without_volumes(snapshot)
    named = set(_named(bare, differing))

    def differs(pair: tuple[Snapshot, Snapshot]) -> bool:
        try:
            return bool(_kinds(difference(kept(*pair), full(pair[1]))) & _kinds(differing))
        except UnderhostError:
            return False  # too little is left to judge it

    for around in _around(bare, named):
        for step in _steps(named):

            def shows(units: Sequence[Unit], step: Step = step) -> bool:
                after = _only(bare, units)
                return differs((step(after), after))

            if time.monotonic() < deadline and shows(around):
                smallest = _only(bare, _smallest(around, shows, deadline))
                return Reproduction(step(smallest), smallest, replays=True)
    some = _only(bare, [unit for unit in _units(bare) if unit in named])
    return Reproduction(some, some, replays=False)


def _kinds(differing: Difference) -> set[tuple[str, str]]:
    """What is lacking or wrong, by severity and rule: with a node left out its pods would differ in something else."""
    return {(finding.severity, finding.rule) for finding in (*differing.lacks, *differing.alone)}


def _named(snapshot: Snapshot, differing: Difference) -> Iterator[Unit]:
    """The pods and nodes that the findings name, and the nodes of those pods."""
    for finding in (*differing.lacks, *differing.alone):
        for name in pods_named(finding):
            if name in snapshot.pods:
                yield "pods", name
                yield "nodes", snapshot.pods[name].spec.node_name
        if finding.node:
            yield "nodes", finding.node


def _around(snapshot: Snapshot, named: Iterable[Unit]) -> Iterator[list[Unit]]:
    """Wider and wider choices: what is named, all of its namespaces with every node, everything."""
    units, names = _units(snapshot), set(named)
    yield [unit for unit in units if unit in names]
    spaces = {key.partition("/")[0] for table, key in names if table == "pods"}
    yield [(table, key) for table, key in units if table == "nodes" or not spaces.isdisjoint(key.split("/"))]
    yield units


def _steps(named: Iterable[Unit]) -> list[Step]:
    """From a snapshot to one before it: a named pod, or node, was not there yet, or a pod was not bound."""
    pods = sorted(key for table, key in named if table == "pods")
    nodes = {key for table, key in named if table == "nodes"}
    some = [{key} for key in pods[:MOST]] + [set(pods)]
    came = [partial(_without_pods, names=names) for names in some]
    bound = [partial(_unbound, names=names) for names in some]
    return [*came, *bound, partial(_without_nodes, names=nodes)]


def _without_pods(after: Snapshot, names: set[str]) -> Snapshot:
    return replace(after, pods={key: pod for key, pod in after.pods.items() if key not in names})


def _unbound(after: Snapshot, names: set[str]) -> Snapshot:
    def waiting(pod: Pod) -> Pod:
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))

    return replace(after, pods={key: waiting(pod) if key in names else pod for key, pod in after.pods.items()})


def _without_nodes(after: Snapshot, names: set[str]) -> Snapshot:
    return replace(
        after,
        nodes={name: node for name, node in after.nodes.items() if name not in names},
        node_hosts={name: row for name, row in after.node_hosts.items() if name not in names},
        rivals={name: rival for name, rival in after.rivals.items() if name not in names},
    )


def _without_volumes(snapshot: Snapshot) -> Snapshot:
    """No finding reads them, and an inline volume may hold what is nobody's business. DRS' own is left out, too."""

    def bare(pod: Pod) -> Pod:
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=EMPTY_LIST))

    return replace(snapshot, pods={key: bare(pod) for key, pod in snapshot.pods.items()}, clusters={}, rules={})


def _units(snapshot: Snapshot) -> list[Unit]:
    return [(table, key) for table in TABLES for key in getattr(snapshot, table)]


def _only(snapshot: Snapshot, units: Iterable[Unit]) -> Snapshot:
    """The snapshot with these objects alone, in its order."""
    wanted = set(units)

    tables: dict[str, Any] = {
        table: {key: row for key, row in getattr(snapshot, table).items() if (table, key) in wanted} for table in TABLES
    }
    rows = {name: row for name, row in snapshot.node_hosts.items() if ("nodes", name) in wanted}
    return replace(
        snapshot,
        **tables,
        node_hosts=rows,
        rivals={name: rival for name, rival in snapshot.rivals.items() if ("nodes", name) in wanted},
        vms={row.vm: snapshot.vms[row.vm] for row in rows.values() if row.vm in snapshot.vms},
        hosts={row.host: snapshot.hosts[row.host] for row in rows.values() if row.host in snapshot.hosts},
    )


def _smallest(units: Sequence[Unit], differs: Callable[[Sequence[Unit]], bool], deadline: float) -> Sequence[Unit]:
    """Delta debugging: leave out one part of n as long as the rest still differs, then smaller parts."""
    parts = 2
    while len(units) > 1:
        size = -(-len(units) // parts)
        for begin in range(0, len(units), size):
            if time.monotonic() >= deadline:
                return units
            rest = [*units[:begin], *units[begin + size :]]
            if differs(rest):
                units, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(units), parts * 2)
    return units
