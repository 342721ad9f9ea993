"""What the disruption budgets still allow while evictions are planned, and which budgets cover a pod.

In: a snapshot and the budgets' figures. Out: whether one more eviction fits. That a budget is kept is the API server's
own doing.
"""

from collections import defaultdict
from collections.abc import Mapping

from underhost.agents.evaluate.budgets import requirements_of
from underhost.agents.site import terms
from underhost.agents.site.selectors import Requirement, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Pod


class BudgetsLeft:
    """What the budgets still allow while evictions are planned; `figures` are the report's."""

    def __init__(self, snapshot: Snapshot, figures: Mapping[str, BudgetFigures]) -> None:
        self._left = {name: one.allowed for name, one in figures.items()}
        self._of: defaultdict[str, list[tuple[str, tuple[Requirement, ...]]]] = defaultdict(list)
        for name, budget in sorted(snapshot.budgets.items()):
            requirements = requirements_of(budget)
            if requirements is not None:
                self._of[budget.metadata.namespace].append((name, requirements))

    def of(self, pod: Pod) -> list[str]:
        """The budgets that cover the pod; of one with several the API server refuses every eviction."""
        own = self._of.get(pod.metadata.namespace)
        labels = terms.labels(bytes(pod.metadata.labels)) if own else {}
        return [name for name, requirements in own or () if matches(requirements, labels)]

    def allow(self, pod: Pod) -> bool:
        """Whether each of its budgets has an eviction left."""
        return all(self._left.get(name, 0) > 0 for name in self.of(pod))

    def take(self, pod: Pod) -> None:
        """An eviction of the pod is ordered, and does not show yet."""
        for name in self.of(pod):
            self._left[name] = self._left.get(name, 0) - 1
