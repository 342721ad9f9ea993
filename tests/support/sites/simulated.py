"""What tests of the simulated site's sources need: the sources as running tasks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.fakes.topics import FakeTopics

from underhost.streams.ports import Source
from underhost.streams.simulated.site import SimulatedSite


async def turns() -> None:
    """Let the other tasks run until they wait again."""
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def watched(site: SimulatedSite, topics: FakeTopics) -> AsyncIterator[list[Source]]:
    """Run both sources of the site; they have listed when this is entered."""
    sources = list(site.sources("demo", topics, topics))
    tasks = [asyncio.create_task(source.run()) for source in sources]
    await turns()
    try:
        yield sources
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
