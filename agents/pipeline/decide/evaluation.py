"""The evaluation of one site: where its nodes run, what is wrong, where pods go, which commands are missing.

In: snapshots, and outcomes since the last one. Out: `Decisions`, whose records the cycle publishes. What was decided is
remembered only once it is published (`commit`).
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from underhost.agents.pipeline.decide.evaluator import PipelineEvaluator
from underhost.agents.pipeline.decide.label_stale import StaleLabels, StalePods
from underhost.agents.pipeline.decide.left_vms import LeftVms
from underhost.agents.pipeline.decide.open_findings import PublishedFindings
from underhost.agents.pipeline.decide.own_writes import OwnWrites
from underhost.agents.pipeline.decide.placements import BindingQueue, placement_of
from underhost.agents.pipeline.decide.tenants import Tenants
from underhost.agents.pipeline.decide.unfinished import UnfinishedCommands
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.gates.guards import Standstill
from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import BIND
from underhost.schemas.errors import UnderhostError
from underhost.schemas.records import Action, Outcome, Placement

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class SiteMemory:
    """What the evaluations of one site remember; begun from the tables when the site becomes ready.

    `findings` and `bindings` are None in a worker that does not evaluate (a labeller of its own, say).
    """

    node_hosts: NodeHosts
    unfinished: UnfinishedCommands
    findings: PublishedFindings | None
    bindings: BindingQueue | None
    binding_labels: BindingLabels
    tenants: Tenants
    left_vms: LeftVms
    stale: StaleLabels
    stale_pods: StalePods
    own_writes: OwnWrites
    deciders: Sequence[Decider]


class Evaluation:
    """Evaluates one site, one snapshot after another. `monotonic` is a clock in seconds.

    Attributes:
        failure: why a step of the last evaluation came to nothing, None when all went well.
    """

    def __init__(
        self,
        site: str,
        evaluator: PipelineEvaluator,
        memory: SiteMemory,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._site, self._evaluator, self._memory, self._monotonic = site, evaluator, memory, monotonic
        self._last: Snapshot | None = None
        self._failures: list[str] = []
        self.failure: str | None = None

    def evaluate(
        self, snapshot: Snapshot, at: str, outcomes: Iterable[Outcome], still: Standstill, *, changed: bool
    ) -> Decisions:
        """Decide from a snapshot taken `at` this time (RFC 3339), unless `still` forbids it.

        Where nothing has `changed`, only the deciders are asked, of the last snapshot: time alone can make a command
        due. What one step cannot do is no reason for the others: labels follow their hosts even where the rules cannot
        be judged.
        """
        self._observe(outcomes)
        self._memory.own_writes.look(snapshot, self._monotonic())
        if changed or self._last is None:
            self._failures = []
            decided = Decisions(snapshot)
            decided = self._attempt(decided, lambda: self._locate(snapshot, at))
            decided = self._attempt(decided, lambda: self._judge(decided, at, still))
            self._last = decided.snapshot
        else:
            decided = Decisions(self._last)
        self._stand_still(still)
        if not still.everything:
            decided = self._attempt(decided, lambda: self._order(decided, still))
        self.failure = next(iter(self._failures), None)
        return replace(decided, unseen=self._memory.own_writes.unseen)

    def renew(self) -> None:
        """Let the next evaluation begin anew; see `PipelineEvaluator.renew`."""
        self._evaluator.renew()

    def _observe(self, outcomes: Iterable[Outcome]) -> None:
        """What became of commands since the last evaluation."""
        now, memory = self._monotonic(), self._memory
        for outcome in outcomes:
            memory.unfinished.observe(outcome)
            memory.own_writes.observe(outcome, now)
            memory.tenants.observe(outcome, now)
            memory.left_vms.observe(outcome)
            if memory.bindings is not None:
                memory.bindings.observe(outcome, now)
            for decider in memory.deciders:
                if outcome.kind in decider.hears:
                    decider.observe(outcome, now)

    def _stand_still(self, still: Standstill) -> None:
        """Tell those deciders that are not asked now."""
        for decider in self._memory.deciders:
            if why := still.forbids(decider.kind):
                decider.stand_still(why, self._monotonic())

    def _locate(self, snapshot: Snapshot, at: str) -> Decisions:
        """Where each node runs; published only by a worker that evaluates."""
        change = self._memory.node_hosts.update(snapshot, at)
        located = replace(snapshot, hosts=change.hosts, node_hosts=change.node_hosts, rivals=change.rivals)
        return Decisions(located, change if self._memory.findings is not None else None)

    def _judge(self, located: Decisions, at: str, still: Standstill) -> Decisions:
        """What is wrong, and where the pending pods go: nowhere, while nothing may be bound."""
        memory, snapshot, now = self._memory, located.snapshot, self._monotonic()
        if memory.findings is None or memory.bindings is None:
            return located
        # What was due has been looked at, even if what follows raises: else it would be due for ever.
        stale, assumed = memory.stale.findings(snapshot, now), memory.bindings.assumed(snapshot, now)
        memory.tenants.due = memory.findings.due = None
        report = self._evaluator.update(snapshot)
        shown = memory.tenants.within_shares(report.findings, memory.findings.open, snapshot, now)
        left = memory.left_vms.findings(snapshot, report.findings)
        found = [*shown, *stale, *memory.stale_pods.findings(snapshot), *left, *still.findings(self._site)]
        placed: list[Placement] = []
        if not still.forbids(BIND):
            decisions = self._evaluator.decide(snapshot, assumed)
            labels = memory.binding_labels
            placed = [
                placement_of(each, snapshot.offsets, labels.of(snapshot, each.pod, each.node) if each.node else {})
                for each in decisions
            ]
            placed += memory.bindings.overdue(now)
        return replace(
            located,
            report=report,
            findings=memory.findings.diff(found, snapshot.offsets, at, now),
            placements=memory.bindings.diff(placed, now),
        )

    def _order(self, judged: Decisions, still: Standstill) -> Decisions:
        """What the deciders find missing, as far as it is not under way."""
        missing: list[Action] = []
        for decider in self._memory.deciders:
            if not still.forbids(decider.kind):
                missing += self._attempt([], partial(decider.decide, judged.snapshot, self._monotonic()))
        capped = chain.from_iterable(decider.capped for decider in self._memory.deciders)
        self._memory.tenants.cap(capped, self._monotonic())
        unfinished = self._memory.unfinished
        actions = unfinished.fresh(missing, self._monotonic())
        placed = judged.placements.confirmed.values() if judged.placements is not None else ()
        return replace(
            judged,
            actions=actions,
            action_records=unfinished.records(actions),
            confirmed=unfinished.confirmed.union(placed),
        )

    def _attempt(self, otherwise: T, step: Callable[[], T]) -> T:
        """Do one step.

        Whatever it raises (a panic of polars is no Exception) is a bug, or an object that breaks the API's rules. It
        must not end the worker, nor what does not need that step. What stands is kept, /readyz says so, and the next
        change is a new attempt.
        """
        try:
            return step()
        except BaseException as error:
            failure = f"not evaluated: {type(error).__name__}: {error}"
            expected = isinstance(error, UnderhostError)
            log.error("site %s: %s", self._site, failure, exc_info=None if expected else error)
            self._failures.append(failure)
            return otherwise

    def commit(self, decisions: Decisions) -> None:
        """The records of these decisions are published."""
        memory = self._memory
        if decisions.node_hosts is not None:
            memory.node_hosts.commit(decisions.node_hosts)
        if memory.findings is not None and decisions.findings is not None:
            memory.findings.commit(decisions.findings)
        if memory.bindings is not None and decisions.placements is not None:
            memory.bindings.commit(decisions.placements)
        memory.unfinished.commit(decisions.actions)
        memory.own_writes.order(decisions.commands, decisions.snapshot, self._monotonic())

    def evaluate_at(self) -> float | None:
        """When to evaluate though nothing changed, in monotonic seconds: a label becomes stale, an update is due."""
        memory = self._memory
        if memory.findings is None or memory.bindings is None:
            return None
        waits = (memory.bindings.retry_at(), memory.stale.due, memory.tenants.due, memory.findings.due)
        return min((at for at in waits if at is not None), default=None)

    def order_at(self, still: Standstill) -> float | None:
        """When to ask the deciders though nothing changed; one that may not order now is not waited for."""
        due = (decider.due for decider in self._memory.deciders if not still.forbids(decider.kind))
        return min((at for at in due if at is not None), default=None)
