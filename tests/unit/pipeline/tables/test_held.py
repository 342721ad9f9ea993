"""A watcher of a worker that keeps tables reads what the topics hold from these, once they are as new as the topics."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError
from support.fakes.pipeline import FakeCluster
from support.fakes.topics import FakeTopics
from support.workers.fleet import until
from support.workers.pipeline import SECONDS, running, settings_in

from underhost.agents.pipeline.tables.held import HeldReader
from underhost.schemas.errors import KafkaAway
from underhost.schemas.topics import NODES, PODS, SOURCE_TOPICS, Topic
from underhost.streams.ports import Outgoing, Record
from underhost.streams.reader import EmbeddedReader


class Worker:
    """The parts of a worker that are asked: its consumer knows the topics' ends, its tables are as far as `read`."""

    def __init__(self) -> None:
        self.end, self.read, self.looks = 0, 0, 0
        self.held: dict[str, bytes] = {}
        self.error: Exception | None = None
        self.consumer = self
        self.sites = SimpleNamespace(read=(NODES,), partition_of=lambda site: 3, following=self._following)
        self.topics = FakeTopics()
        held: Any = self
        self.reader = HeldReader(held, held, self.topics)

    def _following(self, topic: Topic, partition: int) -> int:
        assert (topic, partition) == (NODES, 3)
        self.looks += 1
        return self.read

    async def highwaters(self, place: Any) -> dict[Any, int]:
        """Faust's."""
        if self.error is not None:
            raise self.error
        return {place: self.end}

    def in_topic(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The tables'."""
        return self.held


async def test_the_tables_answer_once_they_have_read_all_that_was_published() -> None:
    worker = Worker()
    worker.end, worker.read = 7, 6
    asking = asyncio.ensure_future(worker.reader.state(NODES, "s"))
    await until(lambda: worker.looks > 1)
    assert not asking.done(), "what is not read yet may be a deletion"
    worker.held, worker.read = {"s/node//n1": b"{}"}, 7
    assert await asking == {"s/node//n1": b"{}"}
    assert worker.topics.records == []


async def test_a_topic_without_a_table_is_read_itself() -> None:
    worker = Worker()
    await worker.topics.publish(Outgoing(PODS, "s/pod/a/b", b"1", "1"))
    assert await worker.reader.state(PODS, "s") == {"s/pod/a/b": b"1"}


async def test_a_kafka_that_does_not_tell_how_far_it_is_is_away() -> None:
    worker = Worker()
    worker.error = KafkaTimeoutError("no leader")
    with pytest.raises(KafkaAway):
        await worker.reader.state(NODES, "s")


async def test_a_restarted_worker_lists_without_reading_a_day_of_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, read, history = FakeCluster(), set[str](), EmbeddedReader.history

    def noted(reader: EmbeddedReader, topics: Iterable[Topic], site: str | None = None) -> AsyncGenerator[Record, None]:
        of = list(topics)
        read.update(topic.name for topic in of)
        return history(reader, of, site)

    async def run_until_listed() -> None:
        for listed in cluster.listed.values():
            listed.clear()
        async with running(settings_in(tmp_path), cluster), asyncio.timeout(SECONDS):
            for listed in cluster.listed.values():
                await listed.wait()

    cluster.node("n1", "h1")
    cluster.pod("db-0", "n1", app="db")
    await run_until_listed()
    monkeypatch.setattr(EmbeddedReader, "history", noted)
    await run_until_listed()
    assert read.isdisjoint({topic.name for topic in SOURCE_TOPICS}), "the tables hold the same"
