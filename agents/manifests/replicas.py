"""Which pods of the input belong to which workload: by controller, through the ReplicaSets between, or by adoption.

Finished and terminating pods do not count: their controllers replace them.
"""

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from underhost.agents.manifests.guests import NAME_LABEL
from underhost.agents.manifests.parts import VM, VMI, VMI_SET
from underhost.agents.site import terms
from underhost.agents.site.owners import FINISHED, controller_of
from underhost.agents.site.selectors import IN, Requirement, matches
from underhost.schemas import kubernetes as k8s
from underhost.schemas.manifests import Manifest

POD_HASH = "pod-template-hash"


class Replicas:
    """An index over the pods; nothing of it changes while pods are added."""

    def __init__(self, pods: Mapping[str, k8s.Pod], workloads: Mapping[str, k8s.Workload]) -> None:
        self._workloads = workloads
        self._owned: defaultdict[tuple[str, str, str], list[k8s.Pod]] = defaultdict(list)
        self._orphans: defaultdict[str, list[k8s.Pod]] = defaultdict(list)
        self._made_by = _replica_sets(workloads)
        for pod in pods.values():
            if pod.status.phase in FINISHED or pod.metadata.deletion_timestamp is not None:
                continue
            controller = controller_of(pod.metadata.owner_references)
            if controller is None:
                self._orphans[pod.metadata.namespace].append(pod)
            else:
                self._owned[self._top(pod, controller)].append(pod)

    def of(self, manifest: Manifest) -> list[k8s.Pod]:
        """The pods of a workload."""
        namespace, name = manifest.metadata.namespace, manifest.metadata.name
        if manifest.kind == VMI_SET:
            guests = [p for key, found in self._owned.items() if key[:2] == (namespace, VMI) for p in found]
            return self._adopted(manifest, guests + self._orphans[namespace])
        if manifest.kind in (VMI, VM):
            named = [p for p in self._orphans[namespace] if _labels(p.metadata).get(NAME_LABEL) == name]
            return self._owned[(namespace, VMI, name)] + named
        return self._owned[(namespace, manifest.kind, name)] + self._adopted(manifest, self._orphans[namespace])

    def template_hash(self, manifest: Manifest) -> str:
        """The hash that a Deployment's youngest pods carry, "" if it has none."""
        pods = sorted(self.of(manifest), key=lambda pod: pod.metadata.creation_timestamp or "")
        hashes = [_labels(pod.metadata).get(POD_HASH, "") for pod in pods]
        return next((found for found in reversed(hashes) if found), "")

    def _top(self, pod: k8s.Pod, controller: k8s.OwnerReference) -> tuple[str, str, str]:
        """(namespace, kind, name) of the workload that a pod's controller belongs to."""
        namespace = pod.metadata.namespace
        if controller.kind != "ReplicaSet":
            return namespace, controller.kind, controller.name
        deployment = self._made_by.get((namespace, controller.name))
        if deployment is None and f"ReplicaSet/{namespace}/{controller.name}" not in self._workloads:
            deployment = deployment_by_name(controller.name, pod)  # the dump lacks the ReplicaSet
        return (namespace, "Deployment", deployment) if deployment else (namespace, "ReplicaSet", controller.name)

    def _adopted(self, manifest: Manifest, candidates: list[k8s.Pod]) -> list[k8s.Pod]:
        """Of pods without a controller, those that the workload would take for its own."""
        if not candidates:
            return []
        requirements = adopts(manifest.kind, msgspec.json.decode(manifest.spec, type=_Selected).selector)
        return [pod for pod in candidates if would_adopt(manifest.kind, manifest.metadata.name, requirements, pod)]


class _Selected(msgspec.Struct):
    selector: msgspec.Raw = msgspec.Raw(b"null")


def adopts(kind: str, selector: msgspec.Raw) -> tuple[Requirement, ...] | None:
    """What a workload's selector asks of the labels of pods without a controller; it takes none where this is empty."""
    if kind == "ReplicationController":
        wanted = terms.labels(bytes(selector), "spec.selector")
        return tuple((name, IN, (value,)) for name, value in sorted(wanted.items()))
    return terms.label_selector(bytes(selector), "spec.selector")


def would_adopt(kind: str, name: str, requirements: tuple[Requirement, ...] | None, pod: k8s.Pod) -> bool:
    """Whether a workload's controller takes a pod without one: by its selector, a StatefulSet by name too.

    A Deployment takes no pods, its ReplicaSets do: their selectors ask for the hash as well.
    Sources: pkg/controller/statefulset/stateful_set_utils.go `isMemberOf`, pkg/controller/deployment/sync.go.
    """
    labels = _labels(pod.metadata)
    if not requirements or not matches(requirements, labels):
        return False
    if kind == "StatefulSet":
        parent, _, ordinal = pod.metadata.name.rpartition("-")
        return parent == name and ordinal.isdecimal()
    return kind != "Deployment" or POD_HASH in labels


def is_managed(manifest: Manifest, manifests: Mapping[str, Manifest]) -> bool:
    """Whether another workload of the input makes this one's pods."""
    owner, namespace = controller_of(manifest.metadata.owner_references), manifest.metadata.namespace
    return owner is not None and f"{owner.kind}/{namespace}/{owner.name}" in manifests


def deployment_by_name(replica_set: str, pod: k8s.Pod) -> str:
    """The Deployment that the name of a ReplicaSet tells, "" if it tells none: its pod carries the rest of the name."""
    digest = _labels(pod.metadata).get(POD_HASH)
    return replica_set.removesuffix(f"-{digest}") if digest and replica_set.endswith(f"-{digest}") else ""


def _replica_sets(workloads: Mapping[str, k8s.Workload]) -> dict[tuple[str, str], str]:
    """(namespace, ReplicaSet) to the Deployment that made it."""
    found = {}
    for workload in workloads.values():
        if workload.kind == "ReplicaSet":
            controller = controller_of(workload.metadata.owner_references)
            if controller is not None and controller.kind == "Deployment":
                found[(workload.metadata.namespace, workload.metadata.name)] = controller.name
    return found


def _labels(metadata: k8s.Metadata) -> dict[str, str]:
    return terms.labels(bytes(metadata.labels))
