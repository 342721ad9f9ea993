"""What changes while pods are placed: what each node holds, and the counters of the rules.

In: a `Model`. Out: a `State` that starts with the running pods and counts every pod that is added. The model
stays as it is, so that many states can start from one; the state of a followed site changes with its model (`run`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.counters import Counter, Weights
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray
from underhost.agents.compiled.memo import Depends, Memo
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.nodes import IntArray, Shift
from underhost.agents.site.selectors import Selector

_FEW = 24  # classes up to which a counter is filled class by class rather than in one pass over all pods
_MANY = 8  # equal pods from which they are counted in one pass


Added = tuple[int, int, int]
"""A pod that comes to a node, by class and request: (class, request, node)."""


class _EqualPods(NamedTuple):
    """Equal pods that come to these nodes, or (sign -1) go from them."""

    cls: int
    request: int
    nodes: Sequence[int]
    sign: int


class Tally(Protocol):
    """Who is told of pods that come and go; a `Counter` is one."""

    def add(self, cls: int, node: int, sign: int = 1) -> None:
        """One pod of a class is on the node; with sign -1 it is there no more."""


class State:
    """The load of the nodes and the counters.

    Attributes:
        used: int64[R, N], requested resources. nonzero: int64[2, N], cpu and memory in the scores' eyes.
        pods: int64[N], number of pods.
        log: the nodes whose load changed, in order: what is derived from the load is replayed from here.
        memo: what rules derive from the model alone.
        nominating: (class, node) of nominated pods that are counted for the moment.
        generation: grows whenever all counters are dropped: rules that were prepared before are of no use.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.pods: IntArray
        self.used: IntArray
        self.nonzero: IntArray
        self.log: list[int] = []
        self._counters: dict[object, Counter] = {}
        self._weights: dict[tuple[tuple[int, int], ...], Weights] = {}
        self._touched: defaultdict[int, list[Tally]] = defaultdict(list)
        self._changes: defaultdict[int, list[_EqualPods]] = defaultdict(list)
        self._selected: dict[tuple[int, bool], Weights] = {}
        self.memo = Memo()
        self.nominating: list[tuple[int, int]] = []
        self._tried: list[_EqualPods] | None = None
        self.generation = 0
        self._fill()

    def _fill(self) -> None:
        """The running pods' load."""
        model, running, size = self.model, self.model.running, len(self.model.nodes)
        self.pods = np.bincount(running.nodes, minlength=size).astype(np.int64)
        self.used = np.zeros((len(model.nodes.resources), size), np.int64)
        self.nonzero = np.zeros((2, size), np.int64)
        if not len(running.keys):
            return
        held = np.zeros((len(model.nodes.resources), len(model.requests)), np.int64)
        nonzero = np.zeros((2, len(model.requests)), np.int64)
        for request in model.requests:
            for name, amount in request.held.items():
                row = model.nodes.row(name)
                if row >= 0:
                    held[row, request.id] = amount
            nonzero[:, request.id] = request.held_nonzero
        for source, target in ((held, self.used), (nonzero, self.nonzero)):
            for row in range(len(source)):
                if source[row].any():
                    np.add.at(target[row], running.nodes, source[row][running.requests])

    def add(self, cls: int, request: int, node: int, sign: int = 1) -> None:
        """A pod comes to a node, and is not among the model's running pods; with sign -1 it goes."""
        self._put(_EqualPods(cls, request, (node,), sign))

    def add_all(self, pods: Iterable[Added]) -> None:
        """As `add` of each: equal pods are counted in one pass."""
        equal: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for cls, request, node in pods:
            equal[cls, request].append(node)
        for (cls, request), nodes in equal.items():
            self._put(_EqualPods(cls, request, nodes, 1))

    def _put(self, group: _EqualPods) -> None:
        self._count_group(group)
        self.log += group.nodes
        self._changes[group.cls].append(group)
        if self._tried is not None:
            self._tried.append(group)

    def _count_group(self, group: _EqualPods) -> None:
        cls, request, nodes, sign = group
        if len(nodes) < _MANY:
            for node in nodes:
                self._count(cls, request, node, sign)
            return
        at: IndexArray = np.array(nodes, np.intp)
        self._load_many(request, at, sign)
        for tally in self._touched[cls]:
            if isinstance(tally, Counter):
                tally.fill(at, sign * tally.weight[cls])
            else:
                for node in nodes:
                    tally.add(cls, node, sign)

    def _load_many(self, request: int, nodes: IndexArray, sign: int) -> None:
        wanted = self.model.requests[request]
        for name, amount in wanted.held.items():
            row = self.model.nodes.row(name)
            if row >= 0:
                np.add.at(self.used[row], nodes, sign * amount)
        for row, amount in enumerate(wanted.held_nonzero):
            np.add.at(self.nonzero[row], nodes, sign * amount)
        np.add.at(self.pods, nodes, sign)

    def _count(self, cls: int, request: int, node: int, sign: int) -> None:
        self._load(request, node, sign)
        for counter in self._touched[cls]:
            counter.add(cls, node, sign)

    def _load(self, request: int, node: int, sign: int) -> None:
        model = self.model
        wanted = model.requests[request]
        for name, amount in wanted.held.items():
            row = model.nodes.row(name)
            if row >= 0:
                self.used[row, node] += sign * amount
        cpu, memory = wanted.held_nonzero
        self.nonzero[0, node] += sign * cpu
        self.nonzero[1, node] += sign * memory
        self.pods[node] += sign

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is added meanwhile is only thought of: at the end it is taken back."""
        self._tried, clean = [], not self._changes
        try:
            yield
        finally:
            tried, self._tried = self._tried, None
            for group in tried:
                back = group._replace(sign=-group.sign)
                if clean:
                    self._count_group(back)
                else:
                    self._put(back)
            if clean:
                self.log.clear()
                self._changes.clear()

    def counter(
        self, domains: Domains, weights: Weights, mask: BoolArray | None = None, mask_key: object = None
    ) -> Counter:
        """The counter of these classes per domain, shared with whoever asks for the same.

        `mask_key` must tell apart masks that differ.
        """
        key = (id(domains), id(weights), mask_key)  # both live as long as the state
        found = self._counters.get(key)
        if found is None:
            found = self._counters[key] = Counter(domains, weights, mask)
            self._count_running(found, weights.by_class)
            for cls in weights.by_class:
                self._touched[cls].append(found)
                self._replay(found, cls)
        return found

    def weights(self, by_class: Mapping[int, int]) -> Weights:
        """The weights with this content, one object for all who ask."""
        key = tuple(sorted(by_class.items()))
        found = self._weights.get(key)
        if found is None:
            found = self._weights[key] = Weights(dict(key))
        return found

    def selected(self, selector: Selector, live: bool = False) -> Weights:
        """Weight 1 for every class that the selector matches; with `live` without those that are being deleted."""
        key = (selector.id, live)
        found = self._selected.get(key)
        if found is None:
            classes = self.model.classes
            found = self.weights({cls: 1 for cls in selector.classes if classes[cls].live or not live})
            self._selected[key] = found
        return found

    def follow(self, tally: "Tally", classes: Iterable[int]) -> None:
        """`tally.add` is told of the pods of these classes: those that are there, and who comes or goes later."""
        nodes = self.model.running.nodes
        for cls in classes:
            for node in nodes[self.model.pods_of(cls)].tolist():
                tally.add(cls, node)
            self._replay(tally, cls)
            self._touched[cls].append(tally)

    def _replay(self, tally: Tally, cls: int) -> None:
        for group in self._changes.get(cls, ()):
            for node in group.nodes:
                tally.add(cls, node, group.sign)

    def _count_running(self, counter: Counter, weights: Mapping[int, int]) -> None:
        model = self.model
        if len(weights) <= _FEW:
            for cls, weight in weights.items():
                pods = model.pods_of(cls)
                if len(pods):
                    counter.fill(model.running.nodes[pods], weight)
            return
        by_class = np.zeros(len(model.classes), np.int64)
        by_class[list(weights)] = list(weights.values())
        each = by_class[model.running.classes]
        chosen: IndexArray = np.flatnonzero(each)
        counter.fill(model.running.nodes[chosen], each[chosen])

    # --------------------------------------------------------------------------------------------------- following
    def run(self, cls: int, request: int, node: int, sign: int = 1) -> None:
        """A pod runs on a node, or (sign -1) no more: the model's running pods say so already."""
        self._count(cls, request, node, sign)

    def shift(self, shift: Shift) -> None:
        """Nodes went, without pods, and came."""
        self.pods, self.used, self.nonzero = map(shift.array, (self.pods, self.used, self.nonzero))

    def forget_nodes(self) -> None:
        """Nodes have changed: what is derived from their labels and taints, and counters, are made anew when asked for.

        Where they have resources that no node had, the load is counted anew.
        """
        self._forget_counters(Depends.NODES)
        if len(self.used) < len(self.model.nodes.resources):
            self._fill()

    def forget_images(self) -> None:
        """Nodes have other images."""
        self.memo.forget(Depends.IMAGES)

    def forget_classes(self) -> None:
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
