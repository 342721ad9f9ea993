"""A worker on an embedded log in a test's folder, and a way to wait for what it publishes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from support.fakes.pipeline import FakeCluster, FakeEvaluator

from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.worker import run_worker
from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import SinkSettings

SECONDS = 120
"""How long a condition is waited for, on a machine that is busy."""


def settings_in(folder: Path, *, sinks: bool = True) -> Settings:
    """Settings of a worker whose topics are a file of the folder, with a vSphere side and every sink enabled."""
    return Settings(
        kafka=KafkaSettings(embedded=folder / "log.db", partitions=4),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=sinks, bindings=sinks, drs_rules=sinks),
    )


class Running:
    """A worker that runs, and everything that it has published so far."""

    def __init__(self, evaluator: FakeEvaluator) -> None:
        self.evaluator = evaluator
        self.published: list[Outgoing] = []
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def saw(self, record: Outgoing) -> None:
        """The worker's `on_event`."""
        self.published.append(record)
        self._changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is looked at whenever something was published."""
        assert self.task is not None
        async with asyncio.timeout(SECONDS):
            while not true():
                self._changed.clear()
                waiting = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([waiting, self.task], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self.task.done():
                    self.task.result()
                    raise AssertionError("the worker has ended")

    def records(self, topic: Topic) -> list[tuple[str, Any]]:
        """(key, value) of what was published to the topic, values decoded; None for a tombstone."""
        return [
            (record.key, None if record.value is None else msgspec.json.decode(record.value))
            for record in self.published
            if record.topic is topic
        ]

    def records_of(self, topic: Topic) -> list[Outgoing]:
        """What was published to the topic, as it is."""
        return [record for record in self.published if record.topic is topic]

    def states(self, topic: Topic, field: str) -> list[tuple[str, Any]]:
        """(key, one field of the value) of what was published to the topic; (key, None) for a tombstone."""
        return [(key, None if value is None else value.get(field)) for key, value in self.records(topic)]


@asynccontextmanager
async def running(
    settings: Settings,
    connections: FakeCluster | Connections,
    *,
    evaluator: FakeEvaluator | None = None,
    roles: tuple[str, ...] | None = None,
    latest: LatestDecisions | None = None,
    on_listening: Callable[[str], None] | None = None,
) -> AsyncIterator[Running]:
    """A worker over this outside world; it is stopped cleanly at the end.

    `on_listening` is told the address of its HTTP; without it there is none.
    """
    worker = Running(evaluator or FakeEvaluator())
    made = connections.connections() if isinstance(connections, FakeCluster) else connections
    worker.task = asyncio.create_task(
        run_worker(
            settings,
            roles=roles,
            connections=made,
            evaluator=worker.evaluator,
            on_event=worker.saw,
            stop=worker.stop,
            web=on_listening is not None,
            latest=latest,
            on_listening=on_listening,
        )
    )
    try:
        yield worker
    finally:
        worker.stop.set()
        await worker.task
