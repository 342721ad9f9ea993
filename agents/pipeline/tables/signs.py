"""Signs of life of the watchers, told by this worker's own clock; and how far the watchers' clocks are from it.

In: the `seen` of each marker, as it comes. Out: for how long a watcher has been silent. Two clocks are never compared
for that, where it can be helped: one that is an hour ahead would hide a silence, one that is behind would be taken for
silence. A sign of life is a marker whose `seen` is another than the one before, and it counts from when it came.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

SAMPLES = 4
"""Signs of life that the difference of the clocks is taken from: records come late, and never early."""
SKEWED = 10.0
"""Seconds from which on people are told that two clocks differ."""


@dataclass
class _Sign:
    """The last marker of a source: its `seen`, milliseconds since 1970, and when it came, monotonic seconds."""

    seen: int
    came: float
    behind: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))


class Signs:
    """Of each site and source. `clock` is monotonic, `wall` since 1970, both in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._wall = clock, wall
        self._last: dict[tuple[str, str], _Sign] = {}

    def note(self, site: str, source: str, seen: int) -> None:
        """A marker has come, of a site whose topics are read to their end: an older one tells nothing."""
        sign = self._last.get((site, source))
        if sign is None:
            sign = self._last[site, source] = _Sign(seen, self._clock())
        elif seen == sign.seen:
            return
        sign.seen, sign.came = seen, self._clock()
        sign.behind.append(self._wall() - seen / 1000)

    def keep(self, holds: Callable[[str], bool]) -> None:
        """Forget the sites that are not held any more."""
        self._last = {place: sign for place, sign in self._last.items() if holds(place[0])}

    def silence(self, site: str, source: str, seen: int) -> float:
        """Seconds without a sign of life, `seen` being what the last marker says.

        Before the first sign only that can tell. Neither is a marker of the future a sign of life: for how long it was
        silent is not known then, and the next sign is waited for.
        """
        sign = self._last.get((site, source))
        return self._clock() - sign.came if sign is not None else abs(self._wall() - seen / 1000)

    def sources(self, site: str) -> list[str]:
        """The sources of the site that have given a sign of life."""
        return sorted(source for of, source in self._last if of == site)

    def skew(self, site: str, source: str) -> float:
        """Seconds that the watcher's clock is behind ours, negative where it is ahead; 0.0 while that is not known.

        One sign alone tells only of a clock that is ahead: the first one ends a list, which may have taken minutes.
        """
        sign = self._last.get((site, source))
        behind = sign.behind if sign is not None else ()
        return min(behind) if len(behind) > 1 else min((0.0, *behind))
