"""A set of names that is read in order again and again, while few of them come and go in between.

In: names that come and go. Out: all of them, sorted, without sorting all again.
"""

from bisect import bisect_left, insort

_MANY = 64  # changes from which sorting all is quicker than looking for the place of each


class SortedNames:
    """The names. What changes is taken in when they are read next."""

    def __init__(self) -> None:
        self._there: set[str] = set()
        self._sorted: list[str] = []
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._there)

    def put(self, name: str, there: bool) -> None:
        """The name is there from now on, or it is not."""
        if there != (name in self._there):
            (self._there.add if there else self._there.discard)(name)
            self._changed ^= {name}

    def listed(self) -> list[str]:
        """All, sorted; the list is the caller's."""
        changed, self._changed = self._changed, set()
        if len(changed) >= _MANY:
            self._sorted = sorted(self._there)
        else:
            for name in changed:
                if name in self._there:
                    insort(self._sorted, name)
                else:
                    del self._sorted[bisect_left(self._sorted, name)]
        return self._sorted.copy()
