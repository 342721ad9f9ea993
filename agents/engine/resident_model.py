"""A `Model` and a `State` whose pods come and go: what every rule reads, kept from cycle to cycle.

In: pods, one after another, as classes, requests and nodes. Out: `LiveModel` and `LiveState`. Called by
`resident_live.py` only.
"""

import numpy as np

from underhost.agents.engine.classes import PodClass
from underhost.agents.engine.domains import IndexArray, Topology
from underhost.agents.engine.model import Model, Running
from underhost.agents.engine.nodes import Nodes
from underhost.agents.engine.resident_classes import Classifier
from underhost.agents.engine.snapshot import Options
from underhost.agents.engine.state import State
from underhost.agents.rules import (
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_ports,
    physical_host,
    pod_topology_spread,
    taint_toleration,
    volume_restrictions,
)

_GROWTH = 1024
_OF_NODES = frozenset(
    {"requirement", "affinity", "taints", pod_topology_spread.NAME, taint_toleration.NAME, node_affinity.NAME}
    | {image_locality.NAME}
)
"""What rules derive from the nodes' labels and taints, by the first word of the memo's key."""
_OF_CLASSES = frozenset({inter_pod_affinity.NAME, node_ports.NAME, physical_host.NAME, volume_restrictions.NAME})
"""What rules derive from all classes."""


class LiveModel(Model):
    """A model whose pods come and go. Positions in `running` change: names stay.

    Attributes:
        at: position of each running pod by its key. class_at, node_at: of each position, as lists.
        by_class, on_node: positions by class and by node.
    """

    at: dict[str, int]
    class_at: list[int]
    node_at: list[int]
    request_at: list[int]
    members: list[set[int]]
    on_node: list[set[int]]

    def __init__(self, options: Options, nodes: Nodes, topology: Topology, classifier: Classifier) -> None:
        self.put(
            options=options,
            nodes=nodes,
            topology=topology,
            selectors=classifier.table,
            classes=classifier.classes,
            requests=[],
            pending=[],
            unbound=[],
            at={},
            class_at=[],
            node_at=[],
            request_at=[],
            members=[set() for _ in classifier.classes],
            on_node=[set() for _ in nodes.names],
            _keys=[],
            _arrays=np.zeros((3, _GROWTH), np.intp),
        )
        self.show()

    def put(self, **fields: object) -> None:
        """Set what other models never change."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

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

    def add(self, key: str, cls: int, request: int, node: int) -> None:
        """A pod runs."""
        keys: list[str] = self._keys
        at = len(keys)
        if at == self._arrays.shape[1]:
            self.put(_arrays=np.concatenate([self._arrays, np.zeros_like(self._arrays)], axis=1))
        self._arrays[:, at] = cls, request, node
        keys.append(key)
        self.class_at.append(cls)
        self.request_at.append(request)
        self.node_at.append(node)
        self.at[key] = at
        self.members[cls].add(at)
        self.on_node[node].add(at)

    def remove(self, key: str) -> None:
        """A pod runs no more; the last one takes its position."""
        keys: list[str] = self._keys
        at, last = self.at.pop(key), len(keys) - 1
        self._leave(at)
        if at != last:
            self._leave(last)
            moved, cls, node = keys[last], self.class_at[last], self.node_at[last]
            keys[at], self.class_at[at], self.node_at[at] = moved, cls, node
            self.request_at[at] = self.request_at[last]
            self._arrays[:, at] = self._arrays[:, last]
            self.at[moved] = at
            self.members[cls].add(at)
            self.on_node[node].add(at)
        for listed in (keys, self.class_at, self.node_at, self.request_at):
            listed.pop()

    def _leave(self, at: int) -> None:
        self.members[self.class_at[at]].discard(at)
        self.on_node[self.node_at[at]].discard(at)

    def renumber(self, nodes: Nodes, topology: Topology) -> None:
        """Other nodes: those with pods must be among them."""
        old = self.nodes.names
        self.put(nodes=nodes, topology=topology)
        size = len(self._keys)
        self.put(node_at=[nodes.index[old[node]] for node in self.node_at], on_node=[set() for _ in nodes.names])
        for at, node in enumerate(self.node_at):
            self.on_node[node].add(at)
        self._arrays[2, :size] = self.node_at
        self.show()

    def show(self) -> None:
        """Let `running` be the pods that run now."""
        size = len(self._keys)
        self.put(running=Running(self._keys, self._arrays[0, :size], self._arrays[1, :size], self._arrays[2, :size]))

    _keys: list[str]
    _arrays: "np.ndarray[tuple[int, int], np.dtype[np.intp]]"


class LiveState(State):
    """Counters and load that follow a live model; counters are built from the pods that run now."""

    def add(self, cls: int, request: int, node: int, sign: int = 1) -> None:
        super().add(cls, request, node, sign)
        self.log.clear()
        self._changes.clear()

    def forget_nodes(self) -> None:
        """Counters, and what is derived from the nodes' labels and taints, are made anew when asked for."""
        self._drop(_OF_NODES)

    def forget_counters(self) -> None:
        """Counters, and what is derived from all classes, are made anew when asked for."""
        self._weights.clear()
        self._drop(_OF_CLASSES | {"selected"})

    def _drop(self, words: frozenset[str]) -> None:
        self._counters.clear()
        self._touched.clear()
        for key in [key for key in self.memo if _first(key) in words]:
            del self.memo[key]

    def know_class(self, cls: PodClass) -> None:
        """A class is new: rules that are prepared from now on count its pods as well.

        Counters that are there stay right for rules that were prepared before and do not concern the class.
        """
        for selector in cls.selectors:
            for live in (False, True):
                self.memo.pop(("selected", selector.id, live), None)
        for key in [key for key in self.memo if _first(key) in _OF_CLASSES]:
            del self.memo[key]


def _first(key: object) -> object:
    return key[0] if isinstance(key, tuple) else key
