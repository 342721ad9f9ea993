"""NodeName: a pod that names its node fits no other.

Pending pods name none. A pod bound to a node that the input lacks fits nowhere, and this rule says so.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import IN, written
from underhost.agents.site.terms import NODE_NAME_FIELD
from underhost.schemas.documents import Because

NAME = "NodeName"
WEIGHT = 0
REASON_OTHER_NODE = "node(s) didn't match the requested node name"


class _NodeName(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_OTHER_NODE,)),)

    def __init__(self, names: list[str], wanted: str) -> None:
        self._names, self._wanted = names, wanted
        self._codes = np.ones(len(names), np.int8)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        yield Because(selector=written(((NODE_NAME_FIELD, IN, (self._wanted,)),)), has=self._names[node])


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None but for pods that name a node which is not there."""
    return _NodeName(state.model.nodes.names, cls.node_name) if cls.node_name else None
