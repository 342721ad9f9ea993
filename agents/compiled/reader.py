"""Reads pods one by one: which of them are equal, what they request, and where they are.

In: the pods of a snapshot. Out: numbered raw classes and requests, the running pods' numbers and nodes, the pending
pods. What the raw classes mean is left to `classes.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from underhost.agents.compiled.classes import NO_SPREAD, Disk, Owner, Port
from underhost.agents.compiled.equality import classed_alike, resized_alike
from underhost.agents.compiled.selected_labels import SelectedLabels
from underhost.agents.compiled.volumes.of_pod import claims_of, inline_volumes
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.requests import Request, request_of
from underhost.schemas.kubernetes import (
    DEFAULT_SCHEDULER,
    EMPTY_LIST,
    EMPTY_OBJECT,
    Container,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
)

RESTART_ALL, USERS_ON_HOST_NETWORK = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
"""Features that pods can need; the others of upstream's registry concern updates of pods, not their placement."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod without a node. `nominated` is the node it is nominated to, "" for none."""

    key: str
    uid: str
    cls: int
    request: int
    priority: int
    created: str
    scheduler: str
    terminating: bool
    gates: tuple[str, ...]
    nominated: str

    @property
    def queue_key(self) -> tuple[int, str]:
        """Sorts pods in the order in which the scheduler takes them; equal ones stay in the order of the input."""
        return -self.priority, self.created


@dataclass(slots=True)
class Reading:
    """What one pass over the pods has found.

    Attributes:
        classes: number by the fields of a `RawClass`, as a plain tuple.
        keys, pod_class, pod_request, pod_node: of the running pods, in input order.
        pending, unbound: pods without a node, and pods on a node that is not there; `cls` is the raw class's number.
    """

    classes: dict[tuple[object, ...], int] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    pod_class: list[int] = field(default_factory=list)
    pod_request: list[int] = field(default_factory=list)
    pod_node: list[int] = field(default_factory=list)
    pending: list[PendingPod] = field(default_factory=list)
    unbound: list[PendingPod] = field(default_factory=list)

    def number(self, raw: tuple[object, ...]) -> int:
        """The number of a raw class."""
        return self.classes.setdefault(raw, len(self.classes))

    def a_pod_of(self, cls: int) -> str:
        """Some pod of a raw class, for a message."""
        waiting = {pod.cls: pod.key for pod in (*self.unbound, *self.pending)}
        return self.keys[self.pod_class.index(cls)] if cls in self.pod_class else waiting[cls]


_Like = tuple[Pod, tuple[object, ...], int, int]
"""A pod that was read, its raw class with its number, and its request's number.

Others of its owner that are written alike have the same fields of the raw class, but for labels.
"""


class PodReader:
    """Reads pods. `requests` are those seen so far, by number.

    With `claims`, the claims of a pod are part of its class: they can be judged.
    """

    def __init__(self, *, claims: bool) -> None:
        self.claims = claims
        self.requests: list[Request] = []
        self._shapes: dict[object, int] = {}
        self._vectors: dict[tuple[object, ...], int] = {}

    def read(self, pods: Mapping[str, Pod], nodes: Mapping[str, int], labels: SelectedLabels) -> Reading:
        """Every pod that is not finished; `nodes` gives positions by name. Raises BadObjectError."""
        found = Reading()
        likes: dict[str, _Like] = {}
        keys, classes, requests, places = found.keys, found.pod_class, found.pod_request, found.pod_node
        owners: list[OwnerReference] | None = None
        like: _Like | None = None
        status, is_finished = PodStatus(), False
        for key, pod in pods.items():
            if pod.status is not status:  # replicas share what a file says of it
                status, is_finished = pod.status, pod.status.phase in FINISHED
            if is_finished:
                continue
            if like is None or pod.metadata.owner_references is not owners:  # as above
                owners = pod.metadata.owner_references
                like = likes.get(owners[0].uid) if owners else None
            if like is None or not classed_alike(pod, like[0], self.claims):
                raw = self._raw_class(key, pod, labels.of(pod.metadata.labels))
                cls, request = found.number(raw), self.request(key, pod)
                if owners:
                    like = likes[owners[0].uid] = pod, raw, cls, request
            else:
                its, raw, cls, request = like
                if pod.metadata.labels != its.metadata.labels:
                    kept = labels.of(pod.metadata.labels)
                    if kept != raw[1]:
                        cls = found.number((raw[0], kept, *raw[2:]))
                if not resized_alike(pod.status, its.status):
                    request = self.request(key, pod)
            node_name = pod.spec.node_name
            node = nodes.get(node_name, -1)
            if node >= 0:
                keys.append(key)
                classes.append(cls)
                requests.append(request)
                places.append(node)
            else:
                waiting = found.unbound if node_name else found.pending
                waiting.append(pending_pod(key, pod, cls, request))
        return found

    def raw_class(self, key: str, pod: Pod) -> tuple[object, ...]:
        """The fields of a RawClass, in order: making a named tuple would cost more than all the rest."""
        return self._raw_class(key, pod, bytes(pod.metadata.labels))

    def _raw_class(self, key: str, pod: Pod, labels: bytes) -> tuple[object, ...]:
        meta, spec = pod.metadata, pod.spec
        containers, inits = spec.containers or [], spec.init_containers
        spread = bytes(spec.topology_spread_constraints)
        ports: tuple[Port, ...] = ()
        disks: tuple[Disk, ...] = ()
        if len(containers) == 1 and not inits:
            images: tuple[str, ...] = (containers[0].image,)
            if containers[0].ports:
                ports = _ports(containers)
        else:
            images = tuple([container.image for container in (*(inits or ()), *containers)])
            ports = _ports([*(one for one in inits or () if one.restart_policy == "Always"), *containers])
        count = len(images)
        if spec.volumes is not EMPTY_LIST:
            disks, more = inline_volumes(key, bytes(spec.volumes))
            images += more
            if self.claims:
                disks += claims_of(pod, key, bytes(spec.volumes))
        owner = None
        if meta.owner_references and spread in NO_SPREAD:
            owner = _controller(meta.owner_references)
        return (
            meta.namespace,
            labels,
            bytes(spec.affinity),
            bytes(spec.node_selector),
            bytes(spec.tolerations),
            spread,
            images,
            count,
            ports,
            disks,
            owner,
            meta.deletion_timestamp is None,
            _features(spec),
        )

    def request(self, key: str, pod: Pod) -> int:
        """The number of what the pod asks for. Raises BadObjectError."""
        shape = _shape(pod)
        number = self._shapes.get(shape)
        if number is None:
            try:
                request = request_of(pod)
            except Fault as fault:
                raise fault.within(f"Pod {key}") from None
            number = self._shapes[shape] = self._vectors.setdefault(request.key(), len(self.requests))
            if number == len(self.requests):
                request.id = number
                self.requests.append(request)
        return number


