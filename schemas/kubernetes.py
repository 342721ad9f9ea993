"""Kubernetes objects: only the fields that the rules read, in the API's own JSON shape.

The same structs decode a kubectl dump, an API answer and a record of a change topic (unknown fields are dropped), and
encode the trimmed object that travels. Parts with many equal copies (labels, affinity, ...) stay raw JSON: equal bytes
mean equal meaning, so each distinct value is parsed once, by whoever reads it.
"""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from underhost.schemas.numbers import number

DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod that names none."""

QUORUM_ANNOTATION = "underhost.io/quorum"
"""Of a workload, its pods or a node: how many of them must stay (`agents/affinity/quorum.py`)."""

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY, _LABEL_VALUE = re.compile(rf"((?P<prefix>{_PART}(\.{_PART})*)/)?{_NAME}"), re.compile(rf"({_NAME})?")
_LONGEST_PREFIX = 253

EMPTY_OBJECT = Raw(b"{}")
EMPTY_LIST = Raw(b"[]")


class ApiObject(Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Base: frozen, camelCase on the wire, defaults left out."""


class OwnerReference(ApiObject, frozen=True):
    """metadata.ownerReferences[]."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class Annotations(ApiObject, frozen=True):
    """The few annotations that are read."""

    mirror: str | None = field(default=None, name="kubernetes.io/config.mirror")
    hook: str | None = field(default=None, name="helm.sh/hook")
    quorum: str | None = field(default=None, name=QUORUM_ANNOTATION)
    bind_completed: str | None = field(default=None, name="pv.kubernetes.io/bind-completed")
    selected_node: str | None = field(default=None, name="volume.kubernetes.io/selected-node")
    storage_class: str | None = field(default=None, name="volume.beta.kubernetes.io/storage-class")
    migrated_plugins: str | None = field(default=None, name="storage.alpha.kubernetes.io/migrated-plugins")


class Metadata(ApiObject, frozen=True):
    """metadata. `labels` is raw JSON: an object of strings, or null."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Raw = EMPTY_OBJECT
    annotations: Annotations | None = None
    owner_references: list[OwnerReference] | None = None


class Condition(ApiObject, frozen=True):
    """status.conditions[], without the times that change at every heartbeat."""

    type: str
    status: str = ""
    reason: str | None = None


# ---------------------------------------------------------------------------------------------------------- nodes
class OwnedField(ApiObject, frozen=True):
    """A field in `fieldsV1`: that it is there says all."""


class OwnedMetadata(ApiObject, frozen=True):
    """fieldsV1.f:metadata: the labels, each as `f:KEY`."""

    labels: dict[str, OwnedField] = field(default_factory=dict, name="f:labels")


class OwnedFields(ApiObject, frozen=True):
    """fieldsV1."""

    metadata: OwnedMetadata = field(default_factory=OwnedMetadata, name="f:metadata")


class ManagedFields(ApiObject, frozen=True):
    """metadata.managedFields[]: which labels a manager owns, and when (RFC 3339) it last changed any field it owns."""

    time: str = ""
    fields_v1: OwnedFields = field(default_factory=OwnedFields, name="fieldsV1")


class NodeMetadata(Metadata, frozen=True):
    """A node's metadata. Of the managers only those that own labels are kept (`with_label_owners`)."""

    managed_fields: list[ManagedFields] | None = None


class NodeSpec(ApiObject, frozen=True):
    """Node spec. `taints` is raw: a list of {key, value, effect, timeAdded}, or null."""

    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: Raw = EMPTY_LIST


class NodeAddress(ApiObject, frozen=True):
    """status.addresses[]."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(ApiObject, frozen=True):
    """status.nodeInfo."""

    system_uuid: str = field(default="", name="systemUUID")


class NodeStatus(ApiObject, frozen=True):
    """Node status. `allocatable` is raw: resource name to quantity. `images` is raw: a list of {names, sizeBytes}."""

    allocatable: Raw = EMPTY_OBJECT
    images: Raw = EMPTY_LIST
    addresses: list[NodeAddress] | None = None
    conditions: list[Condition] | None = None
    node_info: NodeSystemInfo | None = None
    declared_features: list[str] | None = None


class Node(ApiObject, frozen=True):
    """v1 Node."""

    metadata: NodeMetadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# ----------------------------------------------------------------------------------------------------------- pods
class ContainerPort(ApiObject, frozen=True):
    """containers[].ports[]."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(ApiObject, frozen=True):
    """containers[].restartPolicyRules[]."""

    action: str = ""


class Container(ApiObject, frozen=True):
    """containers[] and initContainers[]. `resources` is raw: {requests, limits}."""

    name: str = ""
    image: str = ""
    resources: Raw = EMPTY_OBJECT
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None


