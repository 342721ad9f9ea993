"""RepairPlans that are made beside the evaluation: a thread of the lowest priority, with an evaluator of its own.

In: a snapshot and what is asked. Out: the plan, some time later. The evaluator is kept as long as there is something to
plan: it follows the changes from one plan to the next.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.streams.background import Beside

if TYPE_CHECKING:
    from underhost.agents.evaluate.evaluator import Evaluator
    from underhost.agents.planner.plan import Planned


class RepairPlans(Protocol):
    """Makes plans for the decider, one at a time."""

    @property
    def is_busy(self) -> bool:
        """Whether there is a plan that nobody has taken, or one is being made."""

    def begin(self, snapshot: Snapshot, asked: RepairTerms) -> None:
        """Begin a plan; an earlier one is of no interest any more."""

    def take(self) -> "Planned | None":
        """The plan, once it is made. Raises what it has failed of."""

    def forget(self) -> None:
        """There is nothing to plan."""


class PlansBeside:
    """Implements `RepairPlans`. `options` are those of the pipeline; here pods of every scheduler find their places."""

    def __init__(self, options: Options) -> None:
        self._options = replace(options, scheduler_names=Options().scheduler_names)
        self._beside: Beside[tuple[Planned, Evaluator]] = Beside("repair")
        self._evaluator: Evaluator | None = None

    @property
    def is_busy(self) -> bool:
        """See `RepairPlans`."""
        return self._beside.is_busy

    def begin(self, snapshot: Snapshot, asked: RepairTerms) -> None:
        """See `RepairPlans`."""
        self._beside.begin(self._work(snapshot, asked, self._evaluator))
        self._evaluator = None  # two threads must not ask it at a time: it comes back with the plan

    def take(self) -> "Planned | None":
        """See `RepairPlans`."""
        found = self._beside.take()
        if found is None:
            return None
        plan, self._evaluator = found
        return plan

    def forget(self) -> None:
        """See `RepairPlans`."""
        self._beside.forget()
        self._evaluator = None

    def _work(
        self, snapshot: Snapshot, asked: RepairTerms, evaluator: "Evaluator | None"
    ) -> "Callable[[], tuple[Planned, Evaluator]]":
        options = self._options

        def work() -> "tuple[Planned, Evaluator]":
            from underhost.agents.evaluate.evaluator import Evaluator  # heavy, as is the solver
            from underhost.agents.planner.plan import planned

            holder = evaluator or Evaluator(options)
            return planned(snapshot, options, asked, holder), holder

        return work
