"""The kinds of objects that are read from files, with their API groups."""

from collections.abc import Mapping
from functools import lru_cache

_APPS, _CORE = frozenset({"apps", "extensions"}), frozenset({""})
KUBEVIRT, _STORAGE = frozenset({"kubevirt.io"}), frozenset({"storage.k8s.io"})
GROUPS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Node", "Pod", "Namespace", "Service", "ReplicationController"), _CORE),
    **dict.fromkeys(("PersistentVolumeClaim", "PersistentVolume"), _CORE),
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), _APPS),
    **dict.fromkeys(("VirtualMachineInstanceReplicaSet", "VirtualMachine", "VirtualMachineInstance"), KUBEVIRT),
    **dict.fromkeys(("StorageClass", "CSINode", "VolumeAttachment"), _STORAGE),
    "Job": frozenset({"batch"}),
    "HorizontalPodAutoscaler": frozenset({"autoscaling"}),
    "PodDisruptionBudget": frozenset({"policy"}),
    "PriorityClass": frozenset({"scheduling.k8s.io"}),
}
"""The kinds that are read, with their API groups: a Service of Knative or a Job of Volcano is another kind."""
CLUSTER_SCOPED = frozenset({"Node", "Namespace", "PersistentVolume", "PriorityClass"}) | {
    kind for kind, groups in GROUPS.items() if groups is _STORAGE
}
WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController"}) | {
    "VirtualMachineInstanceReplicaSet"
}


@lru_cache(maxsize=1024)
def is_read(kind: str, api_version: str) -> bool:
    """Whether the kind matters here; an object that does not say its apiVersion is taken for the native kind."""
    return kind in GROUPS and (not api_version or api_version.rpartition("/")[0] in GROUPS[kind])
