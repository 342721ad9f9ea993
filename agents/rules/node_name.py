"""NodeName: a pod that names its node fits no other.

Pending pods name none. A pod bound to a node that the input lacks fits nowhere, and this rule says so.
"""

import numpy as np

from underhost.agents.engine.classes import PodClass
from underhost.agents.engine.domains import Where
from underhost.agents.engine.requests import Request
from underhost.agents.engine.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.engine.state import State

NAME = "NodeName"
WEIGHT = 0
REASON_OTHER_NODE = "node(s) didn't match the requested node name"


class _NodeName(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_OTHER_NODE,)),)

    def __init__(self, size: int) -> None:
        self._codes = np.ones(size, np.int8)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None but for pods that name a node which is not there."""
    return _NodeName(len(state.model.nodes)) if cls.node_name else None
