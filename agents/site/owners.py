"""Whose replica is a pod?

In: pods and the workloads of a snapshot. Out: the controller, the application above it, and whether a pod is pinned to
its node.
"""

from collections.abc import Iterable
from typing import NamedTuple

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import OwnerReference, Pod

FINISHED = ("Succeeded", "Failed")
_VMI, _VMIRS, _RANDOM = "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet", 5
PINNED = ("DaemonSet", "Node")
"""Kinds of owners whose pods stay with their node."""


class Application(NamedTuple):
    """What replicas have in common: the Deployment over a ReplicaSet, the set over a VMI, else the controller."""

    kind: str
    namespace: str
    name: str


def controller_of(owners: Iterable[OwnerReference] | None) -> OwnerReference | None:
    """The owner that controls the object; there is at most one."""
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


def application_of(snapshot: Snapshot, pod: Pod) -> Application | None:
    """The application of a pod; None for a pod without a controller."""
    owner = controller_of(pod.metadata.owner_references)
    return None if owner is None else application_under(snapshot, owner, pod.metadata.namespace)


def application_under(snapshot: Snapshot, owner: OwnerReference, namespace: str) -> Application:
    """The application that a pod's controller belongs to."""
    if owner.kind == "ReplicaSet":
        workload = snapshot.workloads.get(f"ReplicaSet/{namespace}/{owner.name}")
        over = controller_of(workload.metadata.owner_references) if workload is not None else None
        if over is not None:
            return Application(over.kind, namespace, over.name)
    if owner.kind == _VMI:
        # a VMI has its replica set's name and five random characters; the VMI itself is not in the snapshot
        name = owner.name[:-_RANDOM]
        if f"{_VMIRS}/{namespace}/{name}" in snapshot.workloads:
            return Application(_VMIRS, namespace, name)
    return Application(owner.kind, namespace, owner.name)


def pinned(pod: Pod) -> bool:
    """Whether the pod belongs to its node: a mirror pod, or a DaemonSet's."""
    annotations = pod.metadata.annotations
    if annotations is not None and annotations.mirror is not None:
        return True
    owner = controller_of(pod.metadata.owner_references)
    return owner is not None and owner.kind in PINNED


def ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is true."""
    for item in pod.status.conditions or ():
        if item.type == "Ready":
            return item.status == "True"
    return False


def running(pod: Pod) -> bool:
    """Whether the pod is bound to a node and has not finished."""
    return bool(pod.spec.node_name) and pod.status.phase not in FINISHED
