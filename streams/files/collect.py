"""Objects of files into typed objects, one by one; incomplete, repeated and ignored ones are noted.

In: an object with its parts still raw. Out: the object in its table of `Objects`. The meaning of selectors, quantities
and the like is left to the agents.
"""

from collections import Counter
from collections.abc import Callable, Mapping
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
from underhost.streams.files.autoscalers import Autoscaler, AutoscalerSpec, scaled, with_replicas
from underhost.streams.files.faults import FaultLines, Shapes, begins, fault_of, node_shapes, pod_shapes
from underhost.streams.files.kinds import CLUSTER_SCOPED, GROUPS, KUBEVIRT, WORKLOADS, is_read
from underhost.streams.files.makers import Product, made_by
from underhost.streams.files.objects import Objects

NAME_MAX = 253
NAME_LABEL = "kubernetes.io/metadata.name"
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


class _Capacity(Struct):
    capacity: Raw = NULL


_TYPES: tuple[Any, ...] = (k8s.NodeSpec, k8s.NodeStatus, k8s.PodSpec, k8s.PodStatus, k8s.ServiceSpec, k8s.WorkloadSpec)
_TYPES += (k8s.BudgetSpec, k8s.BudgetStatus, storage.ClaimSpec, storage.VolumeSpec, storage.CsiNodeSpec)
_TYPES += (AutoscalerSpec, _Capacity, storage.AttachmentSpec, storage.Phase, tuple[storage.TopologyTerm, ...], str)
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {type_: msgspec.json.Decoder(type_ | None) for type_ in _TYPES}


_FIELDS = msgspec.json.Decoder(dict[str, Raw] | None)
_LABELS = msgspec.json.Decoder(dict[str, str] | None)


@lru_cache
def _lower(type_: type[Struct]) -> frozenset[str]:
    return frozenset(name.lower() for name in type_.__struct_encode_fields__)


def _is_like(name: str, type_: type[Struct]) -> bool:
    """Whether a field is known but for its capitals, or one s at its end."""
    return not _lower(type_).isdisjoint((name, f"{name}s", name.removesuffix("s")))


class _Containers(Struct):
    containers: list[Raw] | None = None


class _TemplateSpec(Struct):
    spec: Raw = NULL


class _Templated(Struct):
    template: _TemplateSpec | None = None