def _controller(owners: list[OwnerReference]) -> Owner | None:
    for owner in owners:
        if owner.controller:
            return owner.kind, owner.api_version, owner.name
    return None


def pending_pod(key: str, pod: Pod, cls: int, request: int) -> PendingPod:
    """A pod that is not running."""
    meta, spec = pod.metadata, pod.spec
    return PendingPod(
        key=key,
        uid=meta.uid or f"uid-{key}",
        cls=cls,
        request=request,
        priority=spec.priority or 0,
        created=meta.creation_timestamp or "",
        scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
        terminating=meta.deletion_timestamp is not None,
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        nominated=pod.status.nominated_node_name,
    )


def _shape(pod: Pod) -> object:
    """Equal for pods whose requests are written alike."""
    spec, status = pod.spec, pod.status
    containers = spec.containers or []
    statuses = status.container_statuses or status.init_container_statuses
    if (
        len(containers) == 1
        and not spec.init_containers
        and spec.overhead is EMPTY_OBJECT
        and spec.resources is EMPTY_OBJECT
        and not statuses
    ):
        return bytes(containers[0].resources)
    resized: tuple[object, ...] = ()
    level: tuple[object, ...] = ()
    if spec.resources is not EMPTY_OBJECT and status.resources is not EMPTY_OBJECT:
        level = (bytes(status.resources), bytes(status.allocated_resources), _resize_pending(status))
    if statuses:
        every = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        resized = tuple(
            (one.name, bytes(one.resources), bytes(one.allocated_resources))
            for one in every
            if one.resources is not EMPTY_OBJECT
        )
        if resized:
            names = tuple(container.name for container in (*containers, *(spec.init_containers or ())))
            resized = (*resized, names, _resize_pending(status))
    return (
        tuple(bytes(container.resources) for container in containers),
        tuple((bytes(container.resources), container.restart_policy) for container in spec.init_containers or ()),
        bytes(spec.overhead),
        bytes(spec.resources),
        resized,
        level,
    )


def _resize_pending(status: PodStatus) -> str | None:
    return next((c.reason for c in status.conditions or () if c.type == "PodResizePending"), None)


def _features(spec: PodSpec) -> tuple[str, ...]:
    """The features of the kubelet that the pod needs (component-helpers/nodedeclaredfeatures), sorted."""
    ruled = []
    for containers in (spec.containers, spec.init_containers):
        for container in containers or ():
            if container.restart_policy_rules:
                ruled.append(container.restart_policy_rules)
    if not ruled and not spec.host_network:  # as of nearly every pod
        return ()
    restarts = any(rule.action == "RestartAllContainers" for rules in ruled for rule in rules)
    isolated = spec.host_network and spec.host_users is False
    needed = ((RESTART_ALL, restarts), (USERS_ON_HOST_NETWORK, isolated))
    return tuple(name for name, needs in needed if needs) if restarts or isolated else ()


def _ports(containers: list[Container]) -> tuple[Port, ...]:
    """The host ports, each once, sorted."""
    found = {
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(sorted(found))
