"""The compiled snapshot: classes of equal pods × nodes, as arrays. Every decision and every judgement starts here.

In: a `Snapshot` and `Options`. Out: an immutable `Model`. It holds what does not change while pods are placed; what
changes (free resources, counters) is `state.State(model)`.

Pods on a node that the input lacks are in `model.unbound`, not in `model.running`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.class_builder import ClassBuilder
from underhost.agents.compiled.classes import Parser, PodClass, RawClass
from underhost.agents.compiled.default_spreading import DefaultSelectors
from underhost.agents.compiled.domains import IndexArray, Topology
from underhost.agents.compiled.nodes import NodeParts, Nodes
from underhost.agents.compiled.projection import Projection
from underhost.agents.compiled.reader import PendingPod, PodReader, Reading
from underhost.agents.compiled.volumes.claims import Volumes, volumes_of
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import SelectorTable
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Node

__all__ = ["Compiler", "Model", "PendingPod", "Running", "compile"]

_COMPILED = "_compiled"
_SPARE, _LEAST = 4, 1024  # how much more than what is in use a compiler remembers


@dataclass(frozen=True, slots=True)
class Running:
    """P pods on nodes of the input, finished ones left out, in the order of the input.

    `keys`: `namespace/name`. `classes`, `requests`, `nodes`: intp[P], positions in the model's lists.
    """

    keys: list[str]
    classes: IndexArray
    requests: IndexArray
    nodes: IndexArray


@dataclass(frozen=True)
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
        volumes: the claims and what is behind them; None where the snapshot holds no claim.
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
    volumes: Volumes | None = None

    @cached_property
    def pending_at(self) -> dict[str, int]:
        """Position in `pending` by pod key."""
        return {pod.key: at for at, pod in enumerate(self.pending)}

    @cached_property
    def running_at(self) -> dict[str, int]:
        """Position in `running` by pod key."""
        return {key: at for at, key in enumerate(self.running.keys)}

    @cached_property
    def unbound_at(self) -> dict[str, int]:
        """Position in `unbound` by pod key."""
        return {pod.key: at for at, pod in enumerate(self.unbound)}

    @property
    def has_hosts(self) -> bool:
        """Whether any node's ESXi host is known: only then pods can share one."""
        return self.topology.hosts is not None and bool(self.topology.hosts.present.any())

    def sizes(self) -> list[int]:
        """The number of running pods of each class."""
        sizes: list[int] = np.diff(self.offsets).tolist()
        return sizes

    def pods_of(self, cls: int) -> IndexArray:
        """The running pods of a class."""
        return self.by_class[self.offsets[cls] : self.offsets[cls + 1]]


def compile(snapshot: Snapshot, options: Options) -> Model:
    """The model of a snapshot, kept with it: check, schedule and the deciders of one cycle compile it once.

    Raises BadObjectError that names the first object that breaks the API's rules, and its field.
    """
    return Compiler(remember=False).compile(snapshot, options)


