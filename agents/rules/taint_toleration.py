"""TaintToleration: every NoSchedule and NoExecute taint of the node must be tolerated; PreferNoSchedule only scores."""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray, Where
from underhost.agents.compiled.matching import untolerated, untolerated_mask
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import MAX_SCORE, UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site import terms
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "TaintToleration"
WEIGHT = 3
REASON_UNTOLERATED = "node(s) had untolerated taint(s)"


class _TaintToleration(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_UNTOLERATED,)),)

    def __init__(self, state: State, cls: PodClass, codes: CodeArray | None, preferred: IntArray | None) -> None:
        self._nodes, self._tolerations = state.model.nodes, cls.tolerations
        self._codes, self._preferred = codes, preferred

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return None if self._codes is None else self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """Every taint that is not tolerated; upstream names none."""
        taints = self._nodes.taints[self._nodes.taint_list[node]]
        return (Because(taint=terms.written(one)) for one in untolerated(self._tolerations, taints))

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """100 − 100 · untolerated / most untolerated."""
        if self._preferred is None:
            return MAX_SCORE
        counts = self._preferred[nodes]
        most = int(counts.max())
        return MAX_SCORE if most == 0 else MAX_SCORE - MAX_SCORE * counts // most


def prepare(state: State, cls: PodClass) -> Prepared:
    """Never None: the rule scores every pod, with 100 where no taint is against it."""
    return state.memo.remember((NAME, cls.tolerations_key), Depends.NODES, lambda: _prepared(state, cls))


def _prepared(state: State, cls: PodClass) -> Prepared:
    mask = untolerated_mask(state, cls)
    return _TaintToleration(state, cls, None if mask is None else mask.astype(np.int8), _preferred(state, cls))


def _preferred(state: State, cls: PodClass) -> IntArray | None:
    """int64[N], untolerated PreferNoSchedule taints; None where there are none at all."""
    nodes = state.model.nodes
    counts = [
        sum(
            taint.effect == terms.PREFER_NO_SCHEDULE
            and not terms.tolerates(cls.tolerations, taint.key, taint.value or "", taint.effect)
            for taint in taints
        )
        for taints in nodes.taints
    ]
    return np.array(counts, np.int64)[nodes.taint_list] if any(counts) else None
