"""The running pods of a compiled site: class, request and node of each, as numbers.

In: what one pass over the pods has found, then single pods that come and go. Out: arrays that every rule reads, and the
pods by class. What only following needs (positions by key, by class and by node) is made when following begins.
"""

from collections.abc import Collection, MutableSequence
from functools import cached_property

import numpy as np

from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.nodes import Shift

_GROWTH = 1024


class Running:
    """P pods on nodes of the input, finished ones left out; in the order of the input until the first one goes.

    Attributes:
        keys: `namespace/name`. classes, requests, nodes: intp[P], positions in the model's lists.
        class_at, request_at, node_at: of each position; a view reads one number quicker than an array does.
        members, on_node: positions by class and by node; they are there once `index` was called.
        changed: int64[N], when a pod last came to or left each node, or something else changed there; 0: not since the
            site was compiled. Whoever derives something from the pods of some nodes sees here whether it still holds.
    """

    class_at: MutableSequence[int]
    request_at: MutableSequence[int]
    node_at: MutableSequence[int]
    members: list[set[int]]
    on_node: list[set[int]]

    def __init__(
        self, keys: list[str], classes: IndexArray, requests: IndexArray, nodes: IndexArray, node_count: int
    ) -> None:
        self.keys = keys
        self._changes, self.changed = 0, np.zeros(node_count, np.int64)
        self._hold(np.stack([classes, requests, nodes]).astype(np.intp, copy=False))
        self.settle()
        self._sorted: tuple[IndexArray, IndexArray] | None = None
        self._indexed = False

    @cached_property
    def at(self) -> dict[str, int]:
        """Position by key."""
        return dict(zip(self.keys, range(len(self.keys)), strict=True))

    def settle(self) -> None:
        """Let the arrays be those of the pods that run now."""
        self.classes, self.requests, self.nodes = self._rows[:, : len(self.keys)]

    def sizes(self, classes: int) -> list[int]:
        """The number of pods of each class."""
        if self._indexed:
            return [len(mine) for mine in self.members]
        sizes: list[int] = np.bincount(self.classes, minlength=classes).tolist()
        return sizes

    def of_class(self, cls: int) -> IndexArray:
        """The pods of a class."""
        if self._indexed:
            mine = self.members[cls]
            return np.fromiter(mine, np.intp, len(mine))
        if self._sorted is None:
            order: IndexArray = np.argsort(self.classes, kind="stable")
            last = int(self.classes[order[-1]]) if len(order) else -1
            self._sorted = order, np.searchsorted(self.classes[order], np.arange(last + 2))
        order, offsets = self._sorted
        return order[offsets[cls] : offsets[cls + 1]] if cls + 1 < len(offsets) else order[:0]

    def of_node(self, node: int) -> Collection[int]:
        """The pods of a node."""
        if self._indexed:
            return self.on_node[node]
        found: list[int] = np.flatnonzero(self.nodes == node).tolist()
        return found

    # --------------------------------------------------------------------------------------------------- following
    def index(self, classes: int) -> None:
        """Be ready for pods that come and go."""
        if self._indexed:
            return
        self._indexed, self._sorted = True, None
        self.members, self.on_node = [set() for _ in range(classes)], [set() for _ in self.changed]
        for at, cls, node in zip(self.at.values(), self.classes.tolist(), self.nodes.tolist(), strict=True):
            self.members[cls].add(at)
            self.on_node[node].add(at)

    def add_class(self) -> None:
        """There is one more class."""
        self.members.append(set())

    def add(self, key: str, cls: int, request: int, node: int) -> None:
        """A pod runs."""
        at = len(self.keys)
        if at == self._rows.shape[1]:
            self._hold(np.concatenate([self._rows, np.zeros((3, max(at, _GROWTH)), np.intp)], axis=1))
        self.class_at[at], self.request_at[at], self.node_at[at] = cls, request, node
        self.keys.append(key)
        self._enter(key, at)
        self.touch(node)

    def remove(self, key: str) -> None:
        """A pod runs no more; the last one takes its position."""
        at, last = self.at.pop(key), len(self.keys) - 1
        self.touch(self.node_at[at])
        self._leave(at)
        moved = self.keys.pop()
        if at != last:
            self._leave(last)
            self.keys[at] = moved
            for numbers in (self.class_at, self.request_at, self.node_at):
                numbers[at] = numbers[last]
            self._enter(moved, at)

    def touch(self, node: int) -> None:
        """Something about a node or its pods has changed."""
        self._changes += 1
        self.changed[node] = self._changes

    def shift(self, shift: Shift) -> None:
        """Nodes went, without pods, and came."""
        moved, size = shift.positions(len(self.on_node)), len(self.keys)
        shift.list(self.on_node, (set() for _ in shift.come))
        self._rows[2, :size] = moved.take(self._rows[2, :size])  # a third quicker than moved[…]
        self.changed = shift.array(self.changed)

    def _hold(self, rows: "np.ndarray[tuple[int, ...], np.dtype[np.intp]]") -> None:
        self._rows = rows
        self.class_at, self.request_at, self.node_at = (row.data for row in rows)

    def _enter(self, key: str, at: int) -> None:
        self.at[key] = at
        self.members[self.class_at[at]].add(at)
        self.on_node[self.node_at[at]].add(at)

    def _leave(self, at: int) -> None:
        self.members[self.class_at[at]].discard(at)
        self.on_node[self.node_at[at]].discard(at)
