"""Whom a pod concerns: which separations, spreads and affinities its coming or going can make true or false.

In: the classes of a live model, as they grow. Out: a `Concern` per class. Knows no pod.
"""

from collections import defaultdict
from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass
from underhost.agents.rules.separations import INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD, Separation
from underhost.agents.site.selectors import Selector


class At(NamedTuple):
    """A separation by what does not change while classes come: rule, topologyKey and the id of its selector."""

    rule: str
    key: str
    selector: int


class Concern(NamedTuple):
    """What pods of one class take part in.

    `apart`: separations, on either side. `spread`: classes whose hard spread counts them, `near`: classes whose
    required affinity may be met by them; the class itself is in these if it has such terms.
    """

    apart: tuple[At, ...]
    spread: frozenset[int]
    near: frozenset[int]


class Relations:
    """The terms of all classes, by the selector that they use."""

    def __init__(self) -> None:
        self._owners: defaultdict[At, list[int]] = defaultdict(list)
        self._by_selector: defaultdict[int, list[At]] = defaultdict(list)
        self._spread: defaultdict[int, set[int]] = defaultdict(set)
        self._near: defaultdict[int, set[int]] = defaultdict(set)
        self._selectors: dict[int, Selector] = {}
        self._concerns: dict[int, Concern] = {}
        self._separations: dict[At, Separation] = {}
        self.gathering: set[int] = set()

    def add(self, cls: PodClass) -> None:
        """A class is new; its selectors and those of others are matched already."""
        self._concerns.clear()
        self._separations.clear()
        for rule, terms in ((INTER_POD_AFFINITY, cls.required_anti), (POD_TOPOLOGY_SPREAD, cls.hard)):
            for term in terms:
                if term.selector is not None:
                    self._add_separation(At(rule, term.key, term.selector.id), term.selector, cls.id)
        for constraint in cls.hard:
            if constraint.selector is not None:
                self._spread[constraint.selector.id].add(cls.id)
        for wanted in cls.required_affinity:
            if wanted.selector is not None:
                self._near[wanted.selector.id].add(cls.id)
        if cls.required_affinity:
            self.gathering.add(cls.id)

    def _add_separation(self, at: At, selector: Selector, cls: int) -> None:
        owners = self._owners[at]
        if not owners:
            self._by_selector[selector.id].append(at)
            self._selectors[selector.id] = selector
        if cls not in owners[-1:]:
            owners.append(cls)

    def of(self, cls: PodClass) -> Concern:
        """What the pods of a class take part in."""
        found = self._concerns.get(cls.id)
        if found is None:
            ids = [selector.id for selector in cls.selectors]
            selected = {at for one in ids for at in self._by_selector.get(one, ())}
            owned = {
                At(rule, term.key, term.selector.id)
                for rule, terms in ((INTER_POD_AFFINITY, cls.required_anti), (POD_TOPOLOGY_SPREAD, cls.hard))
                for term in terms
                if term.selector is not None
            }
            found = self._concerns[cls.id] = Concern(
                apart=tuple(selected | owned),
                spread=frozenset().union(*(self._spread.get(at, ()) for at in ids), {cls.id} if cls.hard else ()),
                near=frozenset().union(
                    *(self._near.get(at, ()) for at in ids), {cls.id} if cls.required_affinity else ()
                ),
            )
        return found

    def separation(self, at: At) -> Separation:
        """Its two sides, as they are now."""
        found = self._separations.get(at)
        if found is None:
            owners = tuple(sorted(self._owners[at]))
            found = self._separations[at] = Separation(at.rule, at.key, owners, self._selectors[at.selector].classes)
        return found

    def every(self) -> list[At]:
        """All separations."""
        return list(self._owners)
