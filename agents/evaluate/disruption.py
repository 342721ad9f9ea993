"""Disruption budgets: which pods each covers, and what that allows, figured as the disruption controller does.

In: pods, budgets and workloads. Out: who is covered by which budgets (`Coverage`), and the figures of a budget. A pod
that comes, changes or goes is counted by itself: how many others the budget covers costs next to nothing. Source:
pkg/controller/disruption, 1.36.

The snapshot carries no clock and no `status.disruptedPods`: a pod whose eviction was granted in the last two minutes
still counts as healthy until its deletion shows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.agents.site.owners import FINISHED, controller_of, ready, running
from underhost.agents.site.selectors import Requirement, SelectorTable
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.sorted_names import SortedNames
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Budget, OwnerReference, Pod, Workload

RULE = "PodDisruptionBudget"
# Owners that have a scale and that the snapshot holds; of other kinds only the cluster knows whether they have one.
_SCALED = {"ReplicaSet", "StatefulSet", "Deployment", "ReplicationController", "VirtualMachineInstanceReplicaSet"}
_OwnerId = tuple[str, str, str]  # kind, name, uid
_NONE_TO_SPARE = ("maxUnavailable 0", "maxUnavailable 0%", "minAvailable 100%")  # whatever the scale is
_NEVER_SCALED = {"DaemonSet", "Job", "CronJob", "Node", "VirtualMachineInstance"}


@dataclass(frozen=True)
class Covered:
    """One budget, judged.

    Attributes:
        figures: as the controller would write them to status.
        pods: names of the pods it covers, finished ones left out, sorted.
        best: disruptions allowed once every replica is healthy; None where an owner that sets it is not in the input.
        why: how it comes to its figures, for a person.
    """

    figures: BudgetFigures
    pods: list[str]
    best: int | None
    why: str


def cover(snapshot: Snapshot) -> dict[str, Covered]:
    """Every budget with its pods and figures, by `namespace/name`, sorted.

    Raises BadObjectError for a selector, or for labels, that the API server would not have let in.
    """
    coverage = Coverage()
    coverage.change_budgets(snapshot.budgets, snapshot.pods)
    return {
        name: covered_of(snapshot, budget, coverage.pods_of(name)) for name, budget in sorted(snapshot.budgets.items())
    }


class CoveredPods:
    """The pods that the selector of one budget matches, finished ones too, counted as they come and go.

    Attributes:
        namespace: the budget's, and theirs. living: the names of those that have not finished.
        current: how many are ready and not being deleted. unmanaged: how many have no controller.
        on: how many of those that are ready and neither finished nor being deleted are on each node.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._pods: dict[str, Pod] = {}
        self._owners: dict[_OwnerId, OwnerReference] = {}
        self._of_owner: Counter[_OwnerId] = Counter()
        self._counted: tuple[Mapping[str, Workload], _Replicas] | None = None
        self.living = SortedNames()
        self.on: Counter[str] = Counter()
        self.current = self.unmanaged = 0

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, key: str, pod: Pod | None) -> None:
        """A pod came, changed or (None) went."""
        before = self._pods.pop(key, None)
        if pod is not None:
            self._pods[key] = pod
            self._count(pod, 1)
        if before is not None:  # afterwards: an owner's only pod that changes does not take the owner along
            self._count(before, -1)
        self.living.put(key, pod is not None and pod.status.phase not in FINISHED)

    def _count(self, pod: Pod, sign: int) -> None:
        if pod.metadata.deletion_timestamp is None and ready(pod):
            self.current += sign
            if running(pod):
                self._count_on(pod.spec.node_name, sign)
        owner = controller_of(pod.metadata.owner_references)
        if owner is None:
            self.unmanaged += sign
            return
        identity = (owner.kind, owner.name, owner.uid)
        self._of_owner[identity] += sign
        if self._of_owner[identity] == 0:
            del self._of_owner[identity], self._owners[identity]
            self._counted = None
        elif identity not in self._owners:
            self._owners[identity] = owner
            self._counted = None

    def _count_on(self, node: str, sign: int) -> None:
        self.on[node] += sign
        if not self.on[node]:
            del self.on[node]

    def healthy(self) -> dict[str, str]:
        """The pods that `on` counts, each with its node."""
        return {
            key: pod.spec.node_name
            for key, pod in self._pods.items()
            if pod.metadata.deletion_timestamp is None and ready(pod) and running(pod)
        }

    def replicas(self, snapshot: Snapshot) -> "_Replicas":
        """Of their owners; counted again only where owners or workloads are others."""
        if self._counted is None or self._counted[0] is not snapshot.workloads:
            owners = [owner for _, owner in sorted(self._owners.items())]
            self._counted = snapshot.workloads, _replicas_of(snapshot, owners, self.namespace)
        return self._counted[1]


