"""Reading topics without a consumer group: the state of a site, the history, and records as they arrive.

In: where the topics are (`KafkaSettings`). Out: live records by key, or a stream of `Record`. The embedded log is read
in memory when this process owns it, and from its file, read-only, when another process does. Every method raises
Unreachable when the broker or the file does not answer.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.keys import site_of
from underhost.schemas.topics import Topic
from underhost.streams.embedded.store import Entry
from underhost.streams.embedded.view import open_view
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


class _Reader(TopicReader):
    """What both readers have in common: the state of a site is its history, applied in order."""

    @abstractmethod
    def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncGenerator[Record, None]:
        """Every record that is there now, in order per partition; then it ends. With a site only its partition's."""

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The live records of a site in a compacted topic, by key, as of now."""
        live: dict[str, bytes] = {}
        async with aclosing(self.history([topic], site)) as records:
            async for record in records:
                key = (record.key or b"").decode("utf-8", "replace")
                if site_of(key) != site:
                    continue
                if record.value is None:
                    live.pop(key, None)
                else:
                    live[key] = record.value
        return live

    async def close(self) -> None:
        """Nothing is held between calls."""


def _partitions(
    counts: Callable[[str], int | None], topics: Iterable[Topic], site: str | None
) -> list[tuple[str, int]]:
    """Every partition of the topics that are there, or only the site's."""
    there = [(topic.name, counts(topic.name) or 0) for topic in topics]
    if site is None:
        return [(name, part) for name, count in there for part in range(count)]
    return [(name, partition_of(site, count)) for name, count in there if count]


class EmbeddedReader(_Reader):
    """Reads the embedded log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncGenerator[Record, None]:
        """See `_Reader.history`."""
        async with open_view(self._path) as view:
            ends = {tp: view.end(tp) for tp in _partitions(view.partition_count, topics, site)}
            for tp in sorted(ends):
                start = view.first(tp)
                while start < ends[tp] and (entries := await view.read(tp, start, READ_RECORDS)):
                    for entry in entries:
                        if entry.offset < ends[tp]:
                            yield _record(tp, entry)
                    start = entries[-1].offset + 1

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
            bound = view.first if from_beginning else view.end
            positions = {tp: bound(tp) for tp in _partitions(view.partition_count, wanted, None)}
            if begun is not None:
                begun.set()
            while True:
                for tp in _partitions(view.partition_count, wanted, None):
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


def _record(tp: tuple[str, int], entry: Entry) -> Record:
    return Record(tp[0], tp[1], entry.offset, entry.timestamp, entry.key, entry.value, entry.headers)


class KafkaReader(_Reader):
    """Reads Apache Kafka.

    Raises InputError, too, where a file that the settings name cannot be used; but once it has connected that is
    Unreachable as well: whoever exchanges a password or a certificate may be in the middle of it.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings, self._servers = settings, settings.bootstrap_servers or ""
        self._has_connected = False

    @asynccontextmanager
    async def _client(self, made: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        try:
            async with made as client:
                self._has_connected = True
                yield client
        except InputError as error:
            if self._has_connected:
                raise Unreachable(str(error)) from error
            raise

    async def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncGenerator[Record, None]:
        """See `_Reader.history`."""
        partitions = await self._partitions(topics, site)
        if not partitions:
            return
        async with self._client(kafka.consumer(self._settings)) as consumer:
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
        async with self._client(kafka.consumer(self._settings)) as consumer:
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
        """See `TopicReader.check`. It asks for no topic: a client that has started has been answered."""
        async with self._client(kafka.admin(self._settings)):
            pass

    async def _partitions(self, topics: Iterable[Topic], site: str | None = None) -> list[TopicPartition]:
        async with self._client(kafka.admin(self._settings)) as admin:
            counts = await kafka.answered(self._servers, lambda: kafka.partition_counts(admin))
        return [TopicPartition(*tp) for tp in _partitions(counts.get, topics, site)]

    async def _poll(self, consumer: AIOKafkaConsumer) -> list[Record]:
        await asyncio.sleep(0)  # records that are there already are handed over without a pause
        with kafka.answering(self._servers):
            batches = await consumer.getmany(timeout_ms=POLL_MS, max_records=READ_RECORDS)
        return [
            Record(tp.topic, tp.partition, found.offset, found.timestamp, found.key, found.value, tuple(found.headers))
            for tp, messages in batches.items()
            for found in messages
        ]
