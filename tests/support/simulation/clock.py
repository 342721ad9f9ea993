"""A clock that a test moves by hand."""

import asyncio

from underhost.streams.simulated.timeline import Clock


class LogicalClock(Clock):
    """A clock that stands still until it is advanced: a test of an hour takes no time and has one outcome."""

    def __init__(self, start: float = 1_600_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`; what is due then runs when the site settles."""
        self._now += seconds

    async def wait(self, changed: asyncio.Event, until: float | None) -> None:
        """Only a change wakes the waiter: this clock is moved together with the site (`OperatedSite.advance`)."""
        del until
        await changed.wait()
