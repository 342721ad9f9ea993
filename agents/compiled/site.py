"""A compiled site that is changed pod by pod and node by node, and where each pod of it is.

In: a snapshot at first, then single pods and nodes that changed. Out: the same model and state, changed in place. What
cannot be changed in place raises `Outdated`.
"""

from collections import defaultdict
from collections.abc import Iterable, Reversible
from itertools import islice, repeat
from typing import NamedTuple

from underhost.agents.compiled.model import Model
from underhost.agents.compiled.reader import PendingPod, pending_pod
from underhost.agents.compiled.state import State
from underhost.agents.site.changes import Outdated, is_owned_alike
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, Node, Pod

_SPARE, _LEAST = 4, 512  # how many more classes than what is in use are kept
_SELECTORS = 20_000  # selectors that may come, beside twice what there is, before those that nobody has are dropped
_MOST_GROWN = 512  # new classes after which counters that nobody asks any more are dropped


class Place(NamedTuple):
    """Where a pod is: a node that is there, `absent` (the name of one that is not), or neither while it waits."""

    cls: int
    request: int
    node: str
    absent: str


class CompiledSite:
    """A compiled site that can be changed.

    Attributes:
        model, state: as every rule reads them. places: of every pod that is not finished.
        pending, unbound: the pods that wait, and those on absent nodes, by node. uses: the pods of each class.
    """

    def __init__(self, snapshot: Snapshot, options: Options) -> None:
        """Raises BadObjectError."""
        model = self.model = Model(snapshot, options)
        running, names = model.running, model.nodes.names
        running.index(len(model.classes))
        self._grown = 0
        self._most_selectors = 2 * len(model.selectors.selectors) + _SELECTORS
        columns = (running.classes.tolist(), running.requests.tolist(), map(names.__getitem__, running.nodes.tolist()))
        self.places = dict(zip(running.keys, map(Place._make, zip(*columns, repeat(""), strict=False)), strict=True))
        self.uses = model.sizes()
        self.pending: dict[str, PendingPod] = {}
        self.unbound: defaultdict[str, dict[str, PendingPod]] = defaultdict(dict)
        for pod in (*model.pending, *model.unbound):
            one = snapshot.pods[pod.key]
            self._put(pod.key, one, self.placed(one, pod.cls, pod.request))
        self.state = State(model)

    # ------------------------------------------------------------------------------------------------------- pods
    def place_of(self, key: str, pod: Pod, before: Pod | None = None) -> tuple[Place, bool]:
        """Where the pod is, and whether its class is new; `before` is what it was. Raises Outdated, BadObjectError."""
        was, request = self.places.get(key), self.model.reader.request(key, pod)
        if before is not None and was is not None and self.model.classifier.stays(before, pod):
            return self.placed(pod, was.cls, request), False
        cls, new = self.model.classifier.class_of(self.model.reader.raw_class(key, pod), key)
        if new:
            self._add_class(cls)
            if len(self.uses) % _LEAST == 0 and len(self.uses) > _SPARE * (sum(map(bool, self.uses)) + _LEAST):
                raise Outdated  # most classes are of pods that are gone
            if len(self.model.selectors.selectors) > self._most_selectors:
                raise Outdated  # and most selectors
        return self.placed(pod, cls, request), new

    def _add_class(self, cls: int) -> None:
        self.model.running.add_class()
        self.uses.append(0)
        self._grown += 1
        if self._grown < _MOST_GROWN:
            self.state.know_class(self.model.classes[cls])
        else:
            self._grown = 0
            self.state.forget_classes()

    def pods_in(self, classes: Iterable[int]) -> list[str]:
        """The pods of these classes, wherever they are."""
        chosen, model = set(classes), self.model
        waiting = (*self.pending.values(), *(pod for there in self.unbound.values() for pod in there.values()))
        return [
            *(model.running.keys[at] for cls in chosen for at in model.running.members[cls]),
            *(pod.key for pod in waiting if pod.cls in chosen),
        ]

    def pods_on(self, name: str) -> list[str]:
        """The pods bound to a node, there or not."""
        node = self.model.nodes.index.get(name)
        if node is not None:
            return [self.model.running.keys[at] for at in self.model.running.on_node[node]]
        return list(self.unbound.get(name, ()))

    def add(self, key: str, pod: Pod, place: Place) -> None:
        """A pod that is not finished comes."""
        self._put(key, pod, place)
        if place.node:
            self.state.run(place.cls, place.request, self.model.nodes.index[place.node])

    def remove(self, key: str) -> Place:
        """A pod goes."""
        place = self.places.pop(key)
        self.uses[place.cls] -= 1
        if place.node:
            self.model.running.remove(key)
            self.state.run(place.cls, place.request, self.model.nodes.index[place.node], -1)
        elif place.absent:
            del self.unbound[place.absent][key]
            if not self.unbound[place.absent]:
                del self.unbound[place.absent]
        else:
            del self.pending[key]
        return place

    def refresh(self, key: str, pod: Pod, before: Pod | None) -> None:
        """A pod changed in nothing that a rule reads of running pods."""
        place = self.places[key]
        if not place.node:
            self._wait(key, pod, place)
        elif before is None or not is_owned_alike(before, pod):
            self.model.running.touch(self.model.nodes.index[place.node])

    def settle(self) -> None:
        """All changes are in: show them to whoever reads the model."""
        self.model.running.settle()

    def show_waiting(self, snapshot: Snapshot) -> None:
        """The pods that wait, in the order of the snapshot."""
        model, latest_first = self.model, list[PendingPod]()
        if self.pending:  # they came late: most pods are not looked at
            pods = snapshot.pods if isinstance(snapshot.pods, Reversible) else list(snapshot.pods)
            names = filter(self.pending.__contains__, reversed(pods))
            latest_first = [self.pending[key] for key in islice(names, len(self.pending))]
        model.pending = latest_first[::-1]
        model.unbound = [pod for there in self.unbound.values() for pod in there.values()]

    def placed(self, pod: Pod, cls: int, request: int) -> Place:
        """Where a pod of the class is, as the nodes are now."""
        name = pod.spec.node_name
        here = name in self.model.nodes.index
        return Place(cls, request, name if here else "", "" if here else name)

    def _put(self, key: str, pod: Pod, place: Place) -> None:
        self.places[key] = place
        self.uses[place.cls] += 1
        if place.node:
            self.model.running.add(key, place.cls, place.request, self.model.nodes.index[place.node])
        else:
            self._wait(key, pod, place)

    def _wait(self, key: str, pod: Pod, place: Place) -> None:
        waiting = self.unbound[place.absent] if place.absent else self.pending
        waiting[key] = pending_pod(key, pod, place.cls, place.request)

    # ------------------------------------------------------------------------------------------------------ nodes
    def host_of(self, node: int) -> str:
        """The id of a node's ESXi host, "" while unknown."""
        return self.model.nodes.hosts[node] or ""

    def value_of(self, key: str, node: int) -> str | None:
        """A node's value of a topology key, None where it has none; of a host key the host's id."""
        if self.model.topology.is_host_key(key):
            return self.host_of(node) or None
        return self.model.nodes.labels[node].get(key)

    def relabelled(self, snapshot: Snapshot, changed: Iterable[str]) -> dict[str, set[str]]:
        """Of the nodes about to change, those that stay on their hosts, with the label keys that get other values.

        Raises BadObjectError.
        """
        nodes, joined = self.model.nodes, snapshot.node_hosts
        there = [name for name in changed if name in nodes.index and name in snapshot.nodes]
        return {
            name: nodes.differing(snapshot.nodes[name])
            for name in there
            if self.host_of(nodes.index[name]) == (joined[name].host if name in joined else "")
        }

    def change_images(self, name: str, before: Node | None, now: Node | None) -> None:
        """A node came, changed or went, maybe with other images. Raises BadObjectError."""
        if _images_of(before) != _images_of(now):
            self.model.classifier.change_images(self.model.nodes.images.change(name, before, now))
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
            labels = {key: values for key, values in model.topology.label_values.items() if key not in keys}
            for key, values in labels.items():
                shift.list(values, [nodes.labels[at].get(key) for at in shift.come])
            model.running.shift(shift)
            model.chart(labels)
            self.state.shift(shift)
        else:
            hosts = nodes.hosts if replaced and nodes.has_hosts else None
            model.topology.forget(keys, hosts, nodes.host_names)
        for name in {*changed, *replaced} & nodes.index.keys():
            model.running.touch(nodes.index[name])
        model.running.settle()
        self.state.forget_nodes()


def _images_of(node: Node | None) -> bytes:
    """The images that a node lists, as they were sent."""
    return bytes(EMPTY_LIST if node is None else node.status.images)
