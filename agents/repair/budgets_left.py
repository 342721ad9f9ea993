"""What the disruption budgets still allow while evictions are planned.

In: a snapshot and the budgets' figures. Out: whether one more eviction fits. That a budget is kept is the API server's
own doing.
"""

from collections.abc import Mapping

from underhost.agents.evaluate.disruption import Coverage
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Pod


class BudgetsLeft:
    """What the budgets still allow while evictions are planned; `figures` are the report's."""

    def __init__(self, snapshot: Snapshot, figures: Mapping[str, BudgetFigures]) -> None:
        self._left = {name: one.allowed for name, one in figures.items()}
        self._coverage = Coverage()
        self._coverage.change_budgets(snapshot.budgets, {})

    def of(self, pod: Pod) -> list[str]:
        """The budgets that cover the pod; of one with several the API server refuses every eviction."""
        return list(self._coverage.budgets_of(f"{pod.metadata.namespace}/{pod.metadata.name}", pod))

    def allow(self, pod: Pod) -> bool:
        """Whether each of its budgets has an eviction left."""
        return all(self._left.get(name, 0) > 0 for name in self.of(pod))

    def take(self, pod: Pod) -> None:
        """An eviction of the pod is ordered, and does not show yet."""
        for name in self.of(pod):
            self._left[name] = self._left.get(name, 0) - 1
