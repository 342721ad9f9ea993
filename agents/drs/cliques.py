"""Covers the edges of a graph exactly by few cliques: a VM-VM anti-affinity rule keeps all its members apart.

In: adjacency as bit sets (bit i of row j: i and j must be apart). Out: bit sets of cliques whose pairs are the edges,
all of them and no other. A least cover is NP-hard, so this one is greedy: grow, cover, trim; it is deterministic for
equal input.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def clique_cover(adjacency: Sequence[int], seeds: Iterable[int] = ()) -> list[int]:
    """Cliques of at least two members that cover every edge and nothing else, sorted by their members.

    `adjacency` is symmetric and without loops. `seeds` are cliques that are known already (equal replicas that keep one
    another apart); they save the search, and wrong ones are ignored.
    """
    uncovered = list(adjacency)
    chosen: list[int] = []
    grown = {_grow(adjacency, seed) for seed in set(seeds) if _is_clique(adjacency, seed)}
    for clique in sorted(grown, key=lambda mask: (-mask.bit_count(), _members(mask))):
        if _take(uncovered, clique):
            chosen.append(clique)
    for vertex in range(len(uncovered)):
        while uncovered[vertex]:
            clique = _clique_from(adjacency, uncovered, vertex)
            _take(uncovered, clique)
            chosen.append(clique)
    return sorted(_trim(chosen), key=_members)


def split(
    clique: int,
    most: int,
    weight: Callable[[int], int] = lambda member: 0,
    place: Callable[[int], str] = str,
) -> list[int]:
    """The clique cut into disjoint parts of at most `most` members, parts of one left out.

    Disjoint parts can be kept all at once where the whole cannot, and still put as few members as possible together.
    Members of the most `weight` are kept apart first; of equal ones those whose `place` is another now, so that nobody
    moves without need.
    """
    left = sorted(bits(clique), key=lambda member: (-weight(member), member))
    parts: list[list[int]] = []
    while left:
        part, left = _part(left, max(1, most), weight, place)
        parts.append(part)
    return [sum(1 << member for member in part) for part in parts if len(part) > 1]


def _part(
    members: list[int], most: int, weight: Callable[[int], int], place: Callable[[int], str]
) -> tuple[list[int], list[int]]:
    """The first part of these members, the heaviest first, and those that are left."""
    part: list[int] = []
    left: list[int] = []
    taken = set[str]()
    for _, alike in groupby(members, key=weight):
        others = []
        for member in alike:
            if len(part) < most and place(member) not in taken:
                part.append(member)
                taken.add(place(member))
            else:
                others.append(member)
        room = most - len(part)
        part += others[:room]
        taken.update(map(place, others[:room]))
        left += others[room:]
    return part, left


def _members(mask: int) -> list[int]:
    return list(bits(mask))


def _is_clique(adjacency: Sequence[int], mask: int) -> bool:
    return mask.bit_count() > 1 and all(mask & ~adjacency[member] == 1 << member for member in bits(mask))


def _grow(adjacency: Sequence[int], clique: int) -> int:
    """A maximal clique around `clique`, smallest members first."""
    common = -1
    for member in bits(clique):
        common &= adjacency[member]
    while common:
        low = common & -common
        clique |= low
        common &= adjacency[low.bit_length() - 1]
    return clique


def _clique_from(adjacency: Sequence[int], uncovered: Sequence[int], vertex: int) -> int:
    """A maximal clique with the first uncovered edge of `vertex`, preferring members that cover most besides."""
    clique = 1 << vertex
    common = adjacency[vertex]
    while common:
        fresh = common & uncovered[vertex] if clique.bit_count() == 1 else common
        best = max(bits(fresh), key=lambda other: ((uncovered[other] & clique).bit_count(), -other))
        clique |= 1 << best
        common &= adjacency[best]
    return clique


def _take(uncovered: list[int], clique: int) -> bool:
    """Mark the clique's edges as covered; whether any was not yet."""
    news = False
    for member in bits(clique):
        if uncovered[member] & clique:
            news = True
            uncovered[member] &= ~clique
    return news


def _trim(cliques: list[int]) -> list[int]:
    """The same cover without members whose every edge another clique covers too, the last chosen trimmed first."""
    kept = list(cliques)
    holders: defaultdict[int, set[int]] = defaultdict(set)
    for position, clique in enumerate(kept):
        for member in bits(clique):
            holders[member].add(position)
    for index in range(len(kept) - 1, -1, -1):
        for member in reversed(_members(kept[index])):
            others = 0
            for position in holders[member]:
                if position != index:
                    others |= kept[position]
            if kept[index] & ~others & ~(1 << member) == 0:
                kept[index] &= ~(1 << member)
                holders[member].discard(index)
    return [clique for clique in kept if clique.bit_count() > 1]
