"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of the cordon.

The field `spec.unschedulable` is judged here; the taint that usually comes with it is TaintToleration's.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site import terms
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "NodeUnschedulable"
WEIGHT = 0
REASON_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINT = "node.kubernetes.io/unschedulable"


class _NodeUnschedulable(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_UNSCHEDULABLE,)),)

    def __init__(self, codes: CodeArray) -> None:
        self._codes = codes

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        yield Because(taint=terms.written(terms.Taint(_TAINT, terms.NO_SCHEDULE)))


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None where no node is cordoned, or the pods tolerate it."""
    cordoned = state.model.nodes.unschedulable
    if not cordoned.any() or terms.tolerates(cls.tolerations, _TAINT, "", terms.NO_SCHEDULE):
        return None
    return _NodeUnschedulable(cordoned.astype(np.int8))
