"""How many writes of each kind a minute may see: the last fence, behind the paces that deciders keep by themselves.

In: limits by kind, the moments of the writes. Out: whether one more may be made. Asked by the sinks' runner before each
command and told afterwards whether it was a write. A restart begins anew. What is held back is ordered again.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping

MINUTE = 60.0


class WriteLimits:
    """Counts the writes of each kind in the last minute. A kind without a limit is not counted."""

    def __init__(self, limits: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = dict(limits), clock
        self._made: dict[str, deque[float]] = {kind: deque() for kind in limits}

    def take(self, kind: str) -> str:
        """Count a write that is about to be made; why it may not, "" where it may."""
        limit = self._limits.get(kind)
        if limit is None:
            return ""
        made, now = self._made[kind], self._clock()
        while made and made[0] <= now - MINUTE:
            made.popleft()
        if len(made) >= limit:
            return f"held back: {limit} {kind} writes in the last minute (limits)"
        made.append(now)
        return ""

    def give_back(self, kind: str) -> None:
        """The write that was counted last was not made."""
        if self._made.get(kind):
            self._made[kind].pop()
