"""Who runs where, by name: the pods behind the numbers of counters, for whoever asks why a node is refused.

In: a state, and the pods that are thought to come or to be away. Out: names. Nobody asks while pods are placed.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from underhost.agents.compiled.counters import Counter
from underhost.agents.compiled.domains import BoolArray, Domains
from underhost.agents.compiled.model import Model

MOST = 10
"""Pods that are named of one domain: a zone may hold thousands."""


class Occupant(NamedTuple):
    """A pod and where it is, by position."""

    pod: str
    cls: int
    node: int


class Occupants:
    """The pods of a model, without those of the names `away`, with others that `joined`.

    Good for as long as no pod comes or goes.
    """

    def __init__(self, model: Model, away: Collection[str] = (), joined: Iterable[Occupant] = ()) -> None:
        self.model = model
        self._away, self._joined = frozenset(away), tuple(joined)
        self._known: dict[object, tuple[BoolArray | None, dict[int, list[Occupant]]]] = {}  # with the mask of the key

    def joined_by(self, joined: Iterable[Occupant]) -> "Occupants":
        """The same with these pods."""
        return Occupants(self.model, self._away, (*self._joined, *joined))

    def counted(self, counter: Counter, node: int) -> list[Occupant]:
        """The pods that the counter counts in the node's domain, by name; none where the node lacks the key."""
        return self.of(counter.weight, counter.domains, node, counter.mask)

    def of(
        self, classes: Collection[int], domains: Domains, node: int, mask: BoolArray | None = None
    ) -> list[Occupant]:
        """The pods of these classes in the node's domain, by name; `mask`: bool[N], the nodes whose pods count."""
        code = domains.code_list[node]
        if code < 0:
            return []
        key = (tuple(sorted(classes)), domains, id(mask))
        if key not in self._known:
            self._known[key] = mask, self._grouped(key[0], domains, mask)
        return self._known[key][1].get(code, [])

    def anywhere(self, classes: Collection[int]) -> list[Occupant]:
        """The pods of these classes, by name."""
        here = (one for cls in classes for one in self._running(cls) if one.pod not in self._away)
        return sorted([*here, *(one for one in self._joined if one.cls in classes)])

    def _grouped(self, classes: Sequence[int], domains: Domains, mask: BoolArray | None) -> dict[int, list[Occupant]]:
        """By domain, each sorted by name."""
        grouped: dict[int, list[Occupant]] = {}
        for one in self.anywhere(classes):
            code = domains.code_list[one.node]
            if code >= 0 and (mask is None or mask[one.node]):
                grouped.setdefault(code, []).append(one)
        return grouped

    def _running(self, cls: int) -> list[Occupant]:
        model = self.model
        at = model.pods_of(cls)
        nodes = model.running.nodes[at]
        return [
            Occupant(model.running.keys[one], cls, node) for one, node in zip(at.tolist(), nodes.tolist(), strict=True)
        ]


def first(occupants: Iterable[Occupant]) -> list[Occupant]:
    """As many as are named."""
    return list(islice(occupants, MOST))
