"""NodeName: a pod that names its node fits no other.

Pending pods name none. A pod bound to a node that the input lacks fits nowhere, and this rule says so.
"""

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request

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
