"""Faust apps over the embedded log, and a publisher without agents, for the tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import faust

from underhost.streams.embedded.transport import embedded_url
from underhost.streams.publish import FaustPublisher


def an_app(path: Path, name: str = "t", partitions: int = 4, sync: str | None = None, **options: object) -> faust.App:
    """An app over the embedded log, without web, files or signals."""
    return faust.App(
        name,
        broker=embedded_url(path, sync),
        topic_partitions=partitions,
        store="memory://",
        web_enabled=False,
        datadir=str(path.parent / "faust"),
        **options,
    )


@asynccontextmanager
async def a_publisher(path: Path, partitions: int = 4) -> AsyncIterator[FaustPublisher]:
    """A publisher through the producer of an app that has no agents and no consumer."""
    app = an_app(path, partitions=partitions)
    try:
        yield FaustPublisher(app)
    finally:
        if app._producer is not None:
            await app._producer.stop()
