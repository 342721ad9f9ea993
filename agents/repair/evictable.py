"""May this pod be evicted at all, and does its workload have a replica to spare?

In: a snapshot, what the settings allow. Out: the reason why a pod is never evicted, and how many replicas of a workload
are missing. Where the next pod would go is left to `evictions.py`, budgets to `budgets_left.py`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec

from underhost.agents.site.owners import (
    FINISHED,
    Application,
    application_of,
    application_under,
    controller_of,
    pinned,
    ready,
)
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, OwnerReference, Pod, Workload
from underhost.schemas.pods.volumes import VOLUMES
from underhost.schemas.severities import GRAVE

SYSTEM_PRIORITY = 2_000_000_000
"""The priority of system-cluster-critical; system-node-critical is above it."""
_VMI, _VMIRS = "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"
_WATCHED = {"ReplicaSet", "StatefulSet", "ReplicationController", _VMIRS}
_COUNTED = _WATCHED | {"Deployment"}


@dataclass(frozen=True)
class EvictionTerms:
    """What may be evicted.

    Attributes:
        severities: of the findings that are repaired.
        owners: kinds of controllers that make another pod at once.
        schedulers: names of those that are there to place it. ours: those that place where this evaluator says.
        empty_dir, volumes: pods with an emptyDir, with a volume claim are evicted, too.
        except_namespaces: whose pods never are.
    """

    severities: frozenset[str] = frozenset(GRAVE)
    owners: frozenset[str] = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", _VMIRS})
    schedulers: frozenset[str] = frozenset({"default-scheduler"})
    ours: frozenset[str] = frozenset({"underhost"})
    empty_dir: bool = False
    volumes: bool = False
    except_namespaces: frozenset[str] = frozenset()


def why_never(snapshot: Snapshot, pod: Pod, terms: EvictionTerms) -> str | None:
    """Why the pod is not to be evicted whatever it breaks; None where it may be."""
    meta = pod.metadata
    owner = controller_of(meta.owner_references)
    if pinned(pod):
        return "it belongs to its node"
    if owner is None:
        return "it has no owner that would make another"
    if meta.namespace in terms.except_namespaces:
        return f"pods of namespace {meta.namespace} are left alone"
    if (pod.spec.priority or 0) >= SYSTEM_PRIORITY:
        return "its priority is that of the system's own pods"
    scheduler = pod.spec.scheduler_name
    return (
        _why_not_owner(snapshot, owner, meta.namespace, terms)
        or (None if scheduler in terms.schedulers else f"nobody is known to serve its scheduler {scheduler}")
        or _why_not_volumes(pod, owner, terms, judged=bool(snapshot.claims))
        or _why_not_node(snapshot, pod.spec.node_name)
    )


def _why_not_owner(snapshot: Snapshot, owner: OwnerReference, namespace: str, terms: EvictionTerms) -> str | None:
    kind, name = owner.kind, owner.name
    if kind == _VMI:  # a machine without a replica set stays down, or is up to others
        kind, _, name = application_under(snapshot, owner, namespace)
    if kind not in terms.owners:
        return f"its owner, {kind} {name}, is not one that is known to make another"
    if kind not in _WATCHED:
        return None
    workload = snapshot.workloads.get(f"{kind}/{namespace}/{name}")
    replaced = workload is not None and kind == owner.kind and workload.metadata.uid not in ("", owner.uid)
    if workload is None or replaced or workload.metadata.deletion_timestamp is not None or workload.spec.replicas == 0:
        return f"its owner, {kind} {name}, is gone or wants no pods"
    return None


def _why_not_volumes(pod: Pod, owner: OwnerReference, terms: EvictionTerms, *, judged: bool) -> str | None:
    raw = pod.spec.volumes
    if raw is EMPTY_LIST or (terms.empty_dir and terms.volumes):
        return None
    try:
        volumes = VOLUMES.decode(raw) or []
    except msgspec.DecodeError:
        return "its volumes cannot be read"
    if any(one.empty_dir is not None for one in volumes) and not terms.empty_dir and owner.kind != _VMI:
        return "it has an emptyDir, whose content would be lost"
    claims = any(one.persistent_volume_claim is not None or one.ephemeral is not None for one in volumes)
    if claims and not (terms.volumes or judged):
        return "it has volume claims, and where they can be attached is not watched"
    return None


def _why_not_node(snapshot: Snapshot, name: str) -> str | None:
    """The kubelet of a node that is not ready does not end pods: the old one would stay, and hold its place."""
    node = snapshot.nodes.get(name)
    if node is None:
        return f"its node {name} is not there"
    if any(item.type == "Ready" and item.status != "True" for item in node.status.conditions or ()):
        return f"its node {name} is not ready, and could not end it"
    return None


class ReplicaCount(NamedTuple):
    """The pods of a workload.

    Attributes:
        wanted: what it asks for; the number of its living pods where nobody says.
        missing: how many of these are being deleted, not ready or not there.
    """

    wanted: int
    missing: int


@dataclass
class _Counted:
    living: int = 0
    ready: int = 0
    ending: int = 0


class Workloads:
    """The replicas of a snapshot's workloads; a namespace is counted when it is first asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._counted: dict[str, dict[Application, _Counted]] = {}

    def replicas(self, application: Application, least: int = 0) -> ReplicaCount:
        """What a workload has and lacks; `least`: what it had before, where nobody says what it wants."""
        counted = self._counted.get(application.namespace)
        if counted is None:
            counted = self._counted[application.namespace] = self._count(application.namespace)
        one = counted.get(application, _Counted())
        wanted = max(_wanted(self._snapshot.workloads, application, one.living), least)
        return ReplicaCount(wanted, max(one.ending, wanted - one.ready, one.living - one.ready))

    def _count(self, namespace: str) -> dict[Application, _Counted]:
        counted = dict[Application, _Counted]()
        for pod in self._pods.get(namespace, ()):
            application = application_of(self._snapshot, pod)
            if application is not None:
                one = counted.setdefault(application, _Counted())
                ending = pod.metadata.deletion_timestamp is not None
                one.ending += ending
                one.living += not ending
                one.ready += not ending and ready(pod)
        return counted

    @cached_property
    def _pods(self) -> Mapping[str, list[Pod]]:
        by_namespace: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._snapshot.pods.values():
            if pod.status.phase not in FINISHED:
                by_namespace[pod.metadata.namespace].append(pod)
        return by_namespace


def _wanted(workloads: Mapping[str, Workload], application: Application, living: int) -> int:
    workload = workloads.get("/".join(application))
    if workload is None or application.kind not in _COUNTED:
        return living
    return 1 if workload.spec.replicas is None else workload.spec.replicas
