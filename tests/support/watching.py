"""Sources while they run, as tasks: those that list and follow for ever, until the test is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from underhost.streams.files.source import FileSource
from underhost.streams.kubernetes.watcher import KubernetesSource
from underhost.streams.ports import Source


@asynccontextmanager
async def running(source: Source) -> AsyncIterator["asyncio.Task[None]"]:
    """The source from its start on; how it ends is for the test to ask."""
    task = asyncio.create_task(source.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def following(source: FileSource | KubernetesSource) -> AsyncIterator[None]:
    """The source once it has listed; an error of its start is raised here."""
    async with running(source) as run:
        ready = asyncio.create_task(source.ready.wait())
        await asyncio.wait([run, ready], return_when=asyncio.FIRST_COMPLETED, timeout=90)
        ready.cancel()
        if run.done():
            run.result()
        assert source.ready.is_set(), "the source is not ready after 90 s"
        yield
        assert not run.done(), "the source ended"
