"""Which pods must be together: required affinity between pods, by label.

In: classes of equal pods. Out: who meets the required affinity of a class, and the `Gathering`s of a key. One single
pod must match all terms; upstream counts the pods that do, key by key.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass


class Gathering(NamedTuple):
    """Every pod of class `owner` must share the domain of `key` with one pod that all its terms select."""

    owner: int
    key: str
    matched: tuple[int, ...]


def mates_of(cls: PodClass) -> frozenset[int]:
    """The classes of which a single pod matches every required affinity term of the class; none without a term."""
    selected = [frozenset(term.selector.classes) if term.selector else frozenset() for term in cls.required_affinity]
    return frozenset.intersection(*selected) if selected else frozenset()


def gatherings(classes: Sequence[PodClass], keys: Iterable[str]) -> list[Gathering]:
    """The required affinities on one of `keys` that some pod meets, sorted."""
    wanted = frozenset(keys)
    found = set()
    for one in classes:
        key = next((term.key for term in one.required_affinity if term.key in wanted), None)
        if key is not None and (mates := mates_of(one)):
            found.add(Gathering(one.id, key, tuple(sorted(mates))))
    return sorted(found)
