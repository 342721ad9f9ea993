"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of the cordon.

The field `spec.unschedulable` is judged here; the taint that usually comes with it is TaintToleration's.
"""

import numpy as np

from underhost.agents.engine import terms
from underhost.agents.engine.classes import PodClass
from underhost.agents.engine.domains import Where
from underhost.agents.engine.requests import Request
from underhost.agents.engine.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.engine.state import State

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


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None where no node is cordoned, or the pods tolerate it."""
    cordoned = state.model.nodes.unschedulable
    if not cordoned.any() or terms.tolerates(cls.tolerations, _TAINT, "", terms.NO_SCHEDULE):
        return None
    return _NodeUnschedulable(cordoned.astype(np.int8))
