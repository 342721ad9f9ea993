"""Disruption budgets that stop evictions: `budget` findings, and the figures of every budget, kept up to date.

In: pods, workloads and budgets as they change. Out: findings in the store for budgets that can never allow an eviction
and for pods that several budgets cover (the eviction API refuses these). What a budget covers and allows is left to
`disruption.py`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.disruption import RULE, Coverage, Covered, CoveredPods, covered_of
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.sorted_names import SortedNames
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Budget, Pod
from underhost.schemas.records import Finding
from underhost.schemas.severities import BUDGET

REASON_NEVER = "the budget can never allow an eviction"
REASON_OVERLAP = "more than one disruption budget covers the pod"


class Budgets:
    """The budgets of a site, each with its pods by name."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._coverage = Coverage()
        self._covered: dict[str, Covered] = {}
        self._several: dict[str, tuple[str, ...]] = {}  # by pod that has not finished, its budgets
        self._sharing: defaultdict[tuple[str, ...], SortedNames] = defaultdict(SortedNames)  # the other way round
        self._dirty: set[str] = set()
        self._overlaps: set[tuple[str, ...]] = set()

    def figures(self) -> dict[str, BudgetFigures]:
        """Of every budget, sorted by name."""
        return {name: self._covered[name].figures for name in sorted(self._covered)}

    def change_pod(self, key: str, pod: Pod | None) -> None:
        """A pod came, changed or (None) went. Raises BadObjectError for labels that a budget has to read."""
        self._dirty |= self._coverage.change_pod(key, pod)
        self._share(key, pod)

    def change_budgets(self, changed: Mapping[str, Budget | None], pods: Mapping[str, Pod]) -> None:
        """Budgets came, changed or (None) went; `pods` are those there are. Raises BadObjectError."""
        self._dirty.update(changed)
        anew = self._coverage.change_budgets(changed, pods)
        for key, pod in pods.items() if anew else ():
            if pod.metadata.namespace in anew:
                self._share(key, pod)

    def change_workloads(self, namespace: str) -> None:
        """A workload of the namespace changed: it may set what a budget of percent expects."""
        self._dirty.update(name for name in self._covered if name.startswith(f"{namespace}/"))

    def names(self) -> list[str]:
        """Of every budget that is figured, sorted."""
        return sorted(self._covered)

    def covered(self, name: str) -> Covered | None:
        """A budget as it was figured last; None where it has gone."""
        return self._covered.get(name)

    def pods_of(self, name: str) -> CoveredPods:
        """The pods that a budget covers."""
        return self._coverage.pods_of(name)

    def known_of(self, key: str) -> tuple[str, ...]:
        """The budgets that cover a pod."""
        return self._coverage.known_of(key)

    def judge(self, snapshot: Snapshot) -> set[str]:
        """Figure what changed anew; returns these budgets, those too that have gone."""
        figured, self._dirty = self._dirty, set()
        for name in sorted(figured):
            budget = snapshot.budgets.get(name)
            if budget is None:
                self._covered.pop(name, None)
                self._store.put((BUDGET, name), NOTHING)
            else:
                one = self._covered[name] = covered_of(snapshot, budget, self._coverage.pods_of(name))
                self._store.put((BUDGET, name), _never(snapshot, name, one))
        for names in self._overlaps:
            self._store.put(("overlap", names), _overlap(snapshot, names, self._sharing[names].listed()))
            if not self._sharing[names]:
                del self._sharing[names]
        self._overlaps.clear()
        return figured

    def _share(self, key: str, pod: Pod | None) -> None:
        """Keep a pod under its budgets where they are several."""
        was = self._several.pop(key, ())
        if was:
            self._overlaps.add(was)
            self._sharing[was].put(key, False)
        names = () if pod is None or pod.status.phase in FINISHED else self._coverage.known_of(key)
        if len(names) > 1:
            self._overlaps.add(names)
            self._several[key] = names
            self._sharing[names].put(key, True)


def _never(snapshot: Snapshot, name: str, one: Covered) -> Sequence[Finding]:
    """The budget where it can never allow an eviction."""
    if one.best != 0 or not one.pods:
        return NOTHING
    message = f"Budget {name} can never allow an eviction of {f.listing(one.pods)}: {one.why}. A drain waits for ever."
    return [_finding(snapshot, one.pods, REASON_NEVER, message, [name])]


def _overlap(snapshot: Snapshot, names: Sequence[str], pods: list[str]) -> Sequence[Finding]:
    """Pods that these budgets cover, where they are several; pods sorted by name."""
    if len(names) < 2 or not pods:
        return NOTHING
    verb = "both cover" if len(names) == 2 else "all cover"
    message = (
        f"Budgets {f.listing(list(names), len(names))} {verb} {f.listing(pods)}: "
        "the API server refuses every eviction of a pod with more than one budget."
    )
    return [_finding(snapshot, pods, REASON_OVERLAP, message, list(names))]


def _finding(snapshot: Snapshot, pods: list[str], reason: str, message: str, budgets: list[str]) -> Finding:
    first = pods[0]
    uid = f.uid_of(first, snapshot.pods.get(first))
    return Finding(
        id=f.finding_id(snapshot.site, BUDGET, RULE, reason, "\0".join(budgets), uid),
        severity=BUDGET,
        rule=RULE,
        reason=reason,
        message=message,
        pod=first,
        node=snapshot.pods[first].spec.node_name or None,
        peers=pods[1:],
        object=f"{RULE}/{budgets[0]}" if len(budgets) == 1 else None,
    )
