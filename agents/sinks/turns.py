"""One namespace after another: whoever wants much leaves every other its turn."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def in_turn(items: Iterable[T], namespace_of: Callable[[T], str]) -> list[T]:
    """The first of each namespace, then the second of each, and so on; otherwise in their order."""
    counts: Counter[str] = Counter()
    rounds: list[tuple[int, T]] = []
    for item in items:
        namespace = namespace_of(item)
        rounds.append((counts[namespace], item))
        counts[namespace] += 1
    rounds.sort(key=lambda one: one[0])
    return [item for _, item in rounds]
