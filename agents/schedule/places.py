"""Where a running pod would go if it were made anew: the nodes that no rule refuses, the best first.

In: a model, and pods that are taken out or moved in thought. Out: nodes. The pods that wait are older than one that is
yet to be made, so they are placed before it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.rules.prepared import ALL, Plan, Plans
from underhost.agents.rules.rule import ScoringError
from underhost.agents.rules.separation import Separation, separations
from underhost.agents.schedule.loop import Loop
from underhost.agents.schedule.nominations import Nominations


class Running(NamedTuple):
    """A running pod's class, request and node, as numbers of the model."""

    cls: int
    request: int
    node: int


class Places:
    """Places pods of one model again.

    `schedulers` are those that are there: pods of others wait for ever, and take nobody's place.
    """

    def __init__(self, model: Model, schedulers: Collection[str]) -> None:
        self.model = model
        self.state = State(model)
        self._plans = Plans(self.state)
        self._moved: dict[str, tuple[Running, Running]] = {}
        self._waiting = sorted(
            (pod for pod in model.pending if pod.scheduler in schedulers and not pod.terminating and not pod.gates),
            key=lambda pod: pod.queue_key,
        )

    def separations(self, classes: Collection[int]) -> list[Separation]:
        """What keeps pods of these classes apart from others."""
        return sorted({one for cls in classes for one in self._separations.get(cls, ())})

    @cached_property
    def _separations(self) -> Mapping[int, list[Separation]]:
        by_class: defaultdict[int, list[Separation]] = defaultdict(list)
        for one in separations(self.model.selectors):
            for cls in {*one.owners, *one.matched}:
                by_class[cls].append(one)
        return by_class

    def where(self, pod: str) -> Running:
        """A running pod as it is by now."""
        if pod in self._moved:
            return self._moved[pod][1]
        at = self.model.running_at[pod]
        running = self.model.running
        return Running(int(running.classes[at]), int(running.requests[at]), int(running.nodes[at]))

    def move(self, pod: str, node: int) -> None:
        """From now on the pod counts as running on another node."""
        was = self.where(pod)
        first, _ = self._moved.get(pod, (was, was))
        self._moved[pod] = first, was._replace(node=node)
        _move(self.state, was, node)

    def best(self, key: str) -> list[int]:
        """The feasible nodes for the pod, itself taken out: fewest physical conflicts, highest total, smallest name."""
        pod = self.where(key)
        if self._waiting:
            state = State(self.model)
            for was, now in self._moved.values():
                _move(state, was, now.node)
            state.add(pod.cls, pod.request, pod.node, -1)
            _place(state, self._waiting)
            return _ranked(state, Plans(state).of(pod.cls), pod.request)
        self.state.add(pod.cls, pod.request, pod.node, -1)
        try:
            return _ranked(self.state, self._plans.of(pod.cls), pod.request)
        finally:
            self.state.add(pod.cls, pod.request, pod.node)


def _move(state: State, pod: Running, node: int) -> None:
    state.add(pod.cls, pod.request, pod.node, -1)
    state.add(pod.cls, pod.request, node)


def _place(state: State, pods: Iterable[PendingPod]) -> None:
    queue = list(pods)
    loop = Loop(state, Nominations(state, queue))
    for pod in queue:
        loop.place(pod)


def _ranked(state: State, plan: Plan, request: int) -> list[int]:
    wanted = state.model.requests[request]
    good = np.ones(len(state.model.nodes), bool)
    for named in plan.rules:
        codes = named.prepared.refuse(wanted, ALL)
        if codes is not None:
            good &= codes == 0
    nodes: IndexArray = np.flatnonzero(good)
    if not len(nodes):
        return []
    try:
        totals = plan.total(wanted, nodes)
    except ScoringError:  # upstream does not score the only feasible node
        return nodes.tolist() if len(nodes) == 1 else []
    conflicts = plan.conflicts(nodes)
    order = np.lexsort((-totals,) if conflicts is None else (-totals, conflicts))
    ranked: list[int] = nodes[order].tolist()
    return ranked
