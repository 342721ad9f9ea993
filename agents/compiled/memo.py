"""What rules derive from a compiled site once and read many times: values by key, forgotten when their inputs change.

In: a key, what the value depends on, and how to make it. Out: the value, made at the first question. Whoever stores a
value must say what it depends on, so that no new rule can be stale on a site that is followed from change to change.
"""

from collections import defaultdict
from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any, TypeVar

T = TypeVar("T")
_MISSING = object()


class Depends(IntFlag):
    """Inputs of a remembered value that may change while a site is followed."""

    NOTHING = 0
    """It reads the state each time it is asked, or only claims and volumes: those are never followed."""
    NODES = auto()
    """Which nodes there are, their order, labels, taints and hosts; also what is kept by topology domains."""
    IMAGES = auto()
    """Which nodes hold which images."""
    CLASSES = auto()
    """Which classes of pods there are."""


class Memo:
    """The remembered values of one state. A key begins with the name of the rule or helper that it belongs to."""

    def __init__(self) -> None:
        self._values: dict[object, Any] = {}
        self._keys: defaultdict[Depends, set[object]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._values)

    def remember(self, key: object, depends: Depends, make: Callable[[], T]) -> T:
        """The value under this key, made now if it is not there."""
        found: T = self._values.get(key, _MISSING)
        if found is _MISSING:
            found = self._values[key] = make()
            self._keys[depends].add(key)
        return found

    def forget(self, changed: Depends) -> None:
        """Drop every value that depends on any of this."""
        for depends, keys in self._keys.items():
            if keys and int.__and__(depends, changed):  # without a flag for each answer, which would take longer
                for key in keys:
                    del self._values[key]
                keys.clear()

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()
        self._keys.clear()
