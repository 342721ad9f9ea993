"""A compiled site that follows its changes.

In: single pods and nodes that changed. Out: a `LiveModel` and a `LiveState`. What cannot be changed in place raises
`Outdated`.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice, repeat
from typing import NamedTuple

from underhost.agents.compiled.classifier import Classifier, Outdated
from underhost.agents.compiled.live_model import LiveModel, LiveState
from underhost.agents.compiled.live_nodes import LiveNodes
from underhost.agents.compiled.projection import Projection
from underhost.agents.compiled.reader import PendingPod, PodReader, Reading, pending_pod
from underhost.agents.site.changes import is_classed_alike
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Node, Pod

_SPARE, _LEAST = 4, 512  # how many more classes than what is in use are kept
_MOST_GROWN = 512  # new classes after which counters that nobody asks any more are dropped


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
        pending, unbound: the pods that wait, and those on absent nodes, by node. uses: the pods of each class.
    """

    def __init__(self, snapshot: Snapshot, options: Options) -> None:
        """Raises BadObjectError."""
        self._grown = 0
        nodes, projection, self._reader = LiveNodes(snapshot), Projection(), PodReader()
        projection.learn(snapshot.pods.values(), snapshot.services, snapshot.workloads)
        reading = self._reader.read(snapshot.pods, nodes.index, projection)
        self.classifier = Classifier(snapshot, nodes.images, _raw_classes(self._reader, reading))
        class_of = [self.classifier.first.get(_without_node(fields), -1) for fields in self._reader.classes]
        self._reader.forget_classes()
        self.classifier.first = {}
        classes = [class_of[raw] for raw in reading.pod_class]
        self.model = LiveModel(options, nodes, self.classifier, self._reader.requests)
        self.model.begin(reading.keys, classes, reading.pod_request, reading.pod_node)
        names = map(nodes.names.__getitem__, reading.pod_node)
        placed = zip(classes, reading.pod_request, names, repeat(""), strict=False)
        self.places = dict(zip(reading.keys, map(Place._make, placed), strict=True))
        self.uses = self.model.sizes()
        self.pending: dict[str, PendingPod] = {}
        self.unbound: defaultdict[str, dict[str, PendingPod]] = defaultdict(dict)
        for pod in (*reading.pending, *reading.unbound):
            self._put(pod.key, snapshot.pods[pod.key], class_of[pod.cls], pod.request)
        self.settle()
        self.state = LiveState(self.model)

    # ------------------------------------------------------------------------------------------------------- pods
    def place_of(self, key: str, pod: Pod, before: Pod | None = None) -> tuple[Place, bool]:
        """Where the pod is, and whether its class is new; `before` is what it was. Raises Outdated, BadObjectError."""
        was, request = self.places.get(key), self._reader.request(key, pod)
        if before is not None and was is not None and is_classed_alike(before, pod):
            return self.placed(pod, was.cls, request), False
        cls, new = self.classifier.class_of(self._reader.raw_class(key, pod), key)
        if new:
            self._add_class(cls)
            if len(self.uses) % _LEAST == 0 and len(self.uses) > _SPARE * (sum(map(bool, self.uses)) + _LEAST):
                raise Outdated  # most classes are of pods that are gone
        return self.placed(pod, cls, request), new

    def _add_class(self, cls: int) -> None:
        self.model.grow()
        self.uses.append(0)
        self._grown += 1
        if self._grown < _MOST_GROWN:
            self.state.know_class(self.model.classes[cls])
        else:
            self._grown = 0
            self.state.forget_counters()

    def pods_in(self, classes: Iterable[int]) -> list[str]:
        """The pods of these classes, wherever they are."""
        chosen, model = set(classes), self.model
        waiting = (*self.pending.values(), *(pod for there in self.unbound.values() for pod in there.values()))
        return [
            *(model.running.keys[at] for cls in chosen for at in model.members[cls]),
            *(pod.key for pod in waiting if pod.cls in chosen),
        ]

    def pods_on(self, name: str) -> list[str]:
        """The pods bound to a node, there or not."""
        node = self.model.nodes.index.get(name)
        if node is not None:
            return [self.model.running.keys[at] for at in self.model.on_node[node]]
        return list(self.unbound.get(name, ()))

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
            del self.unbound[place.absent][key]
            if not self.unbound[place.absent]:
                del self.unbound[place.absent]
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
        """The pods that wait, in the order of the snapshot."""
        latest_first = islice(filter(self.pending.__contains__, reversed(list(snapshot.pods))), len(self.pending))
        waiting = [self.pending[key] for key in latest_first]  # pods that wait came late: most pods are not looked at
        unbound = [pod for there in self.unbound.values() for pod in there.values()]
        self.model.put(pending=waiting[::-1], unbound=unbound)
        for name in ("pending_at", "running_at", "unbound_at"):
            vars(self.model).pop(name, None)

    def placed(self, pod: Pod, cls: int, request: int) -> Place:
        """Where a pod of the class is, as the nodes are now."""
        name = pod.spec.node_name
        here = name in self.model.nodes.index
        return Place(cls, request, name if here else "", "" if here else name)

    def _put(self, key: str, pod: Pod, cls: int, request: int) -> None:
        place = self.places[key] = self.placed(pod, cls, request)
        self.uses[cls] += 1
        if place.node:
            self.model.add(key, cls, request, self.model.nodes.index[place.node])
        else:
            self._wait(key, pod, place)

    def _wait(self, key: str, pod: Pod, place: Place) -> None:
        waiting = self.unbound[place.absent] if place.absent else self.pending
        waiting[key] = pending_pod(0, key, pod, place.cls, place.request)

    # ------------------------------------------------------------------------------------------------------ nodes
    def host_of(self, node: int) -> str:
        """The id of a node's ESXi host, "" while unknown."""
        return self.model.nodes.hosts[node] or ""

    def value_of(self, key: str, node: int) -> str | None:
        """A node's value of a topology key, None where it has none; of a host key the host's id."""
        if self.model.topology.is_host_key(key):
            return self.host_of(node) or None
        return self.model.nodes.labels[node].get(key)

    def change_images(self, name: str, before: Node | None, now: Node | None) -> None:
        """A node came, changed or went, maybe with other images. Raises BadObjectError."""
        if before is None or now is None or bytes(before.status.images) != bytes(now.status.images):
            self.classifier.change_images(self.model.nodes.images.change(name, before, now))
            self.state.forget_images()

    def change_nodes(self, snapshot: Snapshot, changed: Iterable[str], replaced: Iterable[str]) -> None:
        """Nodes that came, went or changed in what the rules read, and those whose VM or host did.

        No pod is on those that went. Raises Outdated, BadObjectError.
        """
        model, nodes = self.model, self.model.nodes
        there = [name for name in changed if name in nodes.index and name in snapshot.nodes]
        gone = [name for name in changed if name not in snapshot.nodes]
        come = [snapshot.nodes[name] for name in changed if name not in nodes.index]
        keys = {key for name in there for key in nodes.change(snapshot.nodes[name])}
        shift = nodes.exchange(gone, come) if gone or come else None
        nodes.place(snapshot, {*replaced, *(node.metadata.name for node in come)})
        if shift is not None:
            model.shift(shift, keys)
            self.state.shift(shift)
        else:
            hosts = nodes.hosts if replaced and nodes.has_hosts else None
            model.topology.forget(keys, hosts, nodes.host_names)
        self.state.forget_nodes()


def _raw_classes(reader: PodReader, reading: Reading) -> dict[tuple[object, ...], str]:
    """The raw classes there are, each with a pod of it; a pod's node being absent makes no class of its own here."""
    a_pod = dict(zip(reading.pod_class, reading.keys, strict=True))
    a_pod.update((pod.cls, pod.key) for pod in (*reading.pending, *reading.unbound))
    return {_without_node(fields): a_pod[raw] for fields, raw in reader.classes.items() if raw in a_pod}


def _without_node(fields: tuple[object, ...]) -> tuple[object, ...]:
    return (*fields[:-1], "")