class Coverage:
    """Which budgets cover which pods. Pods of equal labels are matched to the selectors of their namespace once.

    Every method that reads a selector or labels raises BadObjectError for what the API server would not have let in.
    """

    def __init__(self) -> None:
        self._wanted: defaultdict[str, dict[str, tuple[Requirement, ...] | None]] = defaultdict(dict)
        self._selecting: dict[str, _Selecting] = {}
        self._known: defaultdict[str, dict[bytes, tuple[str, ...]]] = defaultdict(dict)
        self._pods: dict[str, CoveredPods] = {}
        self._of_pod: dict[str, tuple[str, ...]] = {}

    def change_budgets(self, changed: Mapping[str, Budget | None], pods: Mapping[str, Pod]) -> set[str]:
        """Budgets came, changed or (None) went; `pods` are those there are. Returns the namespaces matched anew."""
        anew = set[str]()
        for name, budget in sorted(changed.items()):
            namespace = name.partition("/")[0]
            wanted = self._wanted[namespace]
            requirements = None if budget is None else _requirements(name, budget)
            if budget is None or name not in wanted or wanted[name] != requirements:
                anew.add(namespace)
                self._pods.pop(name, None)
                wanted.pop(name, None)
                if budget is not None:
                    wanted[name] = requirements
        for namespace in anew:
            self._known[namespace].clear()
            self._selecting[namespace] = _Selecting(self._wanted[namespace])
            self._pods.update((name, CoveredPods(namespace)) for name in self._wanted[namespace])
        for key, pod in pods.items() if anew else ():
            if pod.metadata.namespace in anew:
                self.change_pod(key, pod)
        return anew

    def change_pod(self, key: str, pod: Pod | None) -> set[str]:
        """A pod came, changed or (None) went. Returns the budgets that cover it or did."""
        was, covering = self._of_pod.pop(key, ()), self.budgets_of(key, pod) if pod is not None else ()
        for name in was:
            if name not in covering and name in self._pods:
                self._pods[name].put(key, None)
        if covering:
            self._of_pod[key] = covering
            for name in covering:
                self._pods[name].put(key, pod)
        return {*was, *covering}

    def known_of(self, key: str) -> tuple[str, ...]:
        """The budgets that cover a pod as it was last told."""
        return self._of_pod.get(key, ())

    def budgets_of(self, key: str, pod: Pod) -> tuple[str, ...]:
        """The budgets that cover a pod, sorted; of one with several the API server refuses every eviction."""
        if not self._wanted.get(pod.metadata.namespace):
            return ()
        raw, known = bytes(pod.metadata.labels), self._known[pod.metadata.namespace]
        found = known.get(raw)
        if found is None:
            with faults_of(f"Pod {key}"):
                labels = terms.labels(raw)
            found = known[raw] = self._selecting[pod.metadata.namespace].budgets_of(labels)
        return found

    def pods_of(self, name: str) -> CoveredPods:
        """The pods that a budget covers, as they are now and will be."""
        return self._pods[name]


