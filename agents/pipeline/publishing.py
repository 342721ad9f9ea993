"""Whether anything can be published now: a publisher that watches itself, and asks where there is nothing to publish.

In: records on their way to a transport's publisher, and every few seconds the transport's own word. Out: the records;
`stopped`, why nothing can be published, in one line. What follows from it is left to readiness and metrics.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from underhost.streams.ports import Outgoing, Publisher

UNACKNOWLEDGED = 10.0
"""Seconds that a record may wait for its acknowledgement: a partition without a leader has one again after 9 to 13."""
LOOK, ANSWER = 3.0, 8.0
"""Seconds between two questions, and for the answer."""


class Publishing:
    """A publisher like the one that it is given; `ask` gives the transport's reason why nothing can be published."""

    def __init__(
        self, publisher: Publisher, ask: Callable[[], Awaitable[str]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._publisher, self._ask, self._clock = publisher, ask, clock
        self._waiting: dict[int, float] = {}
        """When each call under way began."""
        self._failing: float | None = None
        """When the calls began to fail."""
        self._told, self._calls = "", 0

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        self._calls += 1
        call, begun = self._calls, self._clock()
        self._waiting[call] = begun
        try:
            await self._publisher.publish(*records)
        except Exception:
            self._failing = begun if self._failing is None else self._failing
            raise
        else:
            self._failing = None
        finally:
            del self._waiting[call]

    async def run(self) -> None:
        """Ask, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(ANSWER):
                    self._told = await self._ask()
            except TimeoutError:
                self._told = f"Kafka has not answered for {ANSWER:.0f} s"
            await asyncio.sleep(LOOK)

    @property
    def waited(self) -> float:
        """Seconds since the oldest record that is not acknowledged was to be published; 0 where there is none."""
        begun = [*self._waiting.values(), *([] if self._failing is None else [self._failing])]
        return self._clock() - min(begun) if begun else 0.0

    def stopped(self) -> str:
        """Why nothing can be published, "" where it can."""
        if self.waited > UNACKNOWLEDGED:
            return f"nothing can be published: a record has not been acknowledged for {self.waited:.0f} s"
        return f"nothing can be published: {self._told}" if self._told else ""
