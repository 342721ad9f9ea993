"""Disruption budgets kept up to date: which pods each covers, and what that allows.

In: pods, workloads and budgets as they change. Out: figures, and findings in the store. How a budget is figured is left
to `budgets.py`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from underhost.agents.evaluate import budgets as b
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.selectors import Requirement, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Budget, Pod


class Budgets:
    """The budgets of a site, each with its pods by name."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._pods: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self._requirements: defaultdict[str, dict[str, tuple[Requirement, ...] | None]] = defaultdict(dict)
        self._matched: dict[str, dict[str, Pod]] = {}
        self._covered: dict[str, b.Covered] = {}
        self._of_pod: dict[str, tuple[str, ...]] = {}
        self._groups: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        self._dirty: set[str] = set()
        self._overlaps: set[tuple[str, ...]] = set()

    def figures(self) -> dict[str, BudgetFigures]:
        """Of every budget, sorted by name."""
        return {name: self._covered[name].figures for name in sorted(self._covered)}

    def pods_of(self, namespace: str) -> Mapping[str, Pod]:
        """The pods of a namespace, finished ones too."""
        return self._pods.get(namespace, {})

    def change_pod(self, key: str, pod: Pod | None, before: Pod | None) -> None:
        """A pod came, changed or went (None). Raises BadObjectError for labels that a budget has to read."""
        either = pod or before
        assert either is not None
        namespace = either.metadata.namespace
        here = self._pods[namespace]
        if pod is None:
            here.pop(key, None)
        else:
            here[key] = pod
        if not self._requirements.get(namespace):
            return
        labels = None if pod is None else _labels(key, pod)
        for name, requirements in self._requirements[namespace].items():
            matched = self._matched[name]
            if labels is not None and pod is not None and requirements is not None and matches(requirements, labels):
                matched[key] = pod
            elif matched.pop(key, None) is None:
                continue
            self._dirty.add(name)
        if key in self._of_pod:
            self._overlaps.add(self._of_pod[key])

    def change_budget(self, name: str, budget: Budget | None, before: Budget | None) -> None:
        """A budget came, changed or went. Raises BadObjectError."""
        if before is not None:
            self._requirements[before.metadata.namespace].pop(name, None)
            self._matched.pop(name, None)
        self._dirty.add(name)
        if budget is None:
            return
        try:
            requirements = b.requirements_of(budget)
        except Fault as fault:
            raise fault.within(f"{b.RULE} {name}") from None
        pods = self._pods[budget.metadata.namespace]
        self._requirements[budget.metadata.namespace][name] = requirements
        every = {key: _labels(key, pod) for key, pod in pods.items()}
        self._matched[name] = {
            key: pod for key, pod in pods.items() if requirements is not None and matches(requirements, every[key])
        }

    def change_workloads(self, namespace: str) -> None:
        """A workload of the namespace changed: it may set what a budget of percent expects."""
        self._dirty.update(self._requirements.get(namespace, ()))

    def judge(self, snapshot: Snapshot) -> None:
        """Figure what changed anew."""
        for name in sorted(self._dirty):
            budget = snapshot.budgets.get(name)
            before = self._covered.pop(name, None)
            if budget is None:
                self._store.put(("budget", name), NOTHING)
            else:
                matched = sorted(self._matched[name].items())
                one = self._covered[name] = b.covered_of(snapshot, budget, matched)
                self._store.put(("budget", name), b.never_findings(snapshot, {name: one}))
            now = set(self._covered[name].pods) if budget is not None else set[str]()
            for pod in now ^ set(before.pods if before is not None else ()):
                self._cover(pod, name, pod in now)
        self._dirty.clear()
        for names in self._overlaps:
            pods = sorted(self._groups.get(names, ()))
            covered = {name: replace(self._covered[name], pods=pods) for name in names if pods}
            self._store.put(("overlap", names), b.overlap_findings(snapshot, covered) if pods else NOTHING)
        self._overlaps.clear()

    def _cover(self, pod: str, name: str, covers: bool) -> None:
        """Budget by budget, the group of pods that the same budgets cover."""
        before = self._of_pod.pop(pod, ())
        self._leave(pod, before)
        now = tuple(sorted({*before, name})) if covers else tuple(one for one in before if one != name)
        if now:
            self._of_pod[pod] = now
        if len(now) > 1:
            self._groups[now].add(pod)
            self._overlaps.add(now)

    def _leave(self, pod: str, names: tuple[str, ...]) -> None:
        if len(names) > 1:
            self._groups[names].discard(pod)
            self._overlaps.add(names)
            if not self._groups[names]:
                del self._groups[names]


def _labels(key: str, pod: Pod) -> dict[str, str]:
    try:
        return terms.labels(bytes(pod.metadata.labels))
    except Fault as fault:
        raise fault.within(f"Pod {key}") from None