class _Selecting:
    """The budgets of one namespace by what their selectors ask: thousands of pods are not shown to each of hundreds."""

    def __init__(self, wanted: Mapping[str, tuple[Requirement, ...] | None]) -> None:
        self._table, self._names = SelectorTable(), defaultdict[int, list[str]](list)
        for name, requirements in wanted.items():
            if requirements is not None:
                self._names[self._table.add(None, requirements).id].append(name)

    def budgets_of(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The budgets that select these labels, sorted."""
        return tuple(sorted(name for one in self._table.matching("", labels) for name in self._names[one.id]))


def _requirements(name: str, budget: Budget) -> tuple[Requirement, ...] | None:
    """What the selector asks of labels: null selects no pod, {} every pod but in v1beta1. None: it selects nothing."""
    with faults_of(f"{RULE} {name}"):
        requirements = terms.label_selector(bytes(budget.spec.selector), "spec.selector")
    if not requirements and budget.api_version == "policy/v1beta1":
        return None
    return requirements


def covered_of(snapshot: Snapshot, budget: Budget, matched: CoveredPods) -> Covered:
    """A budget judged with the pods that its selector matches."""
    current, living = matched.current, matched.living.listed()
    scale = _Scale(*matched.replicas(snapshot), matched.unmanaged)
    spec = budget.spec
    if spec.max_unavailable is None and spec.min_available is None:
        return _covered(0, current, 0, living, len(living), "it sets neither minAvailable nor maxUnavailable")
    if spec.max_unavailable is None and isinstance(spec.min_available, int):
        attainable = max(len(living), scale.total)
        why = f"minAvailable is {spec.min_available} and there are {attainable} of them"
        return _covered(len(matched), current, spec.min_available, living, attainable, why)
    if spec.max_unavailable is not None:
        field, value = "maxUnavailable", spec.max_unavailable
    else:
        field, value = "minAvailable", spec.min_available or ""
    scaled = _scaled(value, scale.total)
    if scaled is None:
        scale.complete, scale.unreadable = False, f"{field} {value!r} is neither a number nor a percentage"
    if scaled is None or not scale.complete:
        return _failed(budget, current, living, scale, f"{field} {value}")
    desired = max(0, scale.total - scaled) if field == "maxUnavailable" else scaled
    why = f"{field} is {value} of {scale.total} replicas"
    if scale.total == 0 and scale.unmanaged:
        why = f"{field} is counted in their controllers' replicas, and they have no controller"
    return _covered(scale.total, current, desired, living, scale.total + scale.unmanaged, why)


def _covered(expected: int, current: int, desired: int, pods: list[str], attainable: int, why: str) -> Covered:
    allowed = max(0, current - desired) if expected > 0 else 0
    best = max(0, max(attainable, current) - desired) if expected > 0 else 0
    return Covered(BudgetFigures(expected, current, desired, allowed), pods, best, why)


def _failed(budget: Budget, current: int, pods: list[str], scale: "_Scale", why: str) -> Covered:
    """The owners' scale is not to be had. The live controller may know more than the input, so its status is believed.

    Where it wrote none, its own sync fails in the same way, and a failed sync allows nothing.
    """
    status = budget.status
    if 0 < status.observed_generation >= budget.metadata.generation:
        best = max(0, max(status.expected_pods, status.current_healthy) - status.desired_healthy)
        written = BudgetFigures(
            status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed
        )
        return Covered(written, pods, best if status.expected_pods > 0 else None, why)
    if scale.unscalable:
        why = f"{why} cannot be figured, as {scale.unscalable} has no scale"
    hopeless = scale.unscalable or scale.unreadable or why in _NONE_TO_SPARE
    return Covered(BudgetFigures(0, current, 0, 0), pods, 0 if hopeless else None, scale.unreadable or why)


class _Replicas(NamedTuple):
    """Sum of the replicas of some owners, `complete` where each has a scale; `unscalable`: one that never has one."""

    total: int
    complete: bool
    unscalable: str


@dataclass
class _Scale:
    """The same with `unmanaged`, the pods without a controller; `unreadable` says why not even a scale would help."""

    total: int
    complete: bool
    unscalable: str
    unmanaged: int
    unreadable: str = ""


def _replicas_of(snapshot: Snapshot, owners: Iterable[OwnerReference], namespace: str) -> _Replicas:
    counted: dict[tuple[str, str], int] = {}
    complete, unscalable = True, ""
    for owner in owners:
        found = _replicas(snapshot, owner, namespace)
        if found is not None:
            counted[found[0]] = found[1]
            continue
        complete = False
        if owner.kind in _NEVER_SCALED:
            unscalable = unscalable or f"{owner.kind} {owner.name}"
    return _Replicas(sum(counted.values()), complete, unscalable)


def _replicas(snapshot: Snapshot, owner: OwnerReference, namespace: str) -> tuple[tuple[str, str], int] | None:
    """(identity, replicas) of the owner, or of the Deployment over a ReplicaSet."""
    if owner.kind not in _SCALED:
        return None
    workload = snapshot.workloads.get(f"{owner.kind}/{namespace}/{owner.name}")
    if workload is None or _differ(workload.metadata.uid, owner.uid):
        return None
    over = controller_of(workload.metadata.owner_references)
    if owner.kind == "ReplicaSet" and over is not None and over.kind == "Deployment":
        deployment = snapshot.workloads.get(f"Deployment/{namespace}/{over.name}")
        if deployment is not None and not _differ(deployment.metadata.uid, over.uid):
            workload = deployment
    replicas = workload.spec.replicas
    return (workload.kind, workload.metadata.name), 1 if replicas is None else replicas


def _differ(uid: str, other: str) -> bool:
    return bool(uid and other) and uid != other


def _scaled(value: int | str, total: int) -> int | None:
    """An integer as it is, a percentage of `total` rounded up; None for anything else."""
    if isinstance(value, int):
        return value
    try:
        percent = int(value.removesuffix("%")) if value.endswith("%") else None
    except ValueError:
        return None
    return None if percent is None else -(-percent * total // 100)
