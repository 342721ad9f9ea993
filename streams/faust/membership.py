"""Whether this worker is still a member of its consumer group: only a member owns partitions, and only owners write.

In: what the transport hears from the group's coordinator. Out: `doubt`, why the worker may not act as the owner now.
Kafka moves the partitions of a member that it has not heard of for the session timeout, and tells the member nothing. A
worker that was frozen (a stopped process, a suspended machine, a long pause) goes on where it stood: it must see by its
own clock that its time is over. Asked by everything that writes; `watchdog.py` ends a pipeline whose doubt lasts.
"""

import asyncio
import time
from collections.abc import Callable

LOOK = 0.05
"""Seconds between two looks of somebody who waits for the group."""


def now() -> float:
    """Seconds of a clock that nobody sets and that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Membership:
    """The membership of one consumer. Without a session timeout there is no group, and never a doubt.

    The transport's thread writes, the event loop reads: each note is one assignment.
    """

    def __init__(self, session_timeout: float | None = None, *, clock: Callable[[], float] = now) -> None:
        self._timeout, self._clock = session_timeout, clock
        self._heard: float | None = None
        self._reason = "it has not joined its consumer group yet"

    # --------------------------------------------------------------------------------------- told by the transport
    def renewed(self, sent: float) -> None:
        """The coordinator has accepted a heartbeat that was sent at this time, or let us join."""
        self._heard = sent

    def ended(self) -> None:
        """The coordinator does not know us any more: the partitions may be another's by now."""
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

    async def confirmed(self) -> None:
        """Wait until there is no doubt. Where the partitions move meanwhile, whoever waits is cancelled."""
        while True:
            if self.doubt() is None:
                return
            await asyncio.sleep(LOOK)