class SchedulingGate(ApiObject, frozen=True):
    """spec.schedulingGates[]."""

    name: str


class PodSpec(ApiObject, frozen=True):
    """Pod spec. The raw parts are in the API's shape."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Raw = EMPTY_OBJECT
    resources: Raw = EMPTY_OBJECT
    affinity: Raw = EMPTY_OBJECT
    node_selector: Raw = EMPTY_OBJECT
    tolerations: Raw = EMPTY_LIST
    topology_spread_constraints: Raw = EMPTY_LIST
    volumes: Raw = EMPTY_LIST
    scheduling_gates: list[SchedulingGate] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    host_network: bool = False
    host_users: bool | None = None


class ContainerStatus(ApiObject, frozen=True):
    """status.containerStatuses[]: what an in-place resize reads."""

    name: str = ""
    allocated_resources: Raw = EMPTY_OBJECT
    resources: Raw = EMPTY_OBJECT


class PodStatus(ApiObject, frozen=True):
    """Pod status. `resources` and `allocated_resources` are raw: of the pod as a whole, for an in-place resize."""

    phase: str = ""
    nominated_node_name: str = ""
    resources: Raw = EMPTY_OBJECT
    allocated_resources: Raw = EMPTY_OBJECT
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(ApiObject, frozen=True):
    """v1 Pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --------------------------------------------------------------------------------------------------------- others
class Namespace(ApiObject, frozen=True):
    """v1 Namespace."""

    metadata: Metadata


class ServiceSpec(ApiObject, frozen=True):
    """Service spec: `selector` is raw, an object of strings, or null."""

    selector: Raw = EMPTY_OBJECT


class Service(ApiObject, frozen=True):
    """v1 Service."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(ApiObject, frozen=True):
    """What is read of a ReplicaSet, StatefulSet, Deployment, Job, ReplicationController or VMIRS.

    `selector` is raw (a LabelSelector; a plain map for a ReplicationController). `parallelism` is a Job's.
    """

    replicas: int | None = None
    parallelism: int | None = None
    selector: Raw = EMPTY_OBJECT


class Workload(ApiObject, frozen=True):
    """An owner of pods; `kind` tells which."""

    kind: str
    metadata: Metadata
    api_version: str = ""
    spec: WorkloadSpec = WorkloadSpec()


class BudgetSpec(ApiObject, frozen=True):
    """PodDisruptionBudget spec. `selector` is raw; null and {} differ."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: Raw = Raw(b"null")
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(ApiObject, frozen=True):
    """PodDisruptionBudget status, as the disruption controller wrote it."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class Budget(ApiObject, frozen=True):
    """policy PodDisruptionBudget (`apiVersion` matters: an empty selector means all pods in v1, none in v1beta1)."""

    metadata: Metadata
    api_version: str = "policy/v1"
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


KubernetesObject = Node | Pod | Namespace | Service | Workload | Budget
T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def decode(data: bytes | Raw, type_: type[T]) -> T:
    """The object in `data`. Raises msgspec.ValidationError or msgspec.DecodeError."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    value: T = decoder.decode(data)
    return value


def is_label_key(text: str) -> bool:
    """Whether the API server takes it as the key of a label, a taint or a term: `[PREFIX/]NAME`."""
    met = _LABEL_KEY.fullmatch(text)
    return met is not None and len(met["prefix"] or "") <= _LONGEST_PREFIX


def is_label_value(text: str) -> bool:
    """Whether the API server takes it as the value of a label; "" is one."""
    return _LABEL_VALUE.fullmatch(text) is not None


def with_label_owners(node: Node) -> Node:
    """The node with those managers of its fields that own labels; the others change with every heartbeat."""
    managers = node.metadata.managed_fields
    if managers is None:
        return node
    kept = [one for one in managers if one.fields_v1.metadata.labels] or None
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, managed_fields=kept))


def is_older(one: Struct, other: Struct) -> bool:
    """Whether `one` is an older state than `other`, both of the same key of one cluster, by their resourceVersions.

    False where these are no integers, or where the objects are not Kubernetes': then they tell no order. An object that
    was created anew under its name has a newer resourceVersion than the one before it, so uids need not be equal.
    """
    mine, others = _version(one), _version(other)
    return mine is not None and others is not None and mine < others


def _version(value: Struct) -> int | None:
    metadata = getattr(value, "metadata", None)
    version = metadata.resource_version if metadata is not None else ""
    return number(version)


def raw(value: object) -> Raw:
    """A raw part of an object, from plain values."""
    return Raw(_encoder.encode(value))


def encode(value: Struct) -> bytes:
    """The trimmed object as JSON, keys in the order of the struct: equal objects give equal bytes."""
    return _encoder.encode(value)
