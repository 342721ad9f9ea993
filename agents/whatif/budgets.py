"""What disruption budgets allow while a drain goes on, eviction by eviction, as the Eviction API asks them.

In: a snapshot and the pods that are to be evicted. Out: for each pod the budgets in its way. Source:
pkg/registry/core/pod/storage/eviction.go.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from underhost.agents.evaluate.budgets import covered_of, requirements_of
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED, ready
from underhost.agents.site.selectors import Requirement, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Pod

_NOW = "now"  # whatever the time is
ALWAYS_ALLOW, IF_HEALTHY = "AlwaysAllow", "IfHealthyBudget"


class Allowances:
    """The budgets that cover the pods to be evicted. `used` counts the evictions that each was charged for."""

    def __init__(self, snapshot: Snapshot, evicted: Iterable[str]) -> None:
        self._snapshot = snapshot
        self._requirements: defaultdict[str, dict[str, tuple[Requirement, ...]]] = defaultdict(dict)
        for name, budget in sorted(snapshot.budgets.items()):
            try:
                requirements = requirements_of(budget)
            except Fault as fault:
                raise fault.within(f"PodDisruptionBudget {name}") from None
            if requirements is not None:
                self._requirements[budget.metadata.namespace][name] = requirements
        self._labels: dict[bytes, dict[str, str]] = {}
        self.used: Counter[str] = Counter()
        asked = {name for key in evicted for name in self._covering(key, snapshot.pods[key])}
        self._asked: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(asked):
            self._asked[name.partition("/")[0]].append(name)
        self._matched: dict[str, dict[str, Pod]] = {name: {} for name in asked}
        self._figures: dict[str, BudgetFigures] = {}
        for key, pod in snapshot.pods.items() if asked else ():
            self.change(key, pod)

    def change(self, key: str, pod: Pod | None) -> None:
        """The pod is like this from now on; None: it is gone."""
        for name in self._asked.get(key.partition("/")[0], ()):
            matched = self._matched[name]
            if pod is not None and self._covers(name, key, pod):
                matched[key] = pod
            elif matched.pop(key, None) is None:
                continue
            self._figures.pop(name, None)

    def evicted(self, key: str, pod: Pod) -> None:
        """An eviction of the pod was granted: it terminates."""
        self.change(key, replace(pod, metadata=replace(pod.metadata, deletion_timestamp=_NOW)))

    def covering(self, key: str, pod: Pod) -> list[str]:
        """The budgets that an eviction of the pod asks, sorted; none for a pod that counts as no disruption."""
        if pod.status.phase in ("Pending", *FINISHED) or pod.metadata.deletion_timestamp is not None:
            return []
        return self._covering(key, pod)

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
            matched = sorted(self._matched[name].items())
            figures = covered_of(self._snapshot, self._snapshot.budgets[name], matched).figures
            self._figures[name] = figures
        return figures

    def _covering(self, key: str, pod: Pod) -> list[str]:
        return [name for name in self._requirements.get(pod.metadata.namespace, ()) if self._covers(name, key, pod)]

    def _covers(self, name: str, key: str, pod: Pod) -> bool:
        raw = bytes(pod.metadata.labels)
        labels = self._labels.get(raw)
        if labels is None:
            try:
                labels = self._labels[raw] = terms.labels(raw)
            except Fault as fault:
                raise fault.within(f"Pod {key}") from None
        return matches(self._requirements[pod.metadata.namespace][name], labels)
