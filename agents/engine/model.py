"""The compiled snapshot: classes of equal pods × nodes, as arrays. Every decision and every judgement starts here.

In: a `Snapshot` and `Options`. Out: an immutable `Model`. Called by explain, schedule, judge and the sweep. It holds
what does not change while pods are placed; what changes (free resources, counters) is `state.State(model)`.

How to ask "may this running pod, taken out, be on its own node, and which rules refuse, with which reasons":

    model = compile(snapshot, options)
    for i, refusals in enumerate(judge.judge(model)):          # one mapping per running pod
        model.running.keys[i]                                   # "shop/db-0"
        model.nodes.names[model.running.nodes[i]]               # the node it runs on
        refusals                                                # {"InterPodAffinity": Refusal(code, reasons)}

and for the pods that refuse one another `judge.peers(model, i, rule)`. Pods on a node that the input lacks are in
`model.unbound`, not in `model.running`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from underhost.agents.engine import terms
from underhost.agents.engine.classes import ClassBuilder, Disk, Parser, PodClass, Port, RawClass
from underhost.agents.engine.defaults import DefaultSelectors
from underhost.agents.engine.domains import IndexArray, Topology
from underhost.agents.engine.fault import Fault, decode
from underhost.agents.engine.nodes import Nodes
from underhost.agents.engine.requests import Request, request_of
from underhost.agents.engine.selectors import SelectorTable
from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Container, Pod

FINISHED = ("Succeeded", "Failed")
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod without a node. `nominated` is the node it is nominated to, "" for none; `order` its place in the input."""

    key: str
    uid: str
    cls: int
    request: int
    priority: int
    created: str
    order: int
    scheduler: str
    terminating: bool
    gates: tuple[str, ...]
    nominated: str

    @property
    def queue_key(self) -> tuple[int, str, int]:
        """Sorts pods in the order in which the scheduler takes them."""
        return -self.priority, self.created, self.order


@dataclass(frozen=True, slots=True)
class Running:
    """P pods on nodes of the input, finished ones left out, in the order of the input.

    `keys`: `namespace/name`. `classes`, `requests`, `nodes`: intp[P], positions in the model's lists.
    """

    keys: list[str]
    classes: IndexArray
    requests: IndexArray
    nodes: IndexArray


@dataclass(frozen=True, slots=True)
class Model:
    """A site compiled. N nodes, P running pods, C classes, Q requests.

    Attributes:
        nodes: N nodes sorted by name, with labels, taints, int64[R, N] allocatable resources.
        topology: domains per topology key; a host key means the live ESXi host where hosts are known.
        selectors: every selector once, with the classes it matches.
        classes: C classes; a class's `selectors` are those that match it.
        requests: Q resource vectors.
        running: the pods on nodes. pending: the pods without one, in input order, whoever schedules them.
        unbound: pods bound to a node that the input lacks, by key: they count nowhere.
        by_class: intp[P], running pods sorted by class; offsets: intp[C + 1], where a class begins in it.
        pending_at, running_at, unbound_at: position by pod key.
    """

    options: Options
    nodes: Nodes
    topology: Topology
    selectors: SelectorTable
    classes: list[PodClass]
    requests: list[Request]
    running: Running
    pending: list[PendingPod]
    unbound: list[PendingPod]
    by_class: IndexArray
    offsets: IndexArray
    pending_at: dict[str, int]
    running_at: dict[str, int]
    unbound_at: dict[str, int]

    @property
    def has_hosts(self) -> bool:
        """Whether any node's ESXi host is known: only then the physical host matters."""
        return self.topology.hosts is not None

    def pods_of(self, cls: int) -> IndexArray:
        """The running pods of a class."""
        return self.by_class[self.offsets[cls] : self.offsets[cls + 1]]


def compile(snapshot: Snapshot, options: Options, assumed: Mapping[str, str] | None = None) -> Model:
    """The model of a snapshot.

    `assumed` maps pods already ordered to a node, and not yet seen there, to that node: they count as running on it.
    Raises BadObjectError that names the first object that breaks the API's rules, and its field.
    """
    nodes = Nodes(snapshot.nodes)
    defaults = DefaultSelectors(snapshot.services, snapshot.workloads)
    reader = _Reader(nodes, defaults, bool(snapshot.workloads))
    for order, (key, pod) in enumerate(snapshot.pods.items()):
        if pod.status.phase not in FINISHED:
            reader.read(order, key, pod, (assumed or {}).get(key))
    classes, class_of, table = _build_classes(reader, snapshot, nodes, defaults)
    hosts, host_names = _hosts(snapshot, nodes)
    running = Running(
        reader.keys,
        class_of[np.array(reader.pod_class, np.intp)] if reader.keys else np.zeros(0, np.intp),
        np.array(reader.pod_request, np.intp),
        np.array(reader.pod_node, np.intp),
    )
    by_class: IndexArray = np.argsort(running.classes, kind="stable")
    offsets: IndexArray = np.searchsorted(running.classes[by_class], np.arange(len(classes) + 1))
    pending = [_renumbered(pod, class_of) for pod in reader.pending]
    unbound = [_renumbered(pod, class_of) for pod in reader.unbound]
    return Model(
        options=options,
        nodes=nodes,
        topology=Topology(nodes.labels, options.host_keys, hosts, host_names),
        selectors=table,
        classes=classes,
        requests=reader.requests,
        running=running,
        pending=pending,
        unbound=unbound,
        by_class=by_class,
        offsets=offsets,
        pending_at={pod.key: at for at, pod in enumerate(pending)},
        running_at={key: at for at, key in enumerate(reader.keys)},
        unbound_at={pod.key: at for at, pod in enumerate(unbound)},
    )


