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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from underhost.agents.engine import terms
from underhost.agents.engine.classes import ClassBuilder, Parser, PodClass, RawClass
from underhost.agents.engine.defaults import DefaultSelectors
from underhost.agents.engine.domains import IndexArray, Topology
from underhost.agents.engine.fault import Fault
from underhost.agents.engine.nodes import Nodes
from underhost.agents.engine.reader import PendingPod, PodReader
from underhost.agents.engine.requests import Request
from underhost.agents.engine.selectors import SelectorTable
from underhost.agents.engine.snapshot import Options, Snapshot

__all__ = ["Model", "PendingPod", "Running", "compile"]


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
    reader = PodReader(nodes, defaults, bool(snapshot.workloads))
    reader.read(snapshot.pods, assumed or {})
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
    pending = [replace(pod, cls=int(class_of[pod.cls])) for pod in reader.pending]
    unbound = [replace(pod, cls=int(class_of[pod.cls])) for pod in reader.unbound]
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
    )


def _hosts(snapshot: Snapshot, nodes: Nodes) -> tuple[list[str | None] | None, dict[str, str]]:
    """Each node's host (None: unknown), or None where no node's host is known; and the hosts' names."""
    names = {joined.host: joined.host_name for joined in snapshot.node_hosts.values() if joined.host}
    found = [
        (joined.host or None) if (joined := snapshot.node_hosts.get(name)) is not None else None for name in nodes.names
    ]
    return (found if any(found) else None), names


def _build_classes(
    reader: PodReader, snapshot: Snapshot, nodes: Nodes, defaults: DefaultSelectors
) -> tuple[list[PodClass], IndexArray, SelectorTable]:
    """Raw classes that differ only in labels that no selector names become one."""
    parser = Parser()
    parsed = []
    raws = [RawClass._make(key) for key in reader.classes]
    for at, raw in enumerate(raws):
        try:
            parsed.append(parser.parse(raw))
        except Fault as fault:
            raise fault.within(f"Pod {reader.first_pod[at]}") from None
    used = parser.selected_keys() | defaults.keys
    namespaces = _namespaces(snapshot, raws)
    table = SelectorTable()
    builder = ClassBuilder(table, namespaces, nodes.images, defaults)
    classes: list[PodClass] = []
    known: dict[tuple[object, ...], int] = {}
    class_of = np.zeros(len(parsed), np.intp)
    for at, (raw, parts) in enumerate(zip(raws, parsed, strict=True)):
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


def _namespaces(snapshot: Snapshot, raws: list[RawClass]) -> dict[str, dict[str, str]]:
    """Labels by namespace; one that the input lacks has none."""
    found: dict[str, dict[str, str]] = {raw.namespace: {} for raw in raws}
    for name, namespace in snapshot.namespaces.items():
        try:
            found[name] = terms.labels(bytes(namespace.metadata.labels))
        except Fault as fault:
            raise fault.within(f"Namespace {name}") from None
    return found
