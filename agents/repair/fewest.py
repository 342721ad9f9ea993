"""The fewest pods whose leaving ends a conflict of many: a smallest vertex cover of the graph of who refuses whom.

In: pods in the order in which they are rather given up, and the pairs that refuse one another. Out: the pods to give
up. Exact for groups of up to 16; beyond that the pod that most others refuse goes first, which is exact where all
refuse all and where all refuse one.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

EXACT = 16  # pods up to which every choice is tried: 65,536 at the worst


def fewest(pods: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The smallest set of `pods` that holds one of each pair, of equal ones the earliest; in the order of `pods`.

    A pair of which neither is in `pods` cannot be parted, and is left out.
    """
    rank = {pod: at for at, pod in enumerate(pods)}
    edges: dict[int, int] = dict.fromkeys(range(len(pods)), 0)  # by pod, who refuses it, as bits
    forced = 0
    for one, other in pairs:
        a, b = rank.get(one, -1), rank.get(other, -1)
        if a >= 0 and b >= 0:
            edges[a] |= 1 << b
            edges[b] |= 1 << a
        elif a >= 0 or b >= 0:
            forced |= 1 << max(a, b)
    free = [at for at in edges if edges[at] & ~forced and not forced >> at & 1]
    chosen = {at for at in edges if forced >> at & 1}
    chosen |= set(_smallest(free, edges, forced) if len(free) <= EXACT else _greedy(free, edges, forced))
    return [pods[at] for at in sorted(chosen)]


def _smallest(free: Sequence[int], edges: dict[int, int], gone: int) -> Collection[int]:
    """The first of the smallest covers, in the order of `free`."""
    for size in range(len(free) + 1):
        for some in combinations(free, size):
            taken = gone | sum(1 << at for at in some)
            if all(taken >> at & 1 or not edges[at] & ~taken for at in free):
                return some
    return free


def _greedy(free: Sequence[int], edges: dict[int, int], gone: int) -> list[int]:
    """Again and again the pod that most of those left refuse."""
    chosen: list[int] = []
    while True:
        most = max(free, key=lambda at: (-1 if gone >> at & 1 else (edges[at] & ~gone).bit_count(), -at))
        if gone >> most & 1 or not edges[most] & ~gone:
            return chosen
        chosen.append(most)
        gone |= 1 << most
