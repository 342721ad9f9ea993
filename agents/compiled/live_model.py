"""A `Model` and a `State` whose pods come and go: what every rule reads, kept from cycle to cycle.

In: pods, one after another, as classes, requests and nodes. Out: `LiveModel` and `LiveState`.
"""

from collections.abc import Container, Sequence

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.classifier import Classifier
from underhost.agents.compiled.domains import IndexArray, Topology
from underhost.agents.compiled.live_nodes import LiveNodes, Shift
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.model import Model, Running
from underhost.agents.compiled.state import State
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options

_GROWTH = 1024


class LiveModel(Model):
    """A model whose pods and nodes come and go. Positions in `running`, and of nodes, change: names stay.

    Attributes:
        at: position of each running pod by its key.
        class_at, request_at, node_at: of each position; the arrays of `running`, for one pod at a time.
        members, on_node: positions by class and by node.
    """

    nodes: LiveNodes
    at: dict[str, int]
    class_at: Sequence[int]
    request_at: Sequence[int]
    node_at: Sequence[int]
    members: list[set[int]]
    on_node: list[set[int]]

    def __init__(self, options: Options, nodes: LiveNodes, classifier: Classifier, requests: list[Request]) -> None:
        self.put(
            options=options,
            nodes=nodes,
            selectors=classifier.table,
            classes=classifier.classes,
            requests=requests,
            pending=[],
            unbound=[],
            at={},
            members=[set() for _ in classifier.classes],
            on_node=[set() for _ in nodes.names],
            _keys=[],
        )
        self._hold(np.zeros((3, _GROWTH), np.intp))
        self.chart()
        self.show()

    def put(self, **fields: object) -> None:
        """Set what other models never change."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _hold(self, arrays: "np.ndarray[tuple[int, int], np.dtype[np.intp]]") -> None:
        """The arrays of classes, requests and nodes; a view reads one number quicker than an array does."""
        views = [array.data for array in arrays]
        self.put(_arrays=arrays, class_at=views[0], request_at=views[1], node_at=views[2])

    def sizes(self) -> list[int]:
        """The number of running pods of each class."""
        return [len(mine) for mine in self.members]

    def pods_of(self, cls: int) -> IndexArray:
        """The running pods of a class."""
        mine = self.members[cls]
        return np.fromiter(mine, np.intp, len(mine))

    def grow(self) -> None:
        """Make room for the classes that are new."""
        self.members.extend(set() for _ in range(len(self.classes) - len(self.members)))

    def begin(self, keys: list[str], classes: list[int], requests: list[int], nodes: list[int]) -> None:
        """The pods that run at first."""
        arrays = np.zeros((3, len(keys) + _GROWTH), np.intp)
        arrays[:, : len(keys)] = classes, requests, nodes
        self._hold(arrays)
        self.put(_keys=keys, at=dict(zip(keys, range(len(keys)), strict=True)))
        for at, (cls, node) in enumerate(zip(classes, nodes, strict=True)):
            self.members[cls].add(at)
            self.on_node[node].add(at)

    def add(self, key: str, cls: int, request: int, node: int) -> None:
        """A pod runs."""
        at = len(self._keys)
        if at == self._arrays.shape[1]:
            self._hold(np.concatenate([self._arrays, np.zeros_like(self._arrays)], axis=1))
        self._arrays[:, at] = cls, request, node
        self._keys.append(key)
        self._enter(key, at)

    def remove(self, key: str) -> None:
        """A pod runs no more; the last one takes its position."""
        at, last = self.at.pop(key), len(self._keys) - 1
        self._leave(at)
        moved = self._keys.pop()
        if at != last:
            self._leave(last)
            self._keys[at] = moved
            self._arrays[:, at] = self._arrays[:, last]
            self._enter(moved, at)

    def _enter(self, key: str, at: int) -> None:
        self.at[key] = at
        self.members[self.class_at[at]].add(at)
        self.on_node[self.node_at[at]].add(at)

    def _leave(self, at: int) -> None:
        self.members[self.class_at[at]].discard(at)
        self.on_node[self.node_at[at]].discard(at)

    def shift(self, shift: Shift, relabelled: Container[str]) -> None:
        """Nodes went, without pods, and came; others have other labels under these keys."""
        moved, size = shift.positions(len(self.on_node)), len(self._keys)
        shift.list(self.on_node, (set() for _ in shift.come))
        self._arrays[2, :size] = moved[self._arrays[2, :size]]
        known = {key: values for key, values in self.topology.label_values.items() if key not in relabelled}
        for key, values in known.items():
            shift.list(values, [self.nodes.labels[at].get(key) for at in shift.come])
        self.chart(known)

    def chart(self, label_values: dict[str, list[str | None]] | None = None) -> None:
        """Make the topology anew; `label_values` are still right."""
        nodes = self.nodes
        hosts = nodes.hosts if nodes.has_hosts else None
        topology = Topology(nodes.labels, self.options.host_keys, hosts, nodes.host_names, label_values)
        self.put(topology=topology)

    def show(self) -> None:
        """Let `running` be the pods that run now."""
        size = len(self._keys)
        self.put(running=Running(self._keys, self._arrays[0, :size], self._arrays[1, :size], self._arrays[2, :size]))

    _keys: list[str]
    _arrays: "np.ndarray[tuple[int, int], np.dtype[np.intp]]"


class LiveState(State):
    """Counters and load that follow a live model; counters are built from the pods that run now.

    Attributes:
        generation: grows whenever all counters are dropped: rules that were prepared before are of no use.
    """

    model: LiveModel
    generation = 0

    def add(self, cls: int, request: int, node: int, sign: int = 1) -> None:
        super().add(cls, request, node, sign)
        if self._tried is None:
            self.log.clear()
            self._changes.clear()

    def shift(self, shift: Shift) -> None:
        """Nodes went, without pods, and came."""
        self.pods, self.used, self.nonzero = map(shift.array, (self.pods, self.used, self.nonzero))

    def forget_nodes(self) -> None:
        """Nodes have changed: what is derived from their labels and taints, and counters, are made anew when asked for.

        Where they have resources that no node had, the load is counted anew.
        """
        self._forget_counters(Depends.NODES)
        if len(self.used) < len(self.model.nodes.resources):
            self.model.show()
            self._fill()

    def forget_images(self) -> None:
        """Nodes have other images."""
        self.memo.forget(Depends.IMAGES)

    def forget_counters(self) -> None:
        """Counters, and what is derived from all classes, are made anew when asked for."""
        self._weights.clear()
        self._selected.clear()
        self._forget_counters(Depends.CLASSES)

    def know_class(self, fresh: PodClass) -> None:
        """A class is new: rules that are prepared from now on count its pods as well.

        Counters that are there stay right for rules that were prepared before and do not concern the class.
        """
        for selector in fresh.selectors:
            for live in (False, True):
                self._selected.pop((selector.id, live), None)
        self.memo.forget(Depends.CLASSES)

    def _forget_counters(self, changed: Depends) -> None:
        self.generation += 1
        self._counters.clear()
        self._touched.clear()
        self.memo.forget(changed)