@dataclass
class Collected:
    """What has been read so far.

    Attributes:
        objects: the objects themselves.
        incomplete, node_patches, repeated: one line for each such object. left_out: one for each such file.
        made: one for each object in whose place what it makes is read.
        ignored: objects by kind. generated: by generateName. autoscalers: by `namespace/name`.
        likes: by the uid of an owner, the last of its pods. faults: of all that has been read.
    """

    objects: Objects = field(default_factory=Objects)
    first_file: str = ""
    incomplete: list[str] = field(default_factory=list)
    node_patches: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    generated: Counter[str] = field(default_factory=Counter)
    autoscalers: dict[str, Autoscaler] = field(default_factory=dict)
    likes: dict[str, k8s.Pod] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=Shapes)
    faults: FaultLines = field(default_factory=FaultLines)

    def add(self, item: Item, file: str, implied: tuple[str, str] = ("", ""), place: str = "") -> None:
        """Read one object. `implied` is the (kind, apiVersion) that the list around it gives. Raises BadObjectError."""
        kind, api_version = item.kind or implied[0], item.api_version or implied[1]
        if not kind:
            name = item.metadata.name if item.metadata else ""
            raise BadObjectError(_without_kind(item), object_=f"{place} {name}".strip(), file=file)
        made = self._made(kind, api_version, item, file)
        if made is not None:
            kind, api_version, item = made.kind, made.api_version, replace(item, spec=made.spec, status=NULL)
        if not is_read(kind, api_version):
            group = api_version.rpartition("/")[0]
            self.ignored[f"{kind}.{group}" if kind in GROUPS else kind] += 1
            if kind == "CronJob" or ("." in group and not group.endswith(".k8s.io")):
                self.objects.makers.add(kind)
            return
        metadata = self._named(item, kind, file, place)
        key = metadata.name if kind in CLUSTER_SCOPED else f"{metadata.namespace}/{metadata.name}"
        try:
            self._put(kind, api_version, key, metadata, item, file)
        except BadObjectError as fault:
            raise BadObjectError(fault.message, object_=f"{kind}/{key}", field=fault.field, file=file) from fault

    def _made(self, kind: str, api_version: str, item: Item, file: str) -> Product | None:
        """What a person's manifest makes, which is read in its place; of a cluster's there is what it has made."""
        metadata = item.metadata
        if metadata is None or metadata.uid:
            return None
        label = f"{kind}/{metadata.namespace or 'default'}/{metadata.name or metadata.generate_name}"
        try:
            made = made_by(kind, api_version, item.spec)
        except BadObjectError as fault:
            raise BadObjectError(fault.message, object_=label, field=fault.field, file=file) from fault
        if made is not None:
            self.made.append(f"{label} as a {made.kind}")
        return made

    def scale(self) -> list[str]:
        """Let the autoscalers say how many replicas manifests have; `Kind/namespace/name: replicas` of each."""
        found = scaled(self.autoscalers.values(), self.objects.others)
        for key, replicas in found.items():
            self.objects.others[key] = with_replicas(self.objects.others[key], replicas)
            if key in self.objects.workloads:
                owner = self.objects.workloads[key]
                self.objects.workloads[key] = replace(owner, spec=replace(owner.spec, replicas=replicas))
        return [f"{key}: {replicas}" for key, replicas in found.items()]

    def _put(self, kind: str, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str) -> None:
        if kind == "Pod":
            written = item.spec if metadata.uid else _absent_nulls(item.spec)
            spec, status = _decoded(written, k8s.PodSpec, "spec"), _decoded(item.status, k8s.PodStatus, "status")
            pod = k8s.Pod(metadata, spec, status)
            pod_shapes(pod, self.shapes)
            self._spelling(f"{kind}/{key}", metadata, item.spec, k8s.PodSpec)
            if not spec.containers:
                self.incomplete.append(f"{file}: Pod/{key}: spec.containers: there is none")
            self._store(self.objects.pods, key, pod, kind, file)
            return
        self.shapes.strings(metadata.labels, "metadata.labels")
        if kind == "Node" and _is_node_patch(metadata, item, key in self.objects.nodes):
            self.node_patches.append(f"{file}: Node/{key}: status.allocatable: there is none")
            return
        if kind == "PodDisruptionBudget":
            self._put_budget(api_version or "policy/v1", key, metadata, item, file)
        elif kind == "HorizontalPodAutoscaler":
            self.autoscalers[key] = Autoscaler(metadata.namespace, _decoded(item.spec, AutoscalerSpec, "spec"))
        elif kind in _READ:
            table, read = _READ[kind]
            self._store(getattr(self.objects, table), key, read(metadata, item, self.shapes), kind, file)
        else:
            self._put_manifest(kind, api_version, key, metadata, item, file)

    def _put_budget(self, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str) -> None:
        spec, status = _decoded(item.spec, k8s.BudgetSpec, "spec"), _decoded(item.status, k8s.BudgetStatus, "status")
        begins(spec.selector, "{", "spec.selector")
        self._spelling(f"PodDisruptionBudget/{key}", metadata, item.spec, k8s.BudgetSpec)
        self._store(
            self.objects.budgets, key, k8s.Budget(metadata, api_version, spec, status), "PodDisruptionBudget", file
        )

    def _put_manifest(
        self, kind: str, api_version: str, key: str, metadata: k8s.Metadata, item: Item, file: str
    ) -> None:
        """A workload (also as the owner that budgets and counts read), or a PriorityClass."""
        spec, status = _present(item.spec), _present(item.status)
        begins(spec, "{", "spec")
        if not metadata.uid:  # a cluster's have no nulls that matter
            spec = _absent_nulls(spec)
        key = f"{kind}/{key}"
        lacking = _lacking(kind, spec)
        if lacking:
            if not metadata.uid:  # objects of a cluster are complete: one with a uid is a trimmed record
                self.incomplete.append(f"{file}: {key}: {lacking}")
            if key in self.objects.others:
                return  # a patch must not replace the object that it patches
        if kind in WORKLOADS:
            owner = k8s.Workload(kind, metadata, api_version, _decoded(spec, k8s.WorkloadSpec, "spec"))
            begins(owner.spec.selector, "{", "spec.selector")
            self.objects.workloads[key] = owner
        manifest = Manifest(
            kind, metadata, api_version, spec, status, item.value, item.global_default, item.preemption_policy
        )
        self._store(self.objects.others, key, manifest, "", file)

    def _spelling(self, label: str, metadata: k8s.Metadata, spec: Raw, type_: type[Struct]) -> None:
        """Note fields that a person wrote with wrong capitals or endings; objects of a cluster (a uid) have none."""
        if metadata.uid or spec is NULL:
            return
        known = type_.__struct_encode_fields__
        unread = [name for name in _FIELDS.decode(spec) or () if name not in known and _is_like(name.lower(), type_)]
        if unread:
            self.objects.misspelled[label] = unread

    def _store(self, table: dict[str, T], key: str, value: T, kind: str, file: str) -> None:
        label = f"{kind}/{key}" if kind else key
        if key in table:
            del table[key]  # the last one counts, at its place in the order
            self.repeated.append(f"{label} ({self.objects.origins.pop(label, self.first_file)}, then {file})")
        table[key] = value
        if file != self.first_file:
            self.objects.origins[label] = file

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


def _decoded(raw: Raw, type_: type[T], name: str) -> T:
    """The part of an object, its default where it is absent or null. Raises BadObjectError with the field only."""
    if raw is NULL:
        return type_()
    try:
        value: T | None = _DECODERS[type_].decode(raw)
    except msgspec.ValidationError as error:
        raise fault_of(error, name, data=raw) from error
    return type_() if value is None else value


