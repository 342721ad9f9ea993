"""NodePorts: a host port is taken once per node, protocol and host IP; 0.0.0.0 stands for every IP."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass, Port
from underhost.agents.compiled.counters import Counter
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNSCHEDULABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "NodePorts"
WEIGHT = 0
REASON_PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
_ANY_IP = "0.0.0.0"


class _NodePorts(Prepared):
    refusals = (Refusal(UNSCHEDULABLE, (REASON_PORTS_TAKEN,)),)

    def __init__(self, cls: PodClass, counter: Counter) -> None:
        self._cls, self._ports, self._counter = cls.id, cls.ports, counter

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        if not self._counter.any():
            return None
        counts = self._counter.at(nodes)
        if out:
            counts = counts - self._counter.share(self._cls, nodes)
        return (counts > 0).astype(np.int8)

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """The ports in the way as the pods on the node hold them."""
        for one in there.counted(self._counter, node):
            held = there.model.classes[one.cls].ports
            for ip, protocol, port in (port for port in held if any(clash(port, mine) for mine in self._ports)):
                yield Because(port=f"{ip}/{port}/{protocol}", pod=one.pod)


def clash(one: Port, other: Port) -> bool:
    """Whether one node cannot have both: the same port and protocol, and IPs of which neither leaves the other free."""
    return one[1:] == other[1:] and (_ANY_IP in (one[0], other[0]) or one[0] == other[0])


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without host ports."""
    if not cls.ports:
        return None
    by_port = state.memo.remember(NAME, Depends.CLASSES, lambda: _classes_by_port(state))
    rivals = {rival for port in cls.ports for rival, held in by_port[port[1:]] if clash(port, held)}
    weights = state.weights(dict.fromkeys(rivals, 1))
    return _NodePorts(cls, state.counter(state.model.topology.each_node, weights))


def _classes_by_port(state: State) -> "defaultdict[tuple[str, int], list[tuple[int, Port]]]":
    """By protocol and port, the classes that hold it and how."""
    found: defaultdict[tuple[str, int], list[tuple[int, Port]]] = defaultdict(list)
    for cls in state.model.classes:
        for port in cls.ports:
            found[port[1:]].append((cls.id, port))
    return found
