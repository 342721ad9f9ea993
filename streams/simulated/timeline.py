"""The simulated site's time: a queue of actions for later, over a clock.

In: a clock, and actions with a delay. Out: the actions, each run at its time. Actions for one moment run in the order
in which they were planned, so that equal input gives equal events.
"""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


class Clock:
    """Where the simulated site takes its time from: the real time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def wait(self, changed: asyncio.Event, until: float | None) -> None:
        """Return when `changed` is set, or at `until` at the latest (None: only when it is set)."""
        timeout = None if until is None else max(0.0, until - self.now())
        try:
            async with asyncio.timeout(timeout):
                await changed.wait()
        except TimeoutError:
            return


class Timeline:
    """Actions planned for later, run in order of their time.

    Attributes:
        planned: functions that are called whenever an action was added, so that a sleeping driver checks again.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.planned: list[Callable[[], None]] = []
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._running: float | None = None

    def now(self) -> float:
        """Seconds since 1970. While an action runs, the time for which it was planned, however late it runs."""
        return self.clock.now() if self._running is None else self._running

    def stamp(self) -> str:
        """The time as Kubernetes writes it: RFC 3339 in whole seconds."""
        return datetime.fromtimestamp(int(self.now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @contextmanager
    def at(self, moment: float) -> Iterator[None]:
        """Pretend that it is this moment (seconds since 1970), for what happened in the past."""
        self._running = moment
        try:
            yield
        finally:
            self._running = None

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run `action` in `seconds`."""
        self._count += 1
        heapq.heappush(self._actions, (self.now() + seconds, self._count, action))
        for tell in self.planned:
            tell()

    def next_due(self) -> float | None:
        """When the next action is due, in seconds since 1970; None when nothing is planned."""
        return self._actions[0][0] if self._actions else None

    def run_due(self) -> None:
        """Run everything that is due by the clock, what those actions plan included."""
        if self._running is not None:
            return
        try:
            while self._actions and self._actions[0][0] <= self.clock.now():
                due, _, action = heapq.heappop(self._actions)
                self._running = due
                action()
        finally:
            self._running = None
