"""A compiled site that follows its changes.

In: single pods and nodes that changed. Out: a `LiveModel` and a `LiveState`. Called by `resident.py` only, which tells
what a change can affect; here nothing is judged. What cannot be changed in place raises `Outdated`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from underhost.agents.engine import terms
from underhost.agents.engine.domains import Topology
from underhost.agents.engine.fault import Fault
from underhost.agents.engine.model import hosts_of
from underhost.agents.engine.nodes import NodeParts, Nodes
from underhost.agents.engine.reader import FINISHED, PendingPod, PodReader, pending_pod
from underhost.agents.engine.requests import PODS, allocatable
from underhost.agents.engine.resident_classes import Classifier, Outdated
from underhost.agents.engine.resident_model import LiveModel, LiveState
from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Node, Pod

_SPARE, _LEAST = 4, 512  # how many more classes than what is in use are kept


class Place(NamedTuple):
    """Where a pod is: a node that is there, `absent` (the name of one that is not), or neither while it waits."""

    cls: int
    request: int
    node: str
    absent: str


class Live:
    """A site's model and state, and what is needed to change them.

    Attributes:
        model, state: as every rule reads them. places: of every pod that is not finished.
        fresh: the classes made since the last `settle`.
    """

    def __init__(self, snapshot: Snapshot, options: Options) -> None:
        """Raises BadObjectError."""
        self._options, self._parts, self._reader = options, NodeParts(), PodReader()
        nodes = Nodes(snapshot.nodes, self._parts)
        raws: dict[tuple[object, ...], str] = {}
        read: dict[str, tuple[tuple[object, ...], int]] = {}
        for key, pod in snapshot.pods.items():
            if pod.status.phase not in FINISHED:
                fields = self._fields(key, pod, nodes.index)
                read[key] = fields, self._reader.request(key, pod)
                raws.setdefault(fields, key)
        self.classifier = Classifier(snapshot, nodes.images, raws)
        self.hosts, self.host_names = hosts_of(snapshot, nodes)
        topology = Topology(nodes.labels, options.host_keys, self.hosts, self.host_names)
        self.model = LiveModel(options, nodes, topology, self.classifier)
        self.model.put(requests=self._reader.requests)
        self.places: dict[str, Place] = {}
        self.pending: dict[str, PendingPod] = {}
        self.unbound: dict[str, PendingPod] = {}
        self.uses = [0] * len(self.classifier.classes)
        for key, (fields, request) in read.items():
            self._put(key, snapshot.pods[key], self.classifier.first[fields], request)
        self.classifier.first = {}
        self.settle()
        self.state = LiveState(self.model)
        self.images_stale = False

    # ------------------------------------------------------------------------------------------------------- pods
    def place_of(self, key: str, pod: Pod) -> tuple[Place, bool]:
        """Where the pod is, and whether its class is new. Raises Outdated, BadObjectError."""
        cls, new = self.classifier.class_of(self._fields(key, pod, self.model.nodes.index), key)
        if new:
            self.model.grow()
            self.uses.append(0)
            if len(self.uses) % _LEAST == 0 and len(self.uses) > _SPARE * (sum(map(bool, self.uses)) + _LEAST):
                raise Outdated  # most classes are of pods that are gone
        return self._placed(pod, cls, self._reader.request(key, pod)), new

    def add(self, key: str, pod: Pod, place: Place) -> None:
        """A pod that is not finished comes."""
        self._put(key, pod, place.cls, place.request)
        if place.node:
            self.state.add(place.cls, place.request, self.model.nodes.index[place.node])

    def remove(self, key: str) -> Place:
        """A pod goes."""
        place = self.places.pop(key)
        self.uses[place.cls] -= 1
        if place.node:
            self.model.remove(key)
            self.state.add(place.cls, place.request, self.model.nodes.index[place.node], -1)
        elif place.absent:
            del self.unbound[key]
        else:
            del self.pending[key]
        return place

    def refresh(self, key: str, pod: Pod) -> None:
        """A pod changed in nothing that a rule reads of running pods."""
        place = self.places[key]
        if not place.node:
            self._wait(key, pod, place)

    def settle(self) -> None:
        """All changes are in: show them to whoever reads the model."""
        self.model.show()

    def show_waiting(self, snapshot: Snapshot) -> None:
        """The pods that wait, in the order of the snapshot; the images that nodes have."""
        waiting = [self.pending[key] for key in snapshot.pods if key in self.pending] if self.pending else []
        ordered = [replace(pod, order=at) for at, pod in enumerate(waiting)]
        self.model.put(pending=ordered, unbound=list(self.unbound.values()))
        for name in ("pending_at", "running_at", "unbound_at"):
            vars(self.model).pop(name, None)
        if self.images_stale:
            self.model.nodes.images = self.model.nodes.images_of(snapshot.nodes)
            self.classifier.show_images(self.model.nodes.images)
            self.images_stale = False

    def _fields(self, key: str, pod: Pod, nodes: Mapping[str, int]) -> tuple[object, ...]:
        fields = self._reader.raw_class(key, pod)
        absent = pod.spec.node_name
        return fields if not absent or absent in nodes else (*fields[:-1], absent)

    def _placed(self, pod: Pod, cls: int, request: int) -> Place:
        name = pod.spec.node_name
        here = name in self.model.nodes.index
        return Place(cls, request, name if here else "", "" if here else name)

    def _put(self, key: str, pod: Pod, cls: int, request: int) -> None:
        place = self.places[key] = self._placed(pod, cls, request)
        self.uses[cls] += 1
        if place.node:
            self.model.add(key, cls, request, self.model.nodes.index[place.node])
        else:
            self._wait(key, pod, place)

    def _wait(self, key: str, pod: Pod, place: Place) -> None:
        waiting = self.unbound if place.absent else self.pending
        waiting[key] = pending_pod(0, key, pod, place.cls, place.request)

    # ------------------------------------------------------------------------------------------------------ nodes
    def host_of(self, node: int) -> str:
        """The id of a node's ESXi host, "" while unknown."""
        return (self.hosts[node] or "") if self.hosts is not None else ""

    def value_of(self, key: str, node: int) -> str | None:
        """A node's value of a topology key, None where it has none; of a host key the host's id."""
        if self.model.topology.is_host_key(key):
            return self.host_of(node) or None
        return self.model.nodes.labels[node].get(key)

    def change_nodes(self, snapshot: Snapshot, changed: Iterable[Node], hosts: bool) -> None:
        """Nodes that were there and are there still, in what the rules read; `hosts`: some node's host changed.

        Raises Outdated, BadObjectError.
        """
        model, keys = self.model, set[str]()
        for node in changed:
            keys |= self._change(node)
        if hosts:
            known = self.hosts is None
            self.hosts, names = hosts_of(snapshot, model.nodes)
            if (self.hosts is None) is not known or any(
                self.host_names.get(host, name) != name for host, name in names.items()
            ):
                raise Outdated
            self.host_names = names
        model.topology.forget(keys, self.hosts if hosts else None, self.host_names)
        self.state.forget_nodes()

    def other_nodes(self, snapshot: Snapshot) -> None:
        """Nodes came or went; no pod is on those that went. Raises Outdated, BadObjectError."""
        nodes, known = Nodes(snapshot.nodes, self._parts), self.hosts is None
        self.hosts, self.host_names = hosts_of(snapshot, nodes)
        if (self.hosts is None) is not known:
            raise Outdated
        topology = Topology(nodes.labels, self._options.host_keys, self.hosts, self.host_names)
        self.model.renumber(nodes, topology)
        self.state = LiveState(self.model)
        self.images_stale = True

    def _change(self, node: Node) -> set[str]:
        """Take in one node; the label keys that changed."""
        nodes, name = self.model.nodes, node.metadata.name
        at = nodes.index[name]
        try:
            labels = terms.labels(bytes(node.metadata.labels))
            taints = terms.taints(bytes(node.spec.taints))
            amounts = allocatable(bytes(node.status.allocatable))
        except Fault as fault:
            raise fault.within(f"Node {name}") from None
        before, nodes.labels[at] = nodes.labels[at], labels
        nodes.unschedulable[at] = node.spec.unschedulable
        if nodes.taints[nodes.taint_list[at]] != taints:
            if taints not in nodes.taints:
                nodes.taints.append(taints)
            nodes.taint_list[at] = nodes.taints.index(taints)
        if not amounts.keys() - {PODS} <= nodes.resources.keys():
            raise Outdated
        nodes.pods_allowed[at] = amounts.pop(PODS, 0)
        nodes.allocatable[:, at] = 0
        for resource, amount in amounts.items():
            nodes.allocatable[nodes.resources[resource], at] = amount
        return {key for key in before.keys() | labels.keys() if before.get(key) != labels.get(key)}
