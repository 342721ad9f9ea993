"""What goes wrong between the pipeline and the world: records late, twice or not at all, writes and sources that fail.

In: dice, and the real publisher, writers and sources. Out: the same ones, with faults while they are switched on. A
fault is never more than the outside may do to a worker: a lost record was not acknowledged, a failed write is
`Unreachable`.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from trust.simulation.trace import Trace

from underhost.schemas.errors import Unreachable
from underhost.streams.ports import Outgoing, Publisher, Source

LATE, LATEST = 0.15, 0.5
"""The share of publishes and writes that take time, and the most seconds that one takes."""
LOST_BEFORE, LOST_AFTER, TWICE = 0.02, 0.02, 0.02
"""The shares of publishes that fail before and after the records are taken, and of those taken twice."""
FAILED_BEFORE, FAILED_AFTER = 0.04, 0.04
"""The shares of requests to a cluster that fail before and after they took effect."""
UNREADABLE = 0.03
"""The share of a source's starts that find the topics unreadable."""
MEAN_LIFE = 60.0
"""Seconds after which a source loses its server, on average."""


class Faults:
    """The dice of the faults; what struck is counted, and told to the trace. `on` is set until the site calms down."""

    def __init__(self, dice: random.Random, trace: Trace) -> None:
        self.dice, self.trace, self.on = dice, trace, True
        self.struck: Counter[str] = Counter()

    def strike(self, what: str, share: float = 1.0) -> bool:
        """Whether this fault happens now."""
        if not self.on or self.dice.random() >= share:
            return False
        self.struck[what] += 1
        self.trace.note("fault", what)
        return True

    async def delay(self) -> None:
        """Take a moment, now and then."""
        if self.on and self.dice.random() < LATE:
            await asyncio.sleep(self.dice.random() * LATEST)


class UnreliablePublisher:
    """A publisher whose records come late, twice, or not at all; the order of one publish stays."""

    def __init__(self, publisher: Publisher, faults: Faults) -> None:
        self._publisher, self._faults = publisher, faults

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        faults = self._faults
        await faults.delay()
        if faults.strike("records lost before they were taken", LOST_BEFORE):
            raise Unreachable("Kafka does not take records: simulated")
        await self._publisher.publish(*records)
        if faults.strike("records taken twice", TWICE):
            await self._publisher.publish(*records)
        if faults.strike("acknowledgement lost", LOST_AFTER):
            raise Unreachable("Kafka does not answer: simulated")


class UnreliableWriter:
    """A writer to a cluster whose requests fail before or after they took effect.

    `version` tells the state of what is written to: a request that leaves it as it was had no effect. `judge` is asked
    of (request, arguments) right before, and answers with what is to be told of them if there was an effect.
    """

    def __init__(
        self,
        writer: Any,
        faults: Faults,
        version: Callable[[], object],
        judge: Callable[[str, tuple[Any, ...]], Callable[[], None]],
    ) -> None:
        self._writer, self._faults, self._version, self._judge = writer, faults, version, judge

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, faults = getattr(self._writer, name), self._faults

        async def ask(*args: Any, **options: Any) -> Any:
            await faults.delay()
            if faults.strike(f"{name} failed before it took effect", FAILED_BEFORE):
                raise Unreachable("the server does not answer: simulated")
            before, made = self._version(), self._judge(name, args)
            try:
                answer = await method(*args, **options)
            finally:
                if self._version() != before:
                    made()
            await faults.delay()
            if faults.strike(f"{name} failed after it took effect", FAILED_AFTER):
                raise Unreachable("the server does not answer: simulated")
            return answer

        return ask


class UnreliableSource(Source):
    """A source that loses its server now and then. Its start is by the worker's wall clock, as a live one's."""

    def __init__(self, source: Any, faults: Faults) -> None:
        self._source, self._faults = source, faults
        self.name = source.name
        self.epoch = source.epoch = int(time.time() * 1000)

    async def run(self) -> None:
        """See `ports.Source`."""
        faults = self._faults
        if faults.strike("topics unreadable", UNREADABLE):
            raise Unreachable("the topics cannot be read: simulated")
        running = asyncio.ensure_future(self._source.run())
        try:
            while True:
                left = faults.dice.expovariate(1 / MEAN_LIFE)
                await asyncio.wait([running], timeout=left)
                if running.done():
                    return running.result()
                if faults.strike(f"{self.name} lost"):
                    raise Unreachable("the server is away: simulated")
        finally:
            running.cancel()
            await asyncio.wait([running])