class Compiler:
    """Compiles one snapshot of a site after another, and reads only the objects that are new since the last one.

    Whoever compiles again and again (the pipeline) keeps one of these; an object that is the same Python object as last
    time is not read again. Models share what did not change. Not for several threads at once.
    """

    def __init__(self, *, remember: bool = True) -> None:
        """Not to remember what was read saves memory where there is nothing to compile but one snapshot."""
        self._reader = PodReader(remember=remember)
        self._projection = Projection()
        self._parts = NodeParts()
        self._nodes: tuple[list[Node], Nodes] | None = None
        self._topology: tuple[Nodes, object, Topology] | None = None
        self._classes: tuple[list[object], object, _Classes] | None = None

    def compile(self, snapshot: Snapshot, options: Options) -> Model:
        """As the function `compile`; the same snapshot again is the same model. Raises BadObjectError."""
        kept: Model | None = vars(snapshot).get(_COMPILED)
        if kept is not None and kept.options == options:
            return kept
        nodes, volumes = self._compile_nodes(snapshot), volumes_of(snapshot)
        if self._reader.claims != (volumes is not None):
            self._reader, self._classes = PodReader(volumes is not None, self._reader.remember), None
        reading = self._read(snapshot, nodes)
        numbers = np.array([*reading.pod_class, *(pod.cls for pod in (*reading.pending, *reading.unbound))], np.intp)
        used: IndexArray = np.unique(numbers)
        built = self._compile_classes(snapshot, nodes, reading, used)
        class_of = np.zeros(len(self._reader.classes), np.intp)
        class_of[used] = built.class_of
        classes = class_of[np.array(reading.pod_class, np.intp)]
        by_class: IndexArray = np.argsort(classes, kind="stable")
        model = Model(
            options=options,
            nodes=nodes,
            topology=self._compile_topology(snapshot, options, nodes),
            selectors=built.table,
            classes=built.classes,
            requests=list(self._reader.requests),
            running=Running(
                reading.keys, classes, np.array(reading.pod_request, np.intp), np.array(reading.pod_node, np.intp)
            ),
            pending=[replace(pod, cls=int(class_of[pod.cls])) for pod in reading.pending],
            unbound=[replace(pod, cls=int(class_of[pod.cls])) for pod in reading.unbound],
            by_class=by_class,
            offsets=np.searchsorted(classes[by_class], np.arange(len(built.classes) + 1)),
            volumes=volumes,
        )
        self._forget(len(used), len(nodes))
        object.__setattr__(snapshot, _COMPILED, model)  # derived from a value that never changes
        return model

    def _read(self, snapshot: Snapshot, nodes: Nodes) -> Reading:
        """The pods, their labels cut down to the keys that some selector names."""
        if self._projection.learn(self._reader.changed(snapshot.pods), snapshot.services, snapshot.workloads):
            self._reader.forget()
        return self._reader.read(snapshot.pods, nodes.index, self._projection)

    def _compile_nodes(self, snapshot: Snapshot) -> Nodes:
        objects = list(snapshot.nodes.values())
        if self._nodes is None or not _same(objects, self._nodes[0]):
            self._nodes = (objects, Nodes(snapshot.nodes, self._parts))
        return self._nodes[1]

    def _compile_topology(self, snapshot: Snapshot, options: Options, nodes: Nodes) -> Topology:
        hosts, names = hosts_of(snapshot, nodes)
        key = (options.host_keys, hosts, names)
        if self._topology is None or self._topology[0] is not nodes or self._topology[1] != key:
            self._topology = (nodes, key, Topology(nodes.labels, options.host_keys, hosts, names))
        return self._topology[2]

    def _compile_classes(self, snapshot: Snapshot, nodes: Nodes, reading: Reading, used: IndexArray) -> "_Classes":
        others: list[object] = [
            *snapshot.namespaces.values(),
            *snapshot.services.values(),
            *snapshot.workloads.values(),
        ]
        key = (used.tolist(), nodes.images.keys())
        if self._classes is None or self._classes[1] != key or not _same(others, self._classes[0]):
            every = list(self._reader.classes)
            raws = {number: RawClass._make(every[number]) for number in used.tolist()}
            self._classes = (others, key, _build_classes(raws, reading, snapshot, nodes))
        return self._classes[2]

    def _forget(self, classes: int, nodes: int) -> None:
        """Start anew where most of what is remembered is about objects that are gone."""
        if len(self._reader.classes) > _SPARE * (classes + _LEAST):
            self._reader = PodReader(self._reader.claims, self._reader.remember)
            self._classes = None
        if len(self._parts) > _SPARE * (4 * nodes + _LEAST):
            self._parts = NodeParts()


class _Classes(NamedTuple):
    """`class_of`: intp, the class of each raw class in use, ascending by its number."""

    classes: list[PodClass]
    class_of: IndexArray
    table: SelectorTable


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether both hold the very same objects in the same order."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def hosts_of(snapshot: Snapshot, nodes: Nodes) -> tuple[list[str | None] | None, dict[str, str]]:
    """Each node's host (None: unknown), or None where the site has no hosts at all; and the hosts' names."""
    names = {joined.host: joined.host_name for joined in snapshot.node_hosts.values() if joined.host}
    found = [
        (joined.host or None) if (joined := snapshot.node_hosts.get(name)) is not None else None for name in nodes.names
    ]
    return (found if snapshot.hosts or any(found) else None), names


def _build_classes(raws: Mapping[int, RawClass], reading: Reading, snapshot: Snapshot, nodes: Nodes) -> _Classes:
    """Raw classes that differ only in labels that no selector names, or in unknown owners, become one."""
    defaults = DefaultSelectors(snapshot.services, snapshot.workloads)
    parser = Parser()
    parsed = []
    for number, raw in raws.items():
        try:
            parsed.append(parser.parse(raw))
        except Fault as fault:
            raise fault.within(f"Pod {reading.a_pod_of(number)}") from None
    used = parser.selected_keys() | defaults.keys
    table = SelectorTable()
    builder = ClassBuilder(table, _namespaces(snapshot, raws.values()), nodes.images, defaults)
    classes: list[PodClass] = []
    known: dict[tuple[object, ...], int] = {}
    class_of = []
    for (number, raw), parts in zip(raws.items(), parsed, strict=True):
        labels = {key: parts.labels[key] for key in sorted(used & parts.labels.keys())}
        owner = defaults.known(raw.namespace, raw.owner)
        seen = raw._replace(labels=b"", images=(), containers=0, owner=owner)
        identity = (seen, tuple(labels.items()), builder.image_key(raw))
        found = known.get(identity)
        if found is None:
            found = known[identity] = len(classes)
            try:
                classes.append(builder.build(found, raw, parts, labels))
            except Fault as fault:
                raise fault.within(f"Pod {reading.a_pod_of(number)}") from None
        class_of.append(found)
    for cls, selectors in zip(classes, table.match([(c.namespace, c.labels) for c in classes]), strict=True):
        cls.selectors = selectors
    return _Classes(classes, np.array(class_of, np.intp), table)


def _namespaces(snapshot: Snapshot, raws: Iterable[RawClass]) -> dict[str, dict[str, str]]:
    """Labels by namespace; one that the input lacks has none."""
    found: dict[str, dict[str, str]] = {raw.namespace: {} for raw in raws}
    for name, namespace in snapshot.namespaces.items():
        try:
            found[name] = terms.labels(bytes(namespace.metadata.labels))
        except Fault as fault:
            raise fault.within(f"Namespace {name}") from None
    return found
