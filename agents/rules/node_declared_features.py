"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet fits only nodes that declare it.

Which features a pod needs is read with the pod (`compiled/reader.py`); a node declares its own in
`status.declaredFeatures`.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import IN, written
from underhost.schemas.documents import Because

NAME = "NodeDeclaredFeatures"
WEIGHT = 0
REASON_NOT_DECLARED = "node(s) didn't match Pod's required features"
_FIELD = "status.declaredFeatures"


class _NodeDeclaredFeatures(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_NOT_DECLARED,)),)

    def __init__(self, state: State, needed: tuple[str, ...]) -> None:
        self._declared, self._needed = state.model.nodes.features, needed
        self._codes: CodeArray = np.array([not one.issuperset(needed) for one in self._declared], np.int8)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        missing = (one for one in self._needed if one not in self._declared[node])
        return (Because(selector=written(((_FIELD, IN, (one,)),)), has=None) for one in missing)


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods that need no feature, as nearly all."""
    if not cls.features:
        return None
    key = (NAME, cls.features)
    return state.memo.remember(key, Depends.NODES, lambda: _NodeDeclaredFeatures(state, cls.features))
