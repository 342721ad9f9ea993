"""Disruption budgets, figured exactly as the disruption controller does (pkg/controller/disruption, 1.36).

In: a snapshot. Out: the figures of every budget, and findings for budgets that can never allow an eviction and for pods
that two budgets cover.

The snapshot carries no clock and no `status.disruptedPods`: a pod whose eviction was granted in the last two minutes
still counts as healthy until its deletion shows.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from underhost.agents.evaluate import findings as f
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED, controller_of, ready
from underhost.agents.site.selectors import Requirement, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.kubernetes import Budget, OwnerReference, Pod
from underhost.schemas.records import Finding

RULE = "PodDisruptionBudget"
REASON_NEVER = "the budget can never allow an eviction"
REASON_OVERLAP = "more than one disruption budget covers the pod"

# Owners that have a scale and that the snapshot holds; of other kinds only the cluster knows whether they have one.
_SCALED = {"ReplicaSet", "StatefulSet", "Deployment", "ReplicationController", "VirtualMachineInstanceReplicaSet"}
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


def figures(snapshot: Snapshot) -> dict[str, BudgetFigures]:
    """Expected, current, desired and allowed of every budget, by `namespace/name`, sorted."""
    return {name: covered.figures for name, covered in cover(snapshot).items()}


def budget_findings(snapshot: Snapshot, covered: Mapping[str, Covered] | None = None) -> list[Finding]:
    """Budgets that can never allow an eviction, and pods that several budgets cover (the eviction API refuses these).

    `covered` is what `cover` returned for the same snapshot, where the caller has it.
    """
    covered = cover(snapshot) if covered is None else covered
    return f.in_order([*never_findings(snapshot, covered), *overlap_findings(snapshot, covered)])


def cover(snapshot: Snapshot) -> dict[str, Covered]:
    """Every budget with its pods and figures, by `namespace/name`, sorted.

    Raises BadObjectError for a selector, or for labels, that the API server would not have let in.
    """
    pods = _Pods(snapshot, {budget.metadata.namespace for budget in snapshot.budgets.values()})
    return {
        name: covered_of(snapshot, budget, pods.of(name, budget)) for name, budget in sorted(snapshot.budgets.items())
    }


class _Pods:
    """The pods of some namespaces by their labels: pods with equal labels are matched to a selector once."""

    def __init__(self, snapshot: Snapshot, namespaces: set[str]) -> None:
        self._by_labels: dict[str, dict[bytes, list[tuple[str, Pod]]]] = {name: {} for name in namespaces}
        self._labels: dict[bytes, dict[str, str]] = {}
        for name, pod in snapshot.pods.items() if namespaces else ():
            groups = self._by_labels.get(pod.metadata.namespace)
            if groups is not None:
                raw = bytes(pod.metadata.labels)
                groups.setdefault(raw, []).append((name, pod))
                if raw not in self._labels:
                    try:
                        self._labels[raw] = terms.labels(raw)
                    except Fault as fault:
                        raise fault.within(f"Pod {name}") from None

    def of(self, name: str, budget: Budget) -> list[tuple[str, Pod]]:
        """The pods that the budget selects, by name; null selects none, {} all of them but in v1beta1."""
        try:
            requirements = requirements_of(budget)
        except Fault as fault:
            raise fault.within(f"{RULE} {name}") from None
        if requirements is None:
            return []
        groups = self._by_labels[budget.metadata.namespace].items()
        return sorted(
            (pod for raw, pods in groups if matches(requirements, self._labels[raw]) for pod in pods),
            key=lambda item: item[0],
        )


def requirements_of(budget: Budget) -> tuple[Requirement, ...] | None:
    """What the selector asks of labels; None where it selects nothing. Raises Fault."""
    requirements = terms.label_selector(bytes(budget.spec.selector), "spec.selector")
    if not requirements and budget.api_version == "policy/v1beta1":
        return None
    return requirements


def covered_of(snapshot: Snapshot, budget: Budget, matched: list[tuple[str, Pod]]) -> Covered:
    """A budget judged with the pods that its selector matches, by name, sorted."""
    current = sum(1 for _, pod in matched if pod.metadata.deletion_timestamp is None and ready(pod))
    living = [name for name, pod in matched if pod.status.phase not in FINISHED]
    scale = _scale(snapshot, matched)
    spec = budget.spec
    if spec.max_unavailable is None and spec.min_available is None:
        return _covered(0, current, 0, living, len(living), "it sets neither minAvailable nor maxUnavailable")
    if spec.max_unavailable is None and isinstance(spec.min_available, int):
        attainable = max(len(living), scale.count)
        why = f"minAvailable is {spec.min_available} and there are {attainable} of them"
        return _covered(len(matched), current, spec.min_available, living, attainable, why)
    if spec.max_unavailable is not None:
        field, value = "maxUnavailable", spec.max_unavailable
    else:
        field, value = "minAvailable", spec.min_available or ""
    scaled = _scaled(value, scale.count)
    if scaled is None:
        scale.complete, scale.unreadable = False, f"{field} {value!r} is neither a number nor a percentage"
    if scaled is None or not scale.complete:
        return _failed(budget, current, living, scale, f"{field} {value}")
    desired = max(0, scale.count - scaled) if field == "maxUnavailable" else scaled
    why = f"{field} is {value} of {scale.count} replicas"
    if scale.count == 0 and scale.unmanaged:
        why = f"{field} is counted in their controllers' replicas, and they have no controller"
    return _covered(scale.count, current, desired, living, scale.count + scale.unmanaged, why)


def _covered(expected: int, current: int, desired: int, pods: list[str], attainable: int, why: str) -> Covered:
    allowed = max(0, current - desired) if expected > 0 else 0
    best = max(0, max(attainable, current) - desired) if expected > 0 else 0
    return Covered(BudgetFigures(expected, current, desired, allowed), pods, best, why)


def _failed(budget: Budget, current: int, pods: list[str], scale: "_Scale", why: str) -> Covered:
    """The owners' scale is not to be had. The live controller may know more than the input, so its status is believed.

    Where it wrote none, its own sync fails just so, and a failed sync allows nothing.
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


