"""A state with a few pods more, or fewer, than it has: what would be if, without touching what is.

In: a state that others go on using, and pods as (class, node, +1 or -1). Out: a `State` whose counters hold them too.
Only counters are different: what the nodes' resources hold is as in the state below.
"""

from collections.abc import Iterable
from typing import NamedTuple

from underhost.agents.compiled.counters import Counter, Weights
from underhost.agents.compiled.domains import BoolArray, Domains
from underhost.agents.compiled.state import State


class Moved(NamedTuple):
    """One pod of a class comes to a node (sign 1) or leaves it (sign -1)."""

    cls: int
    node: int
    sign: int = 1


class Overlay(State):
    """What `under` will be once these pods have moved; good for one question, until `under` changes."""

    def __init__(self, under: State, moved: Iterable[Moved]) -> None:
        self._under, self._moved = under, tuple(moved)
        self.model, self.memo, self.nominating = under.model, under.memo, under.nominating
        self.pods, self.used, self.nonzero, self.log = under.pods, under.used, under.nonzero, under.log
        self._weights, self._selected = under._weights, under._selected

    def counter(
        self, domains: Domains, weights: Weights, mask: BoolArray | None = None, mask_key: object = None
    ) -> Counter:
        """As in the state below; a copy where a pod that moved is counted."""
        found = self._under.counter(domains, weights, mask, mask_key)
        mine = [one for one in self._moved if one.cls in weights.by_class]
        if not mine:
            return found
        found = found.copy()
        for one in mine:
            found.add(one.cls, one.node, one.sign)
        return found
