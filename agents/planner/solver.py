"""The exact core: a choice of yes and no under linear bounds, best by one objective after another. HiGHS does it.

In: choices, sums that must not exceed a bound, objectives. Out: the values of the choices. Nobody else imports the
solver (docs/decisions/0011-highs-plans-repairs.md). One thread and no clock: the same program has the same answer.
"""

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from underhost.agents.schedule.progress import alive

if TYPE_CHECKING:
    import highspy

NODES = 20_000
"""Branches that are looked at for one objective, at most: beyond them the best that was found is not proven."""
_HALF = 0.5

Terms = Mapping[int, int]
"""A sum: for some choices, how often each counts."""


class Program:
    """Choices of 0 or 1.

    Attributes:
        proven: whether the last answer is the best there is, by every objective.
    """

    def __init__(self) -> None:
        self._size = 0
        self._rows: list[tuple[Terms, int]] = []
        self.proven = True

    def choice(self) -> int:
        """One more choice; its number."""
        self._size += 1
        return self._size - 1

    def at_most(self, terms: Terms, most: int) -> None:
        """The sum must not exceed `most`."""
        self._rows.append((terms, most))

    def best(self, *objectives: Terms) -> list[bool] | None:
        """The choices that make the first sum least, of these the second, and so on; None where nothing is allowed."""
        from highspy import HighsModelStatus, SolutionStatus  # as in `_solver`

        self.proven = True
        if not self._size:
            return [] if all(most >= 0 for _, most in self._rows) else None
        solver = self._solver()
        ended = _end_when_told(solver)
        values: list[bool] | None = None
        for objective in objectives or ({},):
            columns = np.arange(self._size, dtype=np.int32)
            costs = np.zeros(self._size)
            costs[list(objective)] = list(objective.values())
            solver.changeColsCost(self._size, columns, costs)
            alive()
            solver.run()
            if ended:
                raise ended[0]
            status = solver.getModelStatus()
            if status == HighsModelStatus.kInfeasible:
                return None
            self.proven &= status == HighsModelStatus.kOptimal
            if solver.getInfo().primal_solution_status != SolutionStatus.kSolutionStatusFeasible:
                return values
            values = [value > _HALF for value in solver.getSolution().col_value]
            reached = sum(weight for at, weight in objective.items() if values[at])
            _add_row(solver, objective, reached)
        return values

    def _solver(self) -> "highspy.Highs":
        import highspy  # 5 MiB, which a worker that plans no repair does without

        solver = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_max_nodes", NODES)):
            solver.setOptionValue(option, value)
        for option in ("mip_rel_gap", "mip_abs_gap"):
            solver.setOptionValue(option, 0.0)
        solver.addVars(self._size, np.zeros(self._size), np.ones(self._size))
        columns = np.arange(self._size, dtype=np.int32)
        whole = np.full(self._size, highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(self._size, columns, whole)
        starts = np.cumsum([0, *(len(terms) for terms, _ in self._rows)])[:-1].astype(np.int32)
        indices = np.array([at for terms, _ in self._rows for at in terms], np.int32)
        weights = np.array([weight for terms, _ in self._rows for weight in terms.values()], float)
        bounds = np.array([most for _, most in self._rows], float)
        lowest = np.full(len(self._rows), -inf)
        solver.addRows(len(self._rows), lowest, bounds, len(indices), starts, indices, weights)
        return solver


def _end_when_told(solver: "highspy.Highs") -> list[Exception]:
    """Whoever may end the work may do so while the solver searches: what was raised then is in the list."""
    ended: list[Exception] = []
    still = copy_context()  # the solver may ask from another thread

    def heard(event: Any) -> None:
        try:
            still.run(alive)
        except Exception as error:  # noqa: BLE001 - raised again once the solver has returned
            ended.append(error)
            event.interrupt()

    solver.cbMipInterrupt.subscribe(heard)
    return ended


def _add_row(solver: "highspy.Highs", terms: Terms, most: int) -> None:
    indices: Sequence[int] = list(terms)
    if indices:
        weights = np.array([terms[at] for at in indices], float)
        solver.addRow(-inf, float(most), len(indices), np.array(indices, np.int32), weights)
