"""Whom a pod concerns: which separations, spreads and affinities its coming or going can make true or false.

In: the classes of a live model, as they grow. Out: a `Concern` per class. Knows no pod.
"""

from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass
from underhost.agents.rules.separation import Separation, SeparationId, separation_ids, separation_of, sides_of
from underhost.agents.site.selectors import SelectorTable


class Concern(NamedTuple):
    """What pods of one class take part in.

    `apart`: separations, on either side. `spread`: classes whose hard spread counts them, `near`: classes whose
    required affinity may be met by them; the class itself is in these if it has such terms.
    """

    apart: tuple[SeparationId, ...]
    spread: frozenset[int]
    near: frozenset[int]


class Relations:
    """The concerns of all classes, each made when it is first asked for."""

    def __init__(self, selectors: SelectorTable) -> None:
        self._selectors = selectors
        self._concerns: dict[int, Concern] = {}
        self._separations: dict[SeparationId, Separation] = {}

    def forget(self) -> None:
        """A class is new; its selectors and those of others are matched already."""
        self._concerns.clear()
        self._separations.clear()

    def of(self, cls: PodClass) -> Concern:
        """What the pods of a class take part in."""
        found = self._concerns.get(cls.id)
        if found is None:
            counting = [ids for selector in cls.selectors for ids in selector.spread.values()]
            wanting = [ids for selector in cls.selectors for ids in selector.near.values()]
            found = self._concerns[cls.id] = Concern(
                apart=tuple(side.id for side in sides_of(cls)),
                spread=frozenset({cls.id} if cls.hard else ()).union(*counting),
                near=frozenset({cls.id} if cls.required_affinity else ()).union(*wanting),
            )
        return found

    def separation(self, at: SeparationId) -> Separation:
        """Its two sides, as they are now."""
        found = self._separations.get(at)
        if found is None:
            found = self._separations[at] = separation_of(self._selectors, at)
        return found

    def every(self) -> list[SeparationId]:
        """All separations."""
        return separation_ids(self._selectors)
