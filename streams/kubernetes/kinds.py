"""The table of the kinds that are watched: where the API serves each, and which record it becomes.

Decoding drops every field that no rule reads. Items of a list carry no `kind`, so the table supplies it.
"""

from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from underhost.schemas import kubernetes as k8s
from underhost.schemas.keys import object_key
from underhost.schemas.pods.volumes import trimmed
from underhost.schemas.topics import BUDGETS, NAMESPACES, NODES, PODS, SERVICES, WORKLOADS, Topic


class Identity(Struct, frozen=True, rename="camel", gc=False):
    """The identity in an object's metadata; a bookmark has only the version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Identified(Struct, frozen=True, gc=False):
    """Any object, with the metadata that its key needs."""

    metadata: Identity


class _Item(Struct, frozen=True, gc=False):
    """A workload as a list holds it: without `kind`."""

    metadata: k8s.Metadata
    spec: k8s.WorkloadSpec = k8s.WorkloadSpec()


@dataclass(frozen=True)
class Kind:
    """A kind of object.

    Attributes:
        path: of the collection over all namespaces. kind, api_version: as in its objects.
        record: the struct of its records. topic: where they go.
        optional: skipped where the API does not serve it, or does not let us read it.
        lasting: every working cluster has some, so that an empty list means a fault.
    """

    path: str
    kind: str
    api_version: str
    record: type[Struct]
    topic: Topic
    optional: bool = False
    lasting: bool = False

    @property
    def plural(self) -> str:
        """The resource's name, for messages."""
        return self.path.rpartition("/")[2]

    @property
    def item(self) -> type[Struct]:
        """What the API sends, before it is a record (`record_of`)."""
        return _Item if self.record is k8s.Workload else self.record

    def record_of(self, value: Struct) -> Struct:
        """The trimmed record of one object as it was decoded. Raises msgspec.DecodeError or RecursionError."""
        if isinstance(value, _Item):
            return k8s.Workload(kind=self.kind, metadata=value.metadata, api_version=self.api_version, spec=value.spec)
        if isinstance(value, k8s.Pod):
            return trimmed(value)
        if isinstance(value, k8s.Node):
            return k8s.with_label_owners(value)
        if isinstance(value, k8s.Budget):
            # A watch sends it and a list does not: always set, both give equal records.
            return msgspec.structs.replace(value, api_version=self.api_version)
        return value

    def decode(self, data: bytes | Raw) -> Struct:
        """The trimmed record of one object. Raises msgspec.DecodeError or RecursionError."""
        return self.record_of(k8s.decode(data, self.item))

    def key(self, site: str, name: str, namespace: str) -> str:
        """The record key of an object of this kind."""
        return object_key(site, self.kind.lower(), name, namespace)


def _workload(path: str, kind: str, api_version: str, *, optional: bool = False) -> Kind:
    return Kind(path, kind, api_version, k8s.Workload, WORKLOADS, optional=optional)


KINDS = (
    Kind("/api/v1/namespaces", "Namespace", "v1", k8s.Namespace, NAMESPACES, lasting=True),
    Kind("/api/v1/nodes", "Node", "v1", k8s.Node, NODES, lasting=True),
    Kind("/api/v1/pods", "Pod", "v1", k8s.Pod, PODS, lasting=True),
    Kind("/api/v1/services", "Service", "v1", k8s.Service, SERVICES),
    _workload("/apis/apps/v1/replicasets", "ReplicaSet", "apps/v1"),
    _workload("/apis/apps/v1/statefulsets", "StatefulSet", "apps/v1"),
    _workload("/apis/apps/v1/deployments", "Deployment", "apps/v1"),
    _workload("/apis/batch/v1/jobs", "Job", "batch/v1"),
    _workload("/api/v1/replicationcontrollers", "ReplicationController", "v1"),
    _workload(
        "/apis/kubevirt.io/v1/virtualmachineinstancereplicasets",
        "VirtualMachineInstanceReplicaSet",
        "kubevirt.io/v1",
        optional=True,
    ),
    Kind("/apis/policy/v1/poddisruptionbudgets", "PodDisruptionBudget", "policy/v1", k8s.Budget, BUDGETS),
)