@dataclass
class _Scale:
    """Sum of the owners' replicas. `unmanaged`: pods without a controller; `unscalable`: an owner without one.

    `unreadable` says why not even a scale would help.
    """

    count: int = 0
    unmanaged: int = 0
    complete: bool = True
    unscalable: str = ""
    unreadable: str = ""


def _scale(snapshot: Snapshot, pods: list[tuple[str, Pod]]) -> _Scale:
    scale = _Scale()
    counted: dict[tuple[str, str], int] = {}
    seen: set[tuple[str, str, str]] = set()
    for _, pod in pods:
        owner = controller_of(pod.metadata.owner_references)
        if owner is None:
            scale.unmanaged += 1
            continue
        if (owner.kind, owner.name, owner.uid) in seen:
            continue
        seen.add((owner.kind, owner.name, owner.uid))
        found = _replicas(snapshot, owner, pod.metadata.namespace)
        if found is None:
            scale.complete = False
            if owner.kind in _NEVER_SCALED:
                scale.unscalable = scale.unscalable or f"{owner.kind} {owner.name}"
        else:
            counted[found[0]] = found[1]
    scale.count = sum(counted.values())
    return scale


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


def never_findings(snapshot: Snapshot, covered: Mapping[str, Covered]) -> list[Finding]:
    """Budgets that can never allow an eviction."""
    found = []
    for name, one in covered.items():
        if one.best != 0 or not one.pods:
            continue
        message = (
            f"Budget {name} can never allow an eviction of {f.listing(one.pods)}: {one.why}. A drain waits for ever."
        )
        found.append(_finding(snapshot, one.pods, REASON_NEVER, message, [name]))
    return found


def overlap_findings(snapshot: Snapshot, covered: Mapping[str, Covered]) -> list[Finding]:
    """Pods that several budgets cover, one finding for the pods of the same ones."""
    of_pod: dict[str, list[str]] = defaultdict(list)
    for name, one in covered.items():
        for pod in one.pods:
            of_pod[pod].append(name)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for pod, budgets in sorted(of_pod.items()):
        if len(budgets) > 1:
            groups[tuple(budgets)].append(pod)
    found = []
    for names, pods in sorted(groups.items()):
        verb = "both cover" if len(names) == 2 else "all cover"
        message = (
            f"Budgets {f.listing(list(names), len(names))} {verb} {f.listing(pods)}: "
            "the API server refuses every eviction of a pod with more than one budget."
        )
        found.append(_finding(snapshot, pods, REASON_OVERLAP, message, list(names)))
    return found


def _finding(snapshot: Snapshot, pods: list[str], reason: str, message: str, budgets: list[str]) -> Finding:
    first = pods[0]
    uid = f.uid_of(first, snapshot.pods.get(first))
    return Finding(
        id=f.finding_id(snapshot.site, f.BUDGET, RULE, reason, "\0".join(budgets), uid),
        severity=f.BUDGET,
        rule=RULE,
        reason=reason,
        message=message,
        pod=first,
        node=snapshot.pods[first].spec.node_name or None,
        peers=pods[1:],
        object=f"{RULE}/{budgets[0]}" if len(budgets) == 1 else None,
    )
