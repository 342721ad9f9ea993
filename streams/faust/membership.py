"""Whether this worker is still a member of its consumer group: only a member owns partitions, and only owners write.

In: what the transport hears from the group's coordinator. Out: `doubt`, why the worker may not act as the owner now.
Kafka moves the partitions of a member that has been silent for the session timeout, without telling that member. A
worker that was frozen (a stopped process, a suspended machine, a long pause) resumes where it was, so it must see by
its own clock that its membership has expired.
"""

import asyncio
import time
from collections.abc import Callable

LOOK = 0.05
"""Seconds between two checks while a caller waits for the group."""


def now() -> float:
    """Seconds of a clock that is never set and that counts while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Membership:
    """The membership of one consumer. Without a session timeout there is no group, and never a doubt.

    The transport's thread writes and the event loop reads, so every change is a single assignment.
    """

    def __init__(self, session_timeout: float | None = None, *, clock: Callable[[], float] = now) -> None:
        self._timeout, self._clock = session_timeout, clock
        self._heard: float | None = None
        self._reason = "it has not joined its consumer group yet"

    # --------------------------------------------------------------------------------------- told by the transport
    def renewed(self, sent: float) -> None:
        """The coordinator has accepted a heartbeat, or a request to join, that was sent at this time."""
        self._heard = sent

    def ended(self) -> None:
        """The coordinator no longer knows this member: another one may own the partitions by now."""
        if self._heard is not None:
            self._reason = "its consumer group has gone on without it"
        self._heard = None

    # ------------------------------------------------------------------------------------------------ asked by all
    def doubt(self) -> str | None:
        """Why it may not act as the owner of its partitions, as one line; None while it may."""
        if self._timeout is None:
            return None
        heard = self._heard
        if heard is None:
            return self._reason
        silent = self._clock() - heard
        if silent < self._timeout:
            return None
        return f"its consumer group has not answered for {silent:.0f} s, and counts on it for {self._timeout:.0f} s"

    def left(self) -> float | None:
        """Seconds for which the group counts on it, whatever happens; None where there is no group."""
        if self._timeout is None:
            return None
        return 0.0 if self._heard is None else max(0.0, self._timeout - (self._clock() - self._heard))

    async def confirmed(self) -> None:
        """Wait until there is no doubt. The caller is cancelled where the partitions move meanwhile."""
        while True:
            if self.doubt() is None:
                return
            await asyncio.sleep(LOOK)
