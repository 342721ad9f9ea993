"""One evaluation of one site, from the snapshot to the records: topology, findings, placements, actions.

In: a snapshot and the outcomes since the last one. Out: everything that has to be published, in that order. What was
decided is remembered only once it is published (`commit`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from underhost.agents.pipeline.decide.label_stale import StaleLabels
from underhost.agents.pipeline.decide.open_findings import Findings
from underhost.agents.pipeline.decide.placements import Placements
from underhost.agents.pipeline.decide.reports import Reports
from underhost.agents.pipeline.decide.unfinished import Orders
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.tables.node_hosts import Topology
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Action, Finding, Outcome, Placement

if TYPE_CHECKING:
    from underhost.agents.compiled.state import State


class Engine(Protocol):
    """The evaluator, pure."""

    def check(self, snapshot: Snapshot, options: Options) -> Report:
        """Every finding of the running pods."""

    def state(self, snapshot: Snapshot, options: Options) -> "State":
        """The compiled site, for deciders; good until the next call."""

    def decide(self, snapshot: Snapshot, options: Options, assumed: Mapping[str, str]) -> Sequence[Placement]:
        """Where the pending pods go, given that the assumed ones (pod to node) are placed already.

        A pod that is assumed on a node that is not there waits for another time, and counts nowhere.
        """


@dataclass(frozen=True)
class Memory:
    """What one site's evaluations remember; begun from the tables when the site becomes ready.

    `findings` and `placements` are None in a worker that does not evaluate (a labeller of its own, say).
    """

    topology: Topology
    orders: Orders
    findings: Findings | None
    placements: Placements | None
    stale: StaleLabels
    deciders: Sequence[Decider]


class Evaluation:
    """Evaluates one site with one memory."""

    def __init__(
        self,
        engine: Engine,
        options: Options,
        memory: Memory,
        monotonic: Callable[[], float],
        reports: Reports | None = None,
    ) -> None:
        """`reports` are the engine's, where a decider reads them, too."""
        self._engine, self._options, self._memory, self._monotonic = engine, options, memory, monotonic
        self._reports = reports or Reports(engine, options)

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """What became of commands since the last evaluation."""
        now, memory = self._monotonic(), self._memory
        for outcome in outcomes:
            memory.orders.observe(outcome)
            if memory.placements is not None:
                memory.placements.observe(outcome, now)
            for decider in memory.deciders:
                if outcome.kind in decider.hears:
                    decider.observe(outcome, now)

    def locate(self, snapshot: Snapshot, at: str) -> Decisions:
        """First, where each node runs; `at` is the time of the picture, RFC 3339."""
        change = self._memory.topology.update(snapshot, at)
        return Decisions(replace(snapshot, node_hosts=change.node_hosts), change if self.evaluates else None)

    @property
    def evaluates(self) -> bool:
        """Whether findings and placements are decided here."""
        return self._memory.findings is not None

    def judge(self, located: Decisions, at: str, *, orders: bool = True, also: Sequence[Finding] = ()) -> Decisions:
        """Then the evaluator: what is wrong, and where the pending pods go (nowhere, without `orders`).

        `also` are findings that no evaluation can know of.
        """
        memory, snapshot, now = self._memory, located.snapshot, self._monotonic()
        if memory.findings is None or memory.placements is None:
            return located
        # What was due has been looked at, even if what follows raises: else it would be due for ever.
        stale, assumed = memory.stale.findings(snapshot, now), memory.placements.assumed(snapshot, now)
        report = self._reports.update(snapshot)
        found = [*report.findings, *stale, *also]
        placed: list[Placement] = []
        if orders:
            placed = [*self._engine.decide(snapshot, self._options, assumed), *memory.placements.overdue(now)]
        return replace(
            located,
            report=report,
            findings=memory.findings.diff(found, snapshot.offsets, at),
            placements=memory.placements.diff(placed, now),
        )

    def asks(
        self, judged: Decisions, *, forbids: Callable[[str], str] = lambda kind: ""
    ) -> list[Callable[[], list[Action]]]:
        """Last, the deciders, each to be asked by itself: what one cannot do is no reason for the others.

        They are also asked of the same picture again: time alone can make a command due. `forbids` tells why no command
        of a kind may be given now, "" where one may.
        """
        asked = [decider for decider in self._memory.deciders if not forbids(decider.kind)]
        return [partial(self._ask, decider, judged.snapshot) for decider in asked]

    def _ask(self, decider: Decider, snapshot: Snapshot) -> list[Action]:
        return decider.decide(snapshot, self._monotonic())

    def order(self, judged: Decisions, missing: Collection[Action]) -> Decisions:
        """What the deciders found missing, as far as it is not under way."""
        memory, now = self._memory, self._monotonic()
        actions = memory.orders.fresh(missing, now)
        records = memory.orders.records(actions)
        placed = judged.placements.confirmed.values() if judged.placements is not None else ()
        confirmed = memory.orders.confirmed.union(placed)
        return replace(judged, actions=actions, action_records=records, confirmed=confirmed)

    def commit(self, decisions: Decisions) -> None:
        """The records of these decisions are published."""
        memory = self._memory
        if decisions.topology is not None:
            memory.topology.commit(decisions.topology)
        if memory.findings is not None and decisions.findings is not None:
            memory.findings.commit(decisions.findings)
        if memory.placements is not None and decisions.placements is not None:
            memory.placements.commit(decisions.placements)
        memory.orders.commit(decisions.actions)

    def times(self, forbids: Callable[[str], str] = lambda kind: "") -> tuple[float | None, float | None]:
        """When to evaluate, and when to ask the deciders, though nothing changed, in monotonic seconds.

        A pod whose binding failed is decided again after a while, a label is stale after one; a decider may hold a
        command back (`due`). One that is not asked now, because of `forbids`, is not waited for either.
        """
        placements = self._memory.placements
        asked = [decider.due for decider in self._memory.deciders if not forbids(decider.kind)]
        waits = [placements.retry_at(), self._memory.stale.due] if placements is not None else []
        again = min((at for at in waits if at is not None), default=None)
        return again, min((at for at in asked if at is not None), default=None)
