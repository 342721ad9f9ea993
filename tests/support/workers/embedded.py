"""Faust apps over the embedded log, and a publisher without agents, for the tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import faust

from underhost.streams.embedded import registry
from underhost.streams.embedded.transport import embedded_url
from underhost.streams.faust.app import UnderhostApp
from underhost.streams.faust.events import EventStream
from underhost.streams.publish import FaustPublisher


def an_app(path: Path, name: str = "t", partitions: int = 4, sync: str | None = None, **options: object) -> faust.App:
    """An app over the embedded log, without web, folders, signals or waiting at its end."""
    app = UnderhostApp(
        name,
        broker=embedded_url(path, sync),
        topic_partitions=partitions,
        store="memory://",
        Stream=EventStream,
        web_enabled=False,
        autodiscover=False,
        stream_wait_empty=False,
        **options,
    )

    async def complete(sender: object, **options: object) -> None:
        # As agents/pipeline/tables/recovery.py: what Faust fetches between a rebalance and its own seek would be lost.
        app.consumer.stop_flow()

    app.on_rebalance_complete.connect(complete, weak=False)
    return app


def a_topic(app: faust.App, name: str) -> faust.TopicT:
    """A topic of raw bytes."""
    return app.topic(
        name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=app.conf.topic_partitions,
        internal=True,
    )


@asynccontextmanager
async def running(app: faust.App) -> AsyncIterator[faust.App]:
    """The app as a worker: started, its tables recovered, and stopped at the end."""
    try:
        await app.start()
        await asyncio.wait_for(app.tables.recovery.completed.wait(), 20)
        yield app
    finally:
        await app.stop()


@asynccontextmanager
async def a_publisher(path: Path, *, keep_unreadable: bool = False) -> AsyncIterator[FaustPublisher]:
    """A publisher through the producer of an app that has no agents and no consumer."""
    app = an_app(path)
    app.keep_unreadable = keep_unreadable
    try:
        yield FaustPublisher(app)
    finally:
        if app._producer is not None:
            await app._producer.stop()


async def committed(path: Path) -> int | None:
    """The offset of `orders` that is read next after a restart, None where none was committed."""
    log = await registry.acquire(path)
    try:
        return log.committed("t", ("orders", 0))
    finally:
        await registry.release(log)
