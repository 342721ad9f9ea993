"""Objects of files in, the typed objects that the engine reads out: which kinds count, and what is incomplete.

The meaning of selectors, quantities and the like is left to the engine.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from underhost.schemas import kubernetes as k8s
from underhost.schemas import storage
from underhost.schemas.errors import BadObjectError
from underhost.schemas.manifests import NULL, Manifest
from underhost.streams.files.faults import Shapes, begins, fault_of, node_shapes, pod_shapes
from underhost.streams.files.storage import TABLES, storage_object

_APPS, _CORE = frozenset({"apps", "extensions"}), frozenset({""})
_KUBEVIRT, _STORAGE = frozenset({"kubevirt.io"}), frozenset({"storage.k8s.io"})
GROUPS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Node", "Pod", "Namespace", "Service", "ReplicationController"), _CORE),
    **dict.fromkeys(("PersistentVolumeClaim", "PersistentVolume"), _CORE),
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), _APPS),
    **dict.fromkeys(("VirtualMachineInstanceReplicaSet", "VirtualMachine", "VirtualMachineInstance"), _KUBEVIRT),
    **dict.fromkeys(("StorageClass", "CSINode", "VolumeAttachment"), _STORAGE),
    "Job": frozenset({"batch"}),
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
NAME_MAX = 253
T = TypeVar("T")


class Item(Struct, rename="camel", gc=False):
    """Any object, with the parts that only some kinds have left raw."""

    kind: str = ""
    api_version: str = ""
    metadata: k8s.Metadata | None = None
    spec: Raw = NULL
    status: Raw = NULL
    value: Raw = NULL
    global_default: Raw = NULL
    preemption_policy: Raw = NULL
    provisioner: Raw = NULL
    volume_binding_mode: Raw = NULL
    allowed_topologies: Raw = NULL


_TYPES: tuple[Any, ...] = (k8s.NodeSpec, k8s.NodeStatus, k8s.PodSpec, k8s.PodStatus, k8s.ServiceSpec, k8s.WorkloadSpec)
_TYPES += (k8s.BudgetSpec, k8s.BudgetStatus)
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {type_: msgspec.json.Decoder(type_ | None) for type_ in _TYPES}


_FIELDS = msgspec.json.Decoder(dict[str, Raw] | None)


@lru_cache
def _lower(type_: type[Struct]) -> frozenset[str]:
    return frozenset(name.lower() for name in type_.__struct_encode_fields__)


class _Containers(Struct):
    containers: list[Raw] | None = None


class _TemplateSpec(Struct):
    spec: Raw = NULL


class _Templated(Struct):
    template: _TemplateSpec | None = None


@dataclass
class Collected:
    """What has been read so far; the mappings have the keys of the engine's Snapshot (`others` as `workloads`).

    Attributes:
        origins: the file of an object (`Kind/namespace/name`) that is not of `first_file`.
        incomplete, repeated: one line for each such object. ignored: objects by kind. generated: by generateName.
        makers: kinds that may make pods and are not read (custom resources, CronJob).
        likes: by the uid of an owner, the last of its pods.
        misspelled: the fields of a pod's or budget's spec that were not read for their capitals, by object.
    """

    nodes: dict[str, k8s.Node] = field(default_factory=dict)
    pods: dict[str, k8s.Pod] = field(default_factory=dict)
    namespaces: dict[str, k8s.Namespace] = field(default_factory=dict)
    services: dict[str, k8s.Service] = field(default_factory=dict)
    workloads: dict[str, k8s.Workload] = field(default_factory=dict)
    budgets: dict[str, k8s.Budget] = field(default_factory=dict)
    others: dict[str, Manifest] = field(default_factory=dict)
    claims: dict[str, storage.PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, storage.PersistentVolume] = field(default_factory=dict)
    storage_classes: dict[str, storage.StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, storage.CsiNode] = field(default_factory=dict)
    attachments: dict[str, storage.VolumeAttachment] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    first_file: str = ""
    incomplete: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    generated: Counter[str] = field(default_factory=Counter)
    makers: set[str] = field(default_factory=set)
    misspelled: dict[str, list[str]] = field(default_factory=dict)
    likes: dict[str, k8s.Pod] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=Shapes)

    def add(self, item: Item, file: str, implied: tuple[str, str] = ("", ""), place: str = "") -> None:
        """Read one object. `implied` is the (kind, apiVersion) that the list around it gives. Raises BadObjectError."""
        kind, api_version = item.kind or implied[0], item.api_version or implied[1]
        if not kind:
            name = item.metadata.name if item.metadata else ""
            raise BadObjectError(_without_kind(item), object_=f"{place} {name}".strip(), file=file)
        if not is_read(kind, api_version):
            group = api_version.rpartition("/")[0]
            self.ignored[f"{kind}.{group}" if kind in GROUPS else kind] += 1
            if kind == "CronJob" or ("." in group and not group.endswith(".k8s.io")):
                self.makers.add(kind)
            return
        metadata = self._named(item, kind, file, place)
        key = metadata.name if kind in CLUSTER_SCOPED else f"{metadata.namespace}/{metadata.name}"
        try:
            self._put(kind, api_version, key, metadata, item, file)
        except BadObjectError as fault:
            raise BadObjectError(fault.message, object_=f"{kind}/{key}", field=fault.field, file=file) from fault

    def _put(self, kind: str, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str) -> None:
        if kind == "Pod":
            spec, status = _decoded(item.spec, k8s.PodSpec, "spec"), _decoded(item.status, k8s.PodStatus, "status")
            pod = k8s.Pod(metadata, spec, status)
            pod_shapes(pod, self.shapes)
            self._spelling(f"{kind}/{key}", metadata, item.spec, k8s.PodSpec)
            if not spec.containers:
                self.incomplete.append(f"{file}: Pod/{key}: spec.containers: there is none")
            self._store(self.pods, key, pod, kind, file)
            return
        self.shapes.strings(metadata.labels, "metadata.labels")
        if kind == "Node":
            node = k8s.Node(
                metadata, _decoded(item.spec, k8s.NodeSpec, "spec"), _decoded(item.status, k8s.NodeStatus, "status")
            )
            node_shapes(node, self.shapes)
            self._store(self.nodes, key, node, kind, file)
        elif kind == "Namespace":
            self._store(self.namespaces, key, k8s.Namespace(metadata), kind, file)
        elif kind == "Service":
            service = k8s.Service(metadata, _decoded(item.spec, k8s.ServiceSpec, "spec"))
            self.shapes.strings(service.spec.selector, "spec.selector")
            self._store(self.services, key, service, kind, file)
        elif kind == "PodDisruptionBudget":
            self._put_budget(api_version or "policy/v1", key, metadata, item, file)
        elif kind in TABLES:
            self._store(getattr(self, TABLES[kind]), key, storage_object(kind, metadata, item), kind, file)
        else:
            self._put_manifest(kind, api_version, key, metadata, item, file)

    def _put_budget(self, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str) -> None:
        spec, status = _decoded(item.spec, k8s.BudgetSpec, "spec"), _decoded(item.status, k8s.BudgetStatus, "status")
        begins(spec.selector, "{", "spec.selector")
        self._spelling(f"PodDisruptionBudget/{key}", metadata, item.spec, k8s.BudgetSpec)
        self._store(self.budgets, key, k8s.Budget(metadata, api_version, spec, status), "PodDisruptionBudget", file)

    def _put_manifest(
        self, kind: str, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str
    ) -> None:
        """A workload (also as the owner that budgets and counts read), or a PriorityClass."""
        spec, status = _present(item.spec), _present(item.status)
        begins(spec, "{", "spec")
        key = f"{kind}/{key}"
        lacking = _lacking(kind, spec)
        if lacking:
            if not metadata.uid:  # a cluster has none such: with a uid it is a record without what no rule reads
                self.incomplete.append(f"{file}: {key}: {lacking}")
            if key in self.others:
                return  # a patch must not take the place of the object that it patches
        if kind in WORKLOADS:
            owner = k8s.Workload(kind, metadata, api_version, _decoded(item.spec, k8s.WorkloadSpec, "spec"))
            begins(owner.spec.selector, "{", "spec.selector")
            self.workloads[key] = owner
        manifest = Manifest(
            kind, metadata, api_version, spec, status, item.value, item.global_default, item.preemption_policy
        )
        self._store(self.others, key, manifest, "", file)

    def _spelling(self, label: str, metadata: k8s.Metadata, spec: Raw, type_: type[Struct]) -> None:
        """Note what a person wrote with wrong capitals; from a cluster (with a uid) nothing comes that is."""
        if metadata.uid or spec is NULL:
            return
        known = type_.__struct_encode_fields__
        unread = [name for name in _FIELDS.decode(spec) or () if name not in known and name.lower() in _lower(type_)]
        if unread:
            self.misspelled[label] = unread

    def _store(self, table: dict[str, T], key: str, value: T, kind: str, file: str) -> None:
        label = f"{kind}/{key}" if kind else key
        if key in table:
            del table[key]  # the last one counts, at its own place in the order
            self.repeated.append(f"{label} ({self.origins.pop(label, self.first_file)}, then {file})")
        table[key] = value
        if file != self.first_file:
            self.origins[label] = file

    def _named(self, item: Item, kind: str, file: str, place: str) -> k8s.Metadata:
        """The metadata with a name and, where the kind has one, a namespace."""
        metadata = item.metadata
        if metadata is None or not (metadata.name or metadata.generate_name):
            what = "missing: an incomplete object (a patch, or a template that was not rendered?)"
            raise BadObjectError(what, object_=f"{kind} {place}".strip(), field="metadata.name", file=file)
        name = metadata.name
        namespace = "" if kind in CLUSTER_SCOPED else metadata.namespace or "default"
        if not name:
            label = f"{kind}/{namespace}/{metadata.generate_name}"
            name = f"{metadata.generate_name}{self.generated[label]}"
            self.generated[label] += 1
        if "/" in name or "/" in namespace or len(name) > NAME_MAX or len(namespace) > NAME_MAX:
            what = f"not a valid name: {f'{namespace}/{name}'[:80]!r}"
            raise BadObjectError(what, object_=f"{kind} {place}".strip(), field="metadata.name", file=file)
        if name != metadata.name or namespace != metadata.namespace:
            metadata = replace(metadata, name=name, namespace=namespace)
        return metadata


@lru_cache(maxsize=1024)
def is_read(kind: str, api_version: str) -> bool:
    """Whether the kind matters here; an object that does not say its apiVersion is taken for the native kind."""
    return kind in GROUPS and (not api_version or api_version.rpartition("/")[0] in GROUPS[kind])


def _decoded(raw: Raw, type_: type[T], name: str) -> T:
    """The part of an object, its default where it is absent or null. Raises BadObjectError with the field only."""
    if raw is NULL:
        return type_()
    try:
        value: T | None = _DECODERS[type_].decode(raw)
    except msgspec.ValidationError as error:
        raise fault_of(error, name) from error
    return type_() if value is None else value


def _present(raw: Raw) -> Raw:
    return k8s.EMPTY_OBJECT if raw is NULL or bytes(raw) == b"null" else raw


def _lacking(kind: str, spec: Raw) -> str:
    """What a workload lacks to be expanded into pods, "" if nothing. Raises BadObjectError with the field only."""
    if kind == "PriorityClass":
        return ""
    try:
        if kind == "VirtualMachineInstance":
            return ""
        template = msgspec.json.decode(spec, type=_Templated).template
        if template is None or bytes(template.spec) == b"null":
            return "spec.template: there is none"
        if GROUPS[kind] is not _KUBEVIRT and not msgspec.json.decode(template.spec, type=_Containers).containers:
            return "spec.template.spec.containers: there is none"
    except msgspec.ValidationError as error:
        raise fault_of(error, "spec") from error
    return ""


def _without_kind(item: Item) -> str:
    if item.metadata is None:
        return "has no kind: not a Kubernetes object (a chart's values, or another format?)"
    return "has no kind: an incomplete object (a patch?), or an item of a list that does not say of what"
