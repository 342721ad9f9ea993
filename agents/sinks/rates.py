"""At most so many in any minute, or hour.

In: when each was made, and what turned out to be none. Out: when there is room for one more. Times are monotonic
seconds.
"""

from collections import deque

MINUTE, HOUR = 60.0, 3600.0


class Rate:
    """At most `most` within `span` seconds; how many there are, `len` tells."""

    def __init__(self, most: int, span: float) -> None:
        self.most, self._span = most, span
        self._made: deque[tuple[float, str]] = deque()

    def __len__(self) -> int:
        return len(self._made)

    @property
    def last(self) -> float:
        """When the last one was made; minus infinity where none is left."""
        return self._made[-1][0] if self._made else float("-inf")

    def room_at(self, now: float) -> float:
        """When one more may be made: now, or later."""
        while self._made and self._made[0][0] + self._span <= now:
            self._made.popleft()
        over = len(self._made) - self.most
        return now if over < 0 else self._made[over][0] + self._span

    def add(self, at: float, id_: str = "") -> None:
        """One is made."""
        self._made.append((at, id_))

    def give_back(self, id_: str) -> None:
        """The last one of this id does not count, if it did."""
        for place in range(len(self._made) - 1, -1, -1):
            if self._made[place][1] == id_:
                del self._made[place]
                return
