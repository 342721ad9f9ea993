"""What disruption budgets allow while a drain goes on, eviction by eviction, as the Eviction API asks them.

In: snapshots, and the pods that are to be evicted. Out: for each pod the budgets in its way. Source:
pkg/registry/core/pod/storage/eviction.go.
"""

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from underhost.agents.evaluate.disruption import Coverage, covered_of
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.owners import FINISHED, ready
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Budget, Pod

_NOW = "now"  # whatever the time is
ALWAYS_ALLOW, IF_HEALTHY = "AlwaysAllow", "IfHealthyBudget"


class FollowedCoverage:
    """Which budgets cover which pods while a plan changes them: what it left alone is not matched again."""

    def __init__(self) -> None:
        self._coverage = Coverage()
        self._budgets: Mapping[str, Budget] = {}
        self._pods: Mapping[str, Pod] = {}

    def of(self, snapshot: Snapshot) -> Coverage:
        """The coverage as this snapshot has it. Raises BadObjectError."""
        budgets, pods = snapshot.budgets, snapshot.pods
        changed = {name: budgets.get(name) for name in changed_keys(self._budgets, budgets)}
        self._coverage.change_budgets(changed, self._pods)
        for key in changed_keys(self._pods, pods):
            self._coverage.change_pod(key, pods.get(key))
        self._budgets, self._pods = budgets, pods
        return self._coverage


class Allowances:
    """What the budgets of a snapshot allow; `coverage` is its. `used` counts the evictions each was charged for."""

    def __init__(self, snapshot: Snapshot, coverage: Coverage) -> None:
        self._snapshot, self._coverage = snapshot, coverage
        self._figures: dict[str, BudgetFigures] = {}
        self.used: Counter[str] = Counter()

    def change(self, key: str, pod: Pod | None) -> None:
        """The pod is like this from now on; None: it is gone."""
        for name in self._coverage.change_pod(key, pod):
            self._figures.pop(name, None)

    def evicted(self, key: str, pod: Pod) -> None:
        """An eviction of the pod was granted: it terminates."""
        self.change(key, replace(pod, metadata=replace(pod.metadata, deletion_timestamp=_NOW)))

    def covering(self, key: str, pod: Pod) -> list[str]:
        """The budgets that an eviction of the pod asks, sorted; none for a pod that counts as no disruption."""
        if pod.status.phase in ("Pending", *FINISHED) or pod.metadata.deletion_timestamp is not None:
            return []
        return list(self._coverage.budgets_of(key, pod))

    def refusals(self, key: str, pod: Pod) -> list[str]:
        """The budgets in the way of an eviction now; where there are none, the budget is charged for it."""
        names = self.covering(key, pod)
        if len(names) > 1:
            return names
        for name in names:
            if not ready(pod):
                policy = self._snapshot.budgets[name].spec.unhealthy_pod_eviction_policy
                if policy not in (None, "", IF_HEALTHY, ALWAYS_ALLOW):
                    return names
                figures = self._of(name)
                if policy == ALWAYS_ALLOW or figures.current >= figures.desired > 0:
                    continue  # a pod that is not ready costs the budget nothing
            if self._of(name).allowed < 1:
                return names
            self.used[name] += 1
        return []

    def _of(self, name: str) -> BudgetFigures:
        figures = self._figures.get(name)
        if figures is None:
            pods = self._coverage.pods_of(name)
            figures = covered_of(self._snapshot, self._snapshot.budgets[name], pods).figures
            self._figures[name] = figures
        return figures
