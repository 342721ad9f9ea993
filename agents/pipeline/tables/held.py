"""What the topics hold of a site, for the watchers of a worker that keeps the topics in tables anyway.

In: the tables, once they have caught up with the topics' ends as of now. Out: a reader like any other. Without it each
start of a watcher would read a day of uncompacted history of every topic, to find what lies here. A late record that
the tables have refused is part of what the topic holds: its watcher publishes the right one again. Topics without a
table, and everything but their state, are left to the reader of the topics.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import FaustError
from faust.types import TP

from underhost.agents.pipeline.tables.agents import Tables
from underhost.schemas.topics import Topic
from underhost.streams.kafka.connect import translated
from underhost.streams.ports import TopicReader

LOOK = 0.05
"""Seconds between two looks how far the tables are."""


class HeldReader(TopicReader):
    """Reads the state of a site from the tables, everything else from the topics."""

    at_hand = True

    def __init__(self, app: faust.App, tables: Tables, topics: TopicReader) -> None:
        self._app, self._tables, self._topics = app, tables, topics

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """See `TopicReader.state`. Waits for the tables; whoever waits is cancelled where the site moves."""
        if topic not in self._tables.sites.read:
            return await self._topics.state(topic, site)
        partition = self._tables.sites.partition_of(site)
        end = await self._end(TP(topic.name, partition))
        while self._tables.sites.following(topic, partition) < end:  # noqa: ASYNC110 (a table signals nothing)
            await asyncio.sleep(LOOK)
        return self._tables.in_topic(topic, site)

    async def _end(self, place: TP) -> int:
        """The offset of the next record of this partition. Raises KafkaAway."""
        try:
            ends = await self._app.consumer.highwaters(place)
        except (KafkaError, FaustError, OSError) as error:
            raise translated(error) from error
        return ends.get(place) or 0

    def follow(self, topics: Iterable[Topic], **options: Any) -> Any:
        """See `TopicReader.follow`."""
        return self._topics.follow(topics, **options)

    def history(self, topics: Iterable[Topic], site: str | None = None) -> Any:
        """See `TopicReader.history`."""
        return self._topics.history(topics, site)

    async def check(self) -> None:
        """See `TopicReader.check`."""
        await self._topics.check()

    async def close(self) -> None:
        """Nothing: the reader of the topics is closed by whoever opened it."""