def _node(metadata: k8s.Metadata, item: Item, shapes: Shapes) -> k8s.Node:
    spec, status = _decoded(item.spec, k8s.NodeSpec, "spec"), _decoded(item.status, k8s.NodeStatus, "status")
    if status.allocatable is k8s.EMPTY_OBJECT or bytes(status.allocatable) == b"null":
        status = replace(status, allocatable=_capacity(item, shapes))
    node = k8s.Node(k8s.NodeMetadata(*msgspec.structs.astuple(metadata)), spec, status)
    node_shapes(node, shapes)
    return node


def _capacity(item: Item, shapes: Shapes) -> Raw:
    """What a node that does not say what can be allocated has of it: the API server takes its whole capacity."""
    capacity = _present(_decoded(item.status, _Capacity, "status").capacity)
    shapes.quantities(capacity, "status.capacity")
    return capacity


def _namespace(metadata: k8s.Metadata, _item: Item, _shapes: Shapes) -> k8s.Namespace:
    """With the label that the API server gives every namespace, whatever else is written there."""
    labels = _LABELS.decode(metadata.labels) or {}
    if labels.get(NAME_LABEL) != metadata.name:
        metadata = replace(metadata, labels=k8s.raw(labels | {NAME_LABEL: metadata.name}))
    return k8s.Namespace(metadata)


def _service(metadata: k8s.Metadata, item: Item, shapes: Shapes) -> k8s.Service:
    service = k8s.Service(metadata, _decoded(item.spec, k8s.ServiceSpec, "spec"))
    shapes.strings(service.spec.selector, "spec.selector")
    return service


def _claim(metadata: k8s.Metadata, item: Item, _shapes: Shapes) -> storage.PersistentVolumeClaim:
    spec = _decoded(item.spec, storage.ClaimSpec, "spec")
    begins(spec.selector, "{", "spec.selector")
    return storage.PersistentVolumeClaim(metadata, spec, _decoded(item.status, storage.Phase, "status"))


def _volume(metadata: k8s.Metadata, item: Item, _shapes: Shapes) -> storage.PersistentVolume:
    spec = _decoded(item.spec, storage.VolumeSpec, "spec")
    begins(spec.node_affinity, "{", "spec.nodeAffinity")
    return storage.PersistentVolume(metadata, spec, _decoded(item.status, storage.Phase, "status"))


def _storage_class(metadata: k8s.Metadata, item: Item, _shapes: Shapes) -> storage.StorageClass:
    return storage.StorageClass(
        metadata,
        _decoded(item.provisioner, str, "provisioner"),
        _decoded(item.volume_binding_mode, str, "volumeBindingMode") or storage.IMMEDIATE,
        _decoded(item.allowed_topologies, tuple[storage.TopologyTerm, ...], "allowedTopologies"),
    )


def _csi_node(metadata: k8s.Metadata, item: Item, _shapes: Shapes) -> storage.CsiNode:
    return storage.CsiNode(metadata, _decoded(item.spec, storage.CsiNodeSpec, "spec"))


def _attachment(metadata: k8s.Metadata, item: Item, _shapes: Shapes) -> storage.VolumeAttachment:
    return storage.VolumeAttachment(metadata, _decoded(item.spec, storage.AttachmentSpec, "spec"))


_READ: Mapping[str, tuple[str, Callable[[k8s.Metadata, Item, Shapes], Struct]]] = {
    "Node": ("nodes", _node),
    "Namespace": ("namespaces", _namespace),
    "Service": ("services", _service),
    "PersistentVolumeClaim": ("claims", _claim),
    "PersistentVolume": ("volumes", _volume),
    "StorageClass": ("storage_classes", _storage_class),
    "CSINode": ("csi_nodes", _csi_node),
    "VolumeAttachment": ("attachments", _attachment),
}
"""By kind: its table of `Objects`, and what makes the object; that raises BadObjectError with the field only."""


def without_nulls(value: Any) -> Any:
    """The same without the fields that are null: to the API these are absent."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def _absent_nulls(raw: Raw) -> Raw:
    """The part of an object as it is without its nulls."""
    if raw is NULL or b"null" not in bytes(raw):
        return raw
    return Raw(msgspec.json.encode(without_nulls(msgspec.json.decode(raw))))


def _is_node_patch(metadata: k8s.Metadata, item: Item, is_known: bool) -> bool:
    """Whether a manifest only says labels or taints for a node that is elsewhere: it would have room for nothing."""
    if metadata.uid or item.status is not NULL or not item.kind:
        return False
    says = metadata.labels is not k8s.EMPTY_OBJECT or item.spec is not NULL
    return is_known or (says and not _decoded(item.spec, k8s.NodeSpec, "spec").provider_id)


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
        if GROUPS[kind] is not KUBEVIRT and not msgspec.json.decode(template.spec, type=_Containers).containers:
            return "spec.template.spec.containers: there is none"
    except msgspec.ValidationError as error:
        raise fault_of(error, "spec", data=spec) from error
    return ""


def _without_kind(item: Item) -> str:
    if item.metadata is None:
        return "has no kind: not a Kubernetes object (a chart's values, or another format?)"
    return "has no kind: an incomplete object (a patch?), or an item of a list that does not say of what"
