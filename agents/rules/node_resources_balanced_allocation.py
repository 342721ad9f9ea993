"""NodeResourcesBalancedAllocation: prefers the node on which the pod evens out cpu and memory.

Source: noderesources/balanced_allocation.go of 1.36, which scores the change and no longer the outcome.
"""

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray, Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import MAX_SCORE, Prepared
from underhost.agents.site.requests import Request

NAME = "NodeResourcesBalancedAllocation"
WEIGHT = 1
_HALF = MAX_SCORE // 2


class _Balanced(Prepared):
    node_local = True

    def __init__(self, state: State) -> None:
        self._state = state

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """None for pods that request neither cpu nor memory."""
        return balance(self._state, request, nodes) if any(request.balanced) else None

    def at(self, request: Request, node: int) -> tuple[bool, int]:
        cpu, memory = request.balanced
        if not cpu and not memory:
            return True, 0
        state, allocatable = self._state, self._state.model.nodes.allocatable
        cores, size = allocatable.item(0, node), allocatable.item(1, node)
        if cores <= 0 or size <= 0:
            return True, _HALF + _HALF // 2
        used_cpu, used_memory = state.used.item(0, node), state.used.item(1, node)
        after = _balance_of((used_cpu + cpu) / cores, (used_memory + memory) / size)
        return True, _HALF + (_HALF + after - _balance_of(used_cpu / cores, used_memory / size)) // 2


def balance(state: State, request: Request, nodes: Where) -> IntArray:
    """int64[k]: 50 + (50 + balance with the pod − balance without it) / 2, each balance in [50, 100]."""
    change = _balance(state, request.balanced, nodes) - _balance(state, (0, 0), nodes)
    return _HALF + (_HALF + change) // 2


def _balance_of(cpu: float, memory: float) -> int:
    """(1 − |cpu fraction − memory fraction| / 2) · 100, truncated."""
    return int((1 - abs((min(cpu, 1.0) - min(memory, 1.0)) / 2)) * float(MAX_SCORE))


def _balance(state: State, more: tuple[int, int], nodes: Where) -> IntArray:
    """int64[k]: (1 − |cpu fraction − memory fraction| / 2) · 100, truncated; 100 where a node lacks cpu or memory."""
    fractions: list[npt.NDArray[np.float64]] = []
    some = np.ones(len(state.pods), bool)[nodes]
    for row, amount in enumerate(more):
        capacity = state.model.nodes.allocatable[row][nodes]
        some &= capacity > 0
        fractions.append(np.minimum((state.used[row][nodes] + amount) / np.maximum(capacity, 1), 1.0))
    deviation = np.where(some, np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    balanced: IntArray = ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)
    return balanced


def prepare(state: State, cls: PodClass) -> Prepared:
    """Never None; pods without requests are left unscored by `score`."""
    return state.memo.remember(NAME, Depends.NOTHING, lambda: _Balanced(state))
