"""Whose rule is it: how far the terms of one namespace's pods reach where something is done about them.

In: the classes of a site, and the setting `crossNamespace`. Out: of what must be apart or together, the part that is
acted upon. With `report` no term evicts a pod, closes a host to it or binds its VM by a DRS rule where the pod is of
another namespace than the one that carries the term: whoever may only create pods would move those of others. Whatever
is set, upstream's own rules follow such terms, and findings tell of them.
"""

from collections.abc import Collection, Iterable, Sequence

from underhost.agents.affinity.gathering import Gathering
from underhost.agents.affinity.separation import Separation, Side
from underhost.agents.compiled.classes import PodClass
from underhost.agents.site.selectors import Selector
from underhost.agents.site.snapshot import Options

ACT = "act"


class TermReach:
    """How far the terms of these classes reach; the classes may still grow."""

    def __init__(self, classes: Sequence[PodClass], options: Options) -> None:
        self._classes, self._everywhere = classes, options.cross_namespace == ACT

    def holds(self, owner: int, other: int) -> bool:
        """Whether a term that pods of class `owner` carry is followed against pods of class `other`."""
        return self._everywhere or self._classes[owner].namespace == self._classes[other].namespace

    def keeps_within(self, cls: PodClass, selectors: Iterable[Selector | None]) -> bool:
        """Whether what a class asks for by these selectors is followed as a whole: they name its namespace alone."""
        return self._everywhere or all(
            one is None or one.namespaces == frozenset((cls.namespace,)) for one in selectors
        )

    def theirs(self, cls: PodClass, side: Side) -> Collection[int]:
        """The classes whose term keeps pods of `cls` away, as far as it reaches."""
        return side.theirs if self._everywhere or side.namespace == cls.namespace else ()

    def separations(self, apart: Iterable[Separation]) -> list[Separation]:
        """What must be apart, namespace by namespace, sorted."""
        if self._everywhere:
            return sorted(apart)
        return sorted({part for one in apart if (part := self._within(one)).matched})

    def gatherings(self, near: Iterable[Gathering]) -> list[Gathering]:
        """What must be together: with pods of the namespace that asks for it."""
        held = (
            one._replace(matched=tuple(other for other in one.matched if self.holds(one.owner, other))) for one in near
        )
        return [one for one in held if one.matched]

    def _within(self, one: Separation) -> Separation:
        return one._replace(matched=tuple(other for other in one.matched if self.holds(one.owners[0], other)))