def _renumbered(pod: PendingPod, class_of: IndexArray) -> PendingPod:
    return PendingPod(
        pod.key,
        pod.uid,
        int(class_of[pod.cls]),
        pod.request,
        pod.priority,
        pod.created,
        pod.order,
        pod.scheduler,
        pod.terminating,
        pod.gates,
        pod.nominated,
    )


def _hosts(snapshot: Snapshot, nodes: Nodes) -> tuple[list[str | None] | None, dict[str, str]]:
    """Each node's host (None: unknown), or None where no node's host is known; and the hosts' names."""
    names = {joined.host: joined.host_name for joined in snapshot.node_hosts.values() if joined.host}
    found = [
        (joined.host or None) if (joined := snapshot.node_hosts.get(name)) is not None else None for name in nodes.names
    ]
    return (found if any(found) else None), names


def _build_classes(
    reader: "_Reader", snapshot: Snapshot, nodes: Nodes, defaults: DefaultSelectors
) -> tuple[list[PodClass], IndexArray, SelectorTable]:
    """Raw classes that differ only in labels that no selector names become one."""
    parser = Parser()
    parsed = []
    for raw, first in reader.classes.items():
        try:
            parsed.append(parser.parse(raw))
        except Fault as fault:
            raise fault.within(f"Pod {reader.first_pod[first]}") from None
    used = parser.selected_keys() | defaults.keys
    namespaces = _namespaces(snapshot, reader)
    table = SelectorTable()
    builder = ClassBuilder(table, namespaces, nodes.images, defaults)
    classes: list[PodClass] = []
    known: dict[tuple[object, ...], int] = {}
    class_of = np.zeros(len(parsed), np.intp)
    for at, (raw, parts) in enumerate(zip(reader.classes, parsed, strict=True)):
        labels = {key: parts.labels[key] for key in sorted(used & parts.labels.keys())}
        identity = (
            raw.namespace,
            tuple(labels.items()),
            raw.affinity,
            raw.node_selector,
            raw.tolerations,
            raw.spread,
            builder.image_key(raw),
            raw.ports,
            raw.disks,
            raw.owner,
            raw.live,
            raw.node_name,
        )
        found = known.get(identity)
        if found is None:
            found = known[identity] = len(classes)
            try:
                classes.append(builder.build(found, raw, parts, labels))
            except Fault as fault:
                raise fault.within(f"Pod {reader.first_pod[at]}") from None
        class_of[at] = found
    for cls, selectors in zip(classes, table.match([(c.namespace, c.labels) for c in classes]), strict=True):
        cls.selectors = selectors
    return classes, class_of, table


def _namespaces(snapshot: Snapshot, reader: "_Reader") -> dict[str, dict[str, str]]:
    """Labels by namespace; one that the input lacks has none."""
    found: dict[str, dict[str, str]] = {raw.namespace: {} for raw in reader.classes}
    for name, namespace in snapshot.namespaces.items():
        try:
            found[name] = terms.labels(bytes(namespace.metadata.labels))
        except Fault as fault:
            raise fault.within(f"Namespace {name}") from None
    return found


class _Disk(msgspec.Struct, rename="camel"):
    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    iqn: str = ""
    monitors: list[str] = []
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class _ImageVolume(msgspec.Struct):
    reference: str = ""


class _Volume(msgspec.Struct, rename="camel"):
    gce_persistent_disk: _Disk | None = None
    aws_elastic_block_store: _Disk | None = None
    iscsi: _Disk | None = None
    rbd: _Disk | None = None
    image: _ImageVolume | None = None


_VOLUMES = msgspec.json.Decoder(list[_Volume] | None)
_READ_VOLUMES = re.compile(rb'"(gcePersistentDisk|awsElasticBlockStore|iscsi|rbd|image)"\s*:')


