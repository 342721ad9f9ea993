"""Where a running pod would go if it were made anew: the nodes that no rule refuses, the best first.

In: a compiled site, and a pod that is taken out in thought. Out: nodes. The pods that wait are older than one that is
yet to be made, so they are placed before it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.separation import Separation, separations
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import ScoringError
from underhost.agents.schedule.loop import Loop
from underhost.agents.schedule.nominations import Nominations
from underhost.agents.schedule.prepared import ALL, Plan, Plans


class RunningPod(NamedTuple):
    """A running pod's class, request and node, as numbers of the model."""

    cls: int
    request: int
    node: int


class Landings(NamedTuple):
    """Where a pod may land whose scheduler chooses by itself.

    Attributes:
        best: the feasible nodes, as `Places.best` has them.
        kinds: one node for all those that differ in nothing that other pods count by: what its landing means for them
            is the same on each. The rules have asked what it means for the pod itself.
        is_safe: no host is shared on any of them.
    """

    best: list[int]
    kinds: list[int]
    is_safe: bool


class Places:
    """Places pods of one compiled site again.

    `schedulers` are those that are there: pods of others wait for ever, and take nobody's place.
    """

    def __init__(self, state: State, schedulers: Collection[str]) -> None:
        self.state, self.model = state, state.model
        self._waiting = sorted(
            (
                pod
                for pod in state.model.pending
                if pod.scheduler in schedulers and not pod.terminating and not pod.gates
            ),
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

    def where(self, pod: str) -> RunningPod:
        """A running pod."""
        at = self.model.running.at[pod]
        running = self.model.running
        return RunningPod(int(running.classes[at]), int(running.requests[at]), int(running.nodes[at]))

    def best(self, key: str) -> list[int]:
        """The feasible nodes for the pod, itself taken out: fewest physical conflicts, highest total, smallest name."""
        pod, state = self.where(key), self.state
        with state.trial():
            state.add(pod.cls, pod.request, pod.node, -1)
            _place(state, self._waiting)
            return _ranked(state, Plans(state).of(pod.cls), pod.request)

    def landings(self, key: str, mates: Iterable[str]) -> Landings:
        """The nodes that the pod's scheduler may choose for it, itself taken out.

        `mates` are the pods that must not be lost together with it: their number on a node of unknown host counts.
        """
        pod, state = self.where(key), self.state
        with state.trial():
            state.add(pod.cls, pod.request, pod.node, -1)
            _place(state, self._waiting)
            plan = Plans(state).of(pod.cls)
            ranked = _ranked(state, plan, pod.request)
            shared = plan.conflicts(np.array(ranked, np.intp)) if ranked else None
        seen: dict[tuple[int, ...], int] = {}
        for node, kind in zip(ranked, self._kinds(pod.cls, ranked, mates), strict=True):
            seen.setdefault(kind, node)
        own = [pod.node] if pod.node in ranked else []
        return Landings(ranked, list(dict.fromkeys([*seen.values(), *own])), shared is None or not shared.any())

    def _kinds(self, cls: int, nodes: Iterable[int], mates: Iterable[str]) -> Iterator[tuple[int, ...]]:
        """What other pods count by, of each node: where it is the same, a pod of the class means the same to them."""
        topology, running = self.model.topology, self.model.running
        selectors = self.model.classes[cls].selectors
        spread = {key for selector in selectors for key, _ in selector.spread}
        keys = sorted(spread | {key for key in self.model.options.host_keys if topology.is_host_key(key)})
        columns = [topology.of(key).code_list for key in keys]
        wanting: defaultdict[str, set[int]] = defaultdict(set)
        for selector in selectors:
            for key, ids in selector.near.items():
                wanting[key].update(ids)
        for key, classes in sorted(wanting.items()):
            # Where nobody wants such a pod near, one domain is as good as another.
            codes = topology.of(key).code_list
            wanted = {codes[running.node_at[at]] for one in classes for at in self.model.pods_of(one).tolist()}
            columns.append([code if code in wanted else -1 for code in codes])
        held = Counter(self.where(pod).node for pod in mates if pod in running.at)
        hosts = None if topology.hosts is None else topology.hosts.code_list
        for node in nodes:
            is_place = hosts is None or hosts[node] < 0
            yield *(codes[node] for codes in columns), held[node] if is_place else 0


def _place(state: State, pods: Iterable[PendingPod]) -> None:
    queue = list(pods)
    if queue:
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
