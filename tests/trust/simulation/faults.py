"""What goes wrong between the pipeline and the world: records late, twice or not at all, writes and sources that fail.

In: dice, and the real publisher, writers and sources. Out: the same ones, with faults while they are switched on. A
fault is never more than the outside may do to a worker: a lost record was not acknowledged, a failed write is
`Unreachable`, one of Kafka `KafkaAway`. Each seed has faults that are frequent, rare, or do not come at all (`Moods`).
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from trust.simulation.trace import Trace

from underhost.schemas.errors import KafkaAway, Unreachable
from underhost.schemas.topics import Topic
from underhost.streams.before_write import before_write
from underhost.streams.ports import Outgoing, TopicReader
from underhost.streams.publish import FaustPublisher

MOODS = (0.0, 0.5, 1.0, 1.0, 1.0, 3.0, 10.0)
"""What a seed multiplies the shares of one fault with. Defects need faults that meet: where each is rare in every seed,
two of them hardly ever do."""
LATE, LATEST = 0.15, 0.5
"""The share of publishes and requests that take time, and the most seconds that one takes."""
SLOW, SLOWEST = 0.01, 20.0
"""The share of requests to a cluster that take long, and the most seconds that one takes."""
LOST_BEFORE, LOST_AFTER, TWICE = 0.02, 0.02, 0.02
"""The shares of publishes that fail before and after the records are taken, and of those taken twice."""
TORN, HALF = 0.02, 0.3
"""The share of publishes whose first records are taken before the others, and of those that lose the others."""
FAILED_BEFORE, FAILED_AFTER = 0.04, 0.04
"""The shares of requests to a cluster that fail before and after they took effect."""
UNREADABLE = 0.005
"""The share of a source's looks at a topic that fail."""


class Moods(dict[str, float]):
    """How much more frequent each thing is in this seed, by what it is: one of the `moods` that there are."""

    def __init__(self, dice: random.Random, moods: Sequence[float] = MOODS) -> None:
        super().__init__()
        self._dice, self._moods = dice, moods

    def __missing__(self, what: str) -> float:
        mood = self[what] = self._dice.choice(self._moods)
        return mood


class Faults:
    """The dice of the faults; what struck is counted, and told to the trace.

    Attributes:
        on: until the site calms down. struck: how often each fault has come. listener: is told of each.
    """

    def __init__(self, dice: random.Random, moods: Moods, trace: Trace) -> None:
        self.dice, self.moods, self.trace, self.on = dice, moods, trace, True
        self.struck: Counter[str] = Counter()
        self.listener: Callable[[str], None] = lambda what: None

    def note(self, what: str) -> None:
        """This fault happens now."""
        self.struck[what] += 1
        self.trace.note("fault", what)
        self.listener(what)

    def strike(self, what: str, share: float) -> bool:
        """Whether this fault happens now."""
        if not self.on or self.dice.random() >= share * self.moods[what]:
            return False
        self.note(what)
        return True

    def fail(self, what: str, share: float, error: type[Unreachable] = Unreachable) -> None:
        """Raises the error where this fault happens now."""
        if self.strike(what, share):
            raise error(f"{what}: simulated")

    async def delay(self) -> None:
        """Take a moment, now and then."""
        if self.on and self.dice.random() < LATE * self.moods["late"]:
            await asyncio.sleep(self.dice.random() * LATEST)

    async def drag(self) -> None:
        """Take a moment, and long now and then."""
        await self.delay()
        if self.strike("request takes long", SLOW):
            await asyncio.sleep(self.dice.random() * SLOWEST)


class UnreliablePublisher:
    """A publisher whose records come late, twice, in part or not at all; the order of one publish stays."""

    def __init__(self, publisher: FaustPublisher, faults: Faults) -> None:
        self._publisher, self._faults = publisher, faults

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        faults = self._faults
        await faults.delay()
        faults.fail("records lost before they were taken", LOST_BEFORE, KafkaAway)
        first = 0
        if len(records) > 1 and faults.strike("records taken in two parts", TORN):
            first = faults.dice.randrange(1, len(records))
            await self._publisher.publish(*records[:first])
            await asyncio.sleep(faults.dice.random() * LATEST)
            faults.fail("records lost in part", HALF, KafkaAway)
        await self._publisher.publish(*records[first:])
        if faults.strike("records taken twice", TWICE):
            await self._publisher.publish(*records)
        await faults.delay()
        faults.fail("acknowledgement lost", LOST_AFTER, KafkaAway)

    async def unpublishable(self, site: str) -> str:
        """See `FaustPublisher`."""
        return await self._publisher.unpublishable(site)


class UnreliableWriter:
    """A writer to a cluster whose requests fail before or after they took effect.

    `version` tells the state of what is written to: a request that leaves it as it was had no effect. `asked` is called
    of each request, `judge` is asked of (request, arguments) right before, and answers with what is to be called if
    there was an effect.
    """

    def __init__(
        self,
        writer: Any,
        faults: Faults,
        version: Callable[[], object],
        asked: Callable[[], None],
        judge: Callable[[str, tuple[Any, ...]], Callable[[], None]],
    ) -> None:
        self._writer, self._faults, self._version = writer, faults, version
        self._asked, self._judge = asked, judge

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, faults = getattr(self._writer, name), self._faults

        async def ask(*args: Any, **options: Any) -> Any:
            self._asked()
            await faults.drag()
            before_write()  # as the clients do at the last moment
            faults.fail(f"{name} failed before it took effect", FAILED_BEFORE)
            before, made = self._version(), self._judge(name, args)
            try:
                answer = await method(*args, **options)
            finally:
                if self._version() != before:
                    made()
            await faults.drag()
            faults.fail(f"{name} failed after it took effect", FAILED_AFTER)
            return answer

        return ask


class UnreliableReader:
    """A reader of topics that cannot read them now and then."""

    def __init__(self, reader: TopicReader, faults: Faults) -> None:
        self._reader, self._faults = reader, faults
        self.at_hand = reader.at_hand

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """See `TopicReader.state`."""
        await self._faults.delay()
        self._faults.fail("topics unreadable", UNREADABLE, KafkaAway)
        return await self._reader.state(topic, site)