class _Reader:
    """Reads pods one by one into numbered raw classes and requests."""

    def __init__(self, nodes: Nodes, defaults: DefaultSelectors, has_owners: bool) -> None:
        self._nodes, self._defaults, self._has_owners = nodes, defaults, has_owners
        self.classes: dict[RawClass, int] = {}
        self.first_pod: list[str] = []
        self.requests: list[Request] = []
        self._shapes: dict[object, int] = {}
        self._vectors: dict[tuple[object, ...], int] = {}
        self.keys: list[str] = []
        self.pod_class: list[int] = []
        self.pod_request: list[int] = []
        self.pod_node: list[int] = []
        self.pending: list[PendingPod] = []
        self.unbound: list[PendingPod] = []

    def read(self, order: int, key: str, pod: Pod, assumed: str | None) -> None:
        """Number one pod's class and request. Raises BadObjectError."""
        meta, spec = pod.metadata, pod.spec
        node_name = spec.node_name or assumed or ""
        node = self._nodes.index.get(node_name, -1) if node_name else -1
        cls = self._class(key, pod, node_name if node < 0 else "")
        request = self._request(key, pod)
        if node >= 0:
            self.keys.append(key)
            self.pod_class.append(cls)
            self.pod_request.append(request)
            self.pod_node.append(node)
            return
        target = self.unbound if node_name else self.pending
        target.append(
            PendingPod(
                key=key,
                uid=meta.uid or f"uid-{key}",
                cls=cls,
                request=request,
                priority=spec.priority or 0,
                created=meta.creation_timestamp or "",
                order=order,
                scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
                terminating=meta.deletion_timestamp is not None,
                gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
                nominated=pod.status.nominated_node_name,
            )
        )

    def _class(self, key: str, pod: Pod, node_name: str) -> int:
        meta, spec = pod.metadata, pod.spec
        containers = spec.containers or []
        spread = bytes(spec.topology_spread_constraints)
        if len(containers) == 1 and not spec.init_containers:
            images: tuple[str, ...] = (containers[0].image,)
            ports = _ports(containers) if containers[0].ports else ()
        else:
            images = tuple(container.image for container in (*(spec.init_containers or ()), *containers))
            ports = _ports((*(c for c in spec.init_containers or () if c.restart_policy == "Always"), *containers))
        count = len(images)
        disks: tuple[Disk, ...] = ()
        if spec.volumes is not EMPTY_LIST:
            disks, more = _volumes(key, bytes(spec.volumes))
            images += more
        owner = None
        if self._has_owners and meta.owner_references and spread in (b"[]", b"null"):
            owner = self._defaults.owner_key(meta.namespace, meta.owner_references)
        raw = RawClass(
            meta.namespace,
            bytes(meta.labels),
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
            node_name,
        )
        found = self.classes.get(raw)
        if found is None:
            found = self.classes[raw] = len(self.classes)
            self.first_pod.append(key)
        return found

    def _request(self, key: str, pod: Pod) -> int:
        shape = _shape(pod)
        found = self._shapes.get(shape)
        if found is None:
            try:
                request = request_of(pod)
            except Fault as fault:
                raise fault.within(f"Pod {key}") from None
            found = self._vectors.setdefault(request.key(), len(self.requests))
            if found == len(self.requests):
                request.id = found
                self.requests.append(request)
            self._shapes[shape] = found
        return found


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
    if statuses:
        every = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        resized = tuple(
            (one.name, bytes(one.resources), bytes(one.allocated_resources))
            for one in every
            if one.resources is not EMPTY_OBJECT
        )
        if resized:
            names = tuple(container.name for container in (*containers, *(spec.init_containers or ())))
            pending = next((c.reason for c in status.conditions or () if c.type == "PodResizePending"), None)
            resized = (*resized, names, pending)
    return (
        tuple(bytes(container.resources) for container in containers),
        tuple((bytes(container.resources), container.restart_policy) for container in spec.init_containers or ()),
        bytes(spec.overhead),
        bytes(spec.resources),
        resized,
    )


def _ports(containers: "list[Container] | tuple[Container, ...]") -> tuple[Port, ...]:
    """The host ports, each once, sorted."""
    found = {
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(sorted(found))


def _volumes(key: str, raw: bytes) -> tuple[tuple[Disk, ...], tuple[str, ...]]:
    """Inline disks and image volumes. Most pods have neither: their volumes are not parsed."""
    if _READ_VOLUMES.search(raw) is None:
        return (), ()
    try:
        volumes = decode(raw, _VOLUMES, "spec.volumes") or []
    except Fault as fault:
        raise fault.within(f"Pod {key}") from None
    disks: list[Disk] = []
    images: list[str] = []
    for volume in volumes:
        if volume.gce_persistent_disk is not None:
            disk = volume.gce_persistent_disk
            disks.append(("gcePersistentDisk", (disk.pd_name,), disk.read_only))
        if volume.aws_elastic_block_store is not None:
            disks.append(("awsElasticBlockStore", (volume.aws_elastic_block_store.volume_id,), False))
        if volume.iscsi is not None:
            disks.append(("iscsi", (volume.iscsi.iqn,), volume.iscsi.read_only))
        if volume.rbd is not None:
            disk = volume.rbd
            disks.append(("rbd", (disk.pool, disk.image, *sorted(disk.monitors)), disk.read_only))
        if volume.image is not None:
            images.append(volume.image.reference)
    return tuple(disks), tuple(images)
