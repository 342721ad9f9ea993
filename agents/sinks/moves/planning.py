"""Plans that are made beside the evaluation: a thread of the lowest priority, with an evaluator of its own.

In: a snapshot and what is asked. Out: the plan, some time later. The evaluator is kept as long as there is something to
plan: it follows the changes from one plan to the next.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from underhost.agents.site.snapshot import Options, Snapshot
from underhost.streams.background import Beside

if TYPE_CHECKING:
    from underhost.agents.evaluate.evaluator import Evaluator
    from underhost.agents.planner.plan import Planned
    from underhost.agents.planner.terms import RepairTerms
    from underhost.agents.whatif.maintenance import Chosen, PlannedMaintenance

A = TypeVar("A")
P = TypeVar("P")
Asked_contra = TypeVar("Asked_contra", contravariant=True)
Plan_co = TypeVar("Plan_co", covariant=True)


class PlanMaker(Protocol[Asked_contra, Plan_co]):
    """Makes plans for a decider, one at a time."""

    @property
    def took(self) -> float:
        """Seconds of a processor that the plan has cost which was taken last, or which has failed."""

    @property
    def is_busy(self) -> bool:
        """Whether there is a plan that nobody has taken, or one is being made."""

    def begin(self, snapshot: Snapshot, asked: Asked_contra) -> None:
        """Begin a plan; an earlier one is of no interest any more."""

    def take(self) -> Plan_co | None:
        """The plan, once it is made. Raises what it has failed of."""

    def forget(self) -> None:
        """There is nothing to plan."""


class PlansBeside(Generic[A, P]):
    """Implements `PlanMaker` by `make`. `options` are the pipeline's; here pods of every scheduler find places."""

    def __init__(self, options: Options, make: "Callable[[Snapshot, Options, A, Evaluator], P]") -> None:
        self._options, self._make = replace(options, scheduler_names=Options().scheduler_names), make
        self._beside: Beside[tuple[P, Evaluator]] = Beside("plan")
        self._evaluator: Evaluator | None = None

    @property
    def took(self) -> float:
        """See `PlanMaker`."""
        return self._beside.took

    @property
    def is_busy(self) -> bool:
        """See `PlanMaker`."""
        return self._beside.is_busy

    def begin(self, snapshot: Snapshot, asked: A) -> None:
        """See `PlanMaker`."""
        self._beside.begin(self._work(snapshot, asked, self._evaluator))
        self._evaluator = None  # two threads must not ask it at a time: it comes back with the plan

    def take(self) -> P | None:
        """See `PlanMaker`."""
        found = self._beside.take()
        if found is None:
            return None
        plan, self._evaluator = found
        return plan

    def forget(self) -> None:
        """See `PlanMaker`."""
        self._beside.forget()
        self._evaluator = None

    def _work(self, snapshot: Snapshot, asked: A, evaluator: "Evaluator | None") -> "Callable[[], tuple[P, Evaluator]]":
        options, make = self._options, self._make

        def work() -> "tuple[P, Evaluator]":
            from underhost.agents.evaluate.evaluator import Evaluator  # heavy

            holder = evaluator or Evaluator(options)
            return make(snapshot, options, asked, holder), holder

        return work


def repair_plan(snapshot: Snapshot, options: Options, asked: "RepairTerms", evaluator: "Evaluator") -> "Planned":
    """The fewest moves that leave nothing broken."""
    from underhost.agents.planner.plan import planned  # heavy: it has the solver

    return planned(snapshot, options, asked, evaluator)


def maintenance_plan(
    snapshot: Snapshot, options: Options, asked: "Chosen", evaluator: "Evaluator"
) -> "PlannedMaintenance":
    """The shortest order in which hosts can be emptied."""
    from underhost.agents.whatif.maintenance import planned_maintenance  # heavy: it has the evaluator

    return planned_maintenance(snapshot, options, asked, evaluator)
