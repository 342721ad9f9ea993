"""How long something that is wrong stays for people to see: pure, told the time by whoever asks.

A round of the story rests once it has shown what is wrong, until somebody has opened the page and then for `READING`
seconds, or until somebody says so.
"""

READING = 45.0
"""Seconds that somebody who has just opened the page, or looks at it while something breaks, has to read."""


class Pace:
    """One rest after another. Times are seconds of any one clock."""

    def __init__(self) -> None:
        self._visited: float | None = None
        self._rests: float | None = None

    def visit(self, now: float) -> None:
        """Somebody has opened the page."""
        self._visited = now if self._visited is None else self._visited

    def rest(self, now: float) -> None:
        """What is wrong is shown from now on."""
        self._rests = now

    def go_on(self) -> None:
        """Somebody has seen enough."""
        self._rests = None

    def left(self, now: float) -> float | None:
        """Seconds that the rest still lasts, 0 where it is over; None: until somebody comes."""
        if self._rests is None:
            return 0.0
        if self._visited is None:
            return None
        return max(0.0, max(self._rests, self._visited) + READING - now)
