"""NodeResourcesFit: the node has room for one more pod and for what it requests; the emptier node scores higher.

All missing resources are reasons at once. A request that exceeds the node's allocatable can never fit: unresolvable.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray, Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import MAX_SCORE, UNRESOLVABLE, UNSCHEDULABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import BASE_RESOURCES, PODS, Request, amount_written
from underhost.schemas.documents import Because

NAME = "NodeResourcesFit"
WEIGHT = 1
REASON_TOO_MANY_PODS = "Too many pods"
REASON_INSUFFICIENT = "Insufficient {}"


class NodeResourcesFit(Prepared):
    """Room on nodes; the same for every class of pods."""

    node_local = True

    def __init__(self, state: State) -> None:
        self._state = state

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        state = self._state
        refused = state.pods[nodes] + (0 if out else 1) > state.model.nodes.pods_allowed[nodes]
        for name, amount in request.fit.items():
            refused |= amount > self._free(name, request, nodes, out)
        return refused.astype(np.int8) if refused.any() else None

    def _free(self, name: str, request: Request, nodes: Where, out: bool) -> IntArray:
        """allocatable − requested by the pods that are there"""
        row = self._state.model.nodes.row(name)
        if row < 0:
            return np.zeros(len(self._state.pods), np.int64)[nodes]
        free: IntArray = self._state.model.nodes.allocatable[row][nodes] - self._state.used[row][nodes]
        return free + request.held.get(name, 0) if out else free

    def has_room(self, request: Request, node: int, out: bool = False) -> bool:
        """What `refuse` says of one node: numbers that are read one by one are quicker than arrays of one."""
        state, nodes = self._state, self._state.model.nodes
        if state.pods.item(node) + (0 if out else 1) > nodes.pods_allowed.item(node):
            return False
        for name, amount in request.fit.items():
            row = nodes.row(name)
            free = nodes.allocatable.item(row, node) - state.used.item(row, node) if row >= 0 else 0
            if amount > (free + request.held.get(name, 0) if out else free):
                return False
        return True

    def at(self, request: Request, node: int) -> tuple[bool, int]:
        state, nodes = self._state, self._state.model.nodes
        good = self.has_room(request, node)
        total = weight = 0
        for row in (0, 1):
            capacity = nodes.allocatable.item(row, node)
            if capacity > 0:
                weight += 1
                free = capacity - state.nonzero.item(row, node) - request.least[row]
                if free >= 0:
                    total += free * MAX_SCORE // capacity
        return good, total // weight if weight else 0

    def explain(self, code: int, request: Request, node: int, out: bool = False) -> Refusal:
        at = np.array([node], np.intp)
        model_nodes = self._state.model.nodes
        reasons, unresolvable = [], False
        if self._state.pods[node] + (0 if out else 1) > model_nodes.pods_allowed[node]:
            reasons.append(REASON_TOO_MANY_PODS)
        for name, amount in _in_order(request):
            if amount > int(self._free(name, request, at, out)[0]):
                reasons.append(REASON_INSUFFICIENT.format(name))
                row = model_nodes.row(name)
                unresolvable |= row < 0 or amount > int(model_nodes.allocatable[row, node])
        return Refusal(UNRESOLVABLE if unresolvable else UNSCHEDULABLE, tuple(reasons))

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        nodes = self._state.model.nodes
        allowed, pods = int(nodes.pods_allowed[node]), int(self._state.pods[node])
        if pods + 1 > allowed:
            yield Because(resource=PODS, asked="1", free=str(allowed - pods), allocatable=str(allowed))
        for name, amount in _in_order(request):
            row = nodes.row(name)
            there_is = nodes.allocatable.item(row, node) if row >= 0 else 0
            free = there_is - self._state.used.item(row, node) if row >= 0 else 0
            if amount > free:
                asked, left, all_ = (amount_written(name, one) for one in (amount, free, there_is))
                yield Because(resource=name, asked=asked, free=left, allocatable=all_)

    def tally(self, codes: CodeArray, request: Request, nodes: IndexArray) -> dict[str, int]:
        state = self._state
        found = {REASON_TOO_MANY_PODS: int((state.pods[nodes] + 1 > state.model.nodes.pods_allowed[nodes]).sum())}
        for name, amount in _in_order(request):
            short = amount > self._free(name, request, nodes, False)
            found[REASON_INSUFFICIENT.format(name)] = int(short.sum())
        return {reason: count for reason, count in found.items() if count}

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        return least_allocated(self._state, request, nodes)


def _in_order(request: Request) -> list[tuple[str, int]]:
    """cpu, memory, ephemeral storage, then the others by name (upstream: in the order of a Go map)."""
    fit = request.fit
    base = [(name, fit[name]) for name in BASE_RESOURCES if name in fit]
    return base + sorted((name, amount) for name, amount in fit.items() if name not in BASE_RESOURCES)


def least_allocated(state: State, request: Request, nodes: Where) -> IntArray:
    """int64[k]: (cpu(free·100/allocatable) + memory(…)) / 2, integers throughout.

    A resource without capacity is left out. Requested amounts have defaults for containers that request nothing.
    """
    total: IntArray = np.zeros(len(state.pods), np.int64)[nodes]
    weight: IntArray = np.zeros_like(total)
    for row, amount in enumerate(request.least):
        capacity = state.model.nodes.allocatable[row][nodes]
        free = capacity - state.nonzero[row][nodes] - amount
        some = capacity > 0
        total += np.where(some & (free >= 0), free * MAX_SCORE // np.maximum(capacity, 1), 0)
        weight += some
    scores: IntArray = total // np.maximum(weight, 1)
    return scores


def prepare(state: State, cls: PodClass) -> NodeResourcesFit:
    """Never None: every pod takes room."""
    return state.memo.remember(NAME, Depends.NOTHING, lambda: NodeResourcesFit(state))
