"""Reading topics without a consumer group: the state of a site, the history, and records as they arrive.

In: where the topics are (`KafkaSettings`). Out: live records by key, or a stream of `Record`. The embedded log is read
in memory when this process owns it, and from its file, read-only, when another process does. Every method raises
Unreachable when the broker or the file does not answer.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from underhost.schemas.keys import site_of
from underhost.schemas.topics import Topic
from underhost.streams.embedded.store import Entry
from underhost.streams.embedded.view import LogView, open_view
from underhost.streams.kafka import connect as kafka
from underhost.streams.partition import partition_of
from underhost.streams.ports import Record, TopicReader
from underhost.streams.settings.kafka import KafkaSettings

READ_RECORDS = 500
POLL_MS = 1000


def open_reader(settings: KafkaSettings) -> TopicReader:
    """The reader for Kafka, when bootstrap servers are given, else for the embedded log. Connects on first use."""
    if settings.bootstrap_servers:
        return KafkaReader(settings)
    return EmbeddedReader(settings.embedded)


async def _live(records: AsyncIterator[Record], site: str) -> dict[str, bytes]:
    """The live records of a site: its records applied in order."""
    live: dict[str, bytes] = {}
    async for record in records:
        key = (record.key or b"").decode("utf-8", "replace")
        if site_of(key) != site:
            continue
        if record.value is None:
            live.pop(key, None)
        else:
            live[key] = record.value
    return live


class EmbeddedReader:
    """Reads the embedded log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The live records of a site in a compacted topic, by key, as of now."""
        async with open_view(self._path) as view:
            count = view.partition_count(topic.name)
            if count is None:
                return {}
            partitions = {(topic.name, partition_of(site, count))}
            async with aclosing(self._until_end(view, partitions)) as records:
                return await _live(records, site)

    async def history(self, topics: Iterable[Topic]) -> AsyncGenerator[Record, None]:
        """Every record that is there now, in order per partition; then it ends."""
        async with (
            open_view(self._path) as view,
            aclosing(self._until_end(view, self._partitions(view, topics))) as records,
        ):
            async for record in records:
                yield record

    async def follow(
        self,
        topics: Iterable[Topic],
        *,
        from_beginning: bool = False,
        begun: asyncio.Event | None = None,
        caught_up: asyncio.Event | None = None,
    ) -> AsyncGenerator[Record, None]:
        """Records of all partitions as they arrive, for ever; first all that are there, if asked."""
        wanted = list(topics)
        async with open_view(self._path) as view:
            positions = {
                tp: view.first(tp) if from_beginning else view.end(tp) for tp in self._partitions(view, wanted)
            }
            if begun is not None:
                begun.set()
            while True:
                for tp in self._partitions(view, wanted):
                    start = positions.setdefault(tp, 0)  # a topic made meanwhile is read from its beginning
                    if start >= view.end(tp):
                        continue
                    while entries := await view.read(tp, start, READ_RECORDS):
                        for entry in entries:
                            yield _record(tp, entry)
                        start = entries[-1].offset + 1
                    positions[tp] = start
                if caught_up is not None:
                    caught_up.set()
                await view.wait_beyond(positions)

    async def check(self) -> None:
        """See `TopicReader.check`."""
        async with open_view(self._path):
            pass

    async def close(self) -> None:
        """Nothing is held between calls."""

    @staticmethod
    def _partitions(view: LogView, topics: Iterable[Topic]) -> set[tuple[str, int]]:
        return {(topic.name, part) for topic in topics for part in range(view.partition_count(topic.name) or 0)}

    @staticmethod
    async def _until_end(view: LogView, partitions: set[tuple[str, int]]) -> AsyncGenerator[Record, None]:
        ends = {tp: view.end(tp) for tp in partitions}
        for tp in sorted(partitions):
            start = view.first(tp)
            while start < ends[tp] and (entries := await view.read(tp, start, READ_RECORDS)):
                for entry in entries:
                    if entry.offset < ends[tp]:
                        yield _record(tp, entry)
                start = entries[-1].offset + 1


def _record(tp: tuple[str, int], entry: Entry) -> Record:
    offset, timestamp, key, value, headers = entry
    return Record(tp[0], tp[1], offset, timestamp, key, value, headers)


class KafkaReader:
    """Reads Apache Kafka."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings, self._servers = settings, settings.bootstrap_servers or ""

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The live records of a site in a compacted topic, by key, as of now."""
        counts = await self._counts()
        count = counts.get(topic.name)
        if count is None:
            return {}
        partitions = [TopicPartition(topic.name, partition_of(site, count))]
        async with aclosing(self._until_end(partitions)) as records:
            return await _live(records, site)

    async def history(self, topics: Iterable[Topic]) -> AsyncGenerator[Record, None]:
        """Every record that is there now, in order per partition; then it ends."""
        async with aclosing(self._until_end(await self._partitions(topics))) as records:
            async for record in records:
                yield record

    async def follow(
        self,
        topics: Iterable[Topic],
        *,
        from_beginning: bool = False,
        begun: asyncio.Event | None = None,
        caught_up: asyncio.Event | None = None,
    ) -> AsyncGenerator[Record, None]:
        """Records of all partitions as they arrive, for ever; first all that are there, if asked.

        Topics must be there. A broker that goes away is waited for.
        """
        partitions = await self._partitions(topics)
        async with kafka.consumer(self._settings) as consumer:
            with kafka.answering(self._servers):
                consumer.assign(partitions)
                bounds = consumer.beginning_offsets if from_beginning else consumer.end_offsets
                for tp, offset in (await bounds(partitions)).items():
                    consumer.seek(tp, offset)
                ends = await consumer.end_offsets(partitions) if caught_up is not None else {}
            if begun is not None:
                begun.set()
            while True:
                if caught_up is not None and not caught_up.is_set():
                    with kafka.answering(self._servers):
                        ends = {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}
                    if not ends:
                        caught_up.set()
                for record in await self._poll(consumer):
                    yield record

    async def check(self) -> None:
        """See `TopicReader.check`."""
        await self._counts()

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def _counts(self) -> dict[str, int]:
        async with kafka.admin(self._settings) as admin:
            with kafka.answering(self._servers):
                return await kafka.partition_counts(admin)

    async def _partitions(self, topics: Iterable[Topic]) -> list[TopicPartition]:
        counts = await self._counts()
        return [TopicPartition(topic.name, part) for topic in topics for part in range(counts.get(topic.name, 0))]

    async def _until_end(self, partitions: list[TopicPartition]) -> AsyncGenerator[Record, None]:
        async with kafka.consumer(self._settings) as consumer:
            with kafka.answering(self._servers):
                first, end = await asyncio.gather(
                    consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
                )
                left = {tp for tp in partitions if first[tp] < end[tp]}
                consumer.assign(sorted(left))
                for tp in left:
                    consumer.seek(tp, first[tp])
            while left:
                for record in await self._poll(consumer):
                    if record.offset < end[TopicPartition(record.topic, record.partition)]:
                        yield record
                with kafka.answering(self._servers):
                    left = {tp for tp in left if await consumer.position(tp) < end[tp]}
                consumer.pause(*(consumer.assignment() - left))

    async def _poll(self, consumer: AIOKafkaConsumer) -> list[Record]:
        with kafka.answering(self._servers):
            batches = await consumer.getmany(timeout_ms=POLL_MS)
        return [
            Record(
                tp.topic,
                tp.partition,
                message.offset,
                message.timestamp,
                message.key,
                message.value,
                tuple(message.headers),
            )
            for tp, messages in batches.items()
            for message in messages
        ]
