"""Topics in memory: implements `streams.ports.Publisher` and `TopicReader` as far as sources need them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from underhost.schemas.keys import site_of
from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing, Record


class FakeTopics:
    """What was published, in order, and the live records of each topic.

    Attributes:
        faults: raised by the next publishes, one by each, as when the broker is away.
    """

    at_hand = True

    def __init__(self, live: Mapping[str, Mapping[str, bytes]] | None = None) -> None:
        self.records: list[Outgoing] = []
        self.live = {name: dict(records) for name, records in (live or {}).items()}
        self.faults: list[Exception] = []
        self._changed = asyncio.Condition()

    async def publish(self, *records: Outgoing) -> None:
        async with self._changed:
            if self.faults:
                raise self.faults.pop(0)
            for record in records:
                self.records.append(record)
                live = self.live.setdefault(record.topic.name, {})
                if record.value is None:
                    live.pop(record.key, None)
                else:
                    live[record.key] = record.value
            self._changed.notify_all()

    async def until(self, condition: Callable[["FakeTopics"], object]) -> None:
        """Wait until what was published meets the condition."""
        async with asyncio.timeout(120), self._changed:  # a bound for what hangs, wide enough for a busy machine
            await self._changed.wait_for(lambda: bool(condition(self)))

    async def holding(self, count: int) -> list[Outgoing]:
        """What was published, once there are so many records."""
        await self.until(lambda topics: len(topics.records) >= count)
        return self.records

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        return {key: value for key, value in self.live.get(topic.name, {}).items() if site_of(key) == site}

    def keys(self, topic: Topic) -> list[str]:
        """The keys that are live in a topic, sorted, without markers."""
        return sorted(key for key in self.live.get(topic.name, {}) if "/listed/" not in key)

    def follow(self, topics: Iterable[Topic], *, from_beginning: bool = False) -> AsyncIterator[Record]:
        raise NotImplementedError("sources do not follow topics")

    def history(self, topics: Iterable[Topic]) -> AsyncIterator[Record]:
        raise NotImplementedError("sources do not read history")

    async def close(self) -> None:
        """Nothing to release."""
