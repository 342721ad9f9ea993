"""What tests of the simulated site's sources need: topics in memory, and the sources as running tasks."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from underhost.schemas.keys import parse_key, site_of
from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing, Record, Source
from underhost.streams.simulated.site import SimulatedSite


class MemoryTopics:
    """A Publisher and a TopicReader over one list of records; tombstones delete."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []

    async def publish(self, *records: Outgoing) -> None:
        """Acknowledged at once."""
        self.records.extend(records)

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The live records of a site."""
        state: dict[str, bytes] = {}
        for record in self.records:
            if record.topic is topic and site_of(record.key) == site:
                if record.value is None:
                    state.pop(record.key, None)
                else:
                    state[record.key] = record.value
        return state

    def follow(self, topics: Iterable[Topic], *, from_beginning: bool = False) -> AsyncIterator[Record]:
        """Not needed by a source."""
        raise NotImplementedError

    def history(self, topics: Iterable[Topic]) -> AsyncIterator[Record]:
        """Not needed by a source."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to release."""

    def of(self, kind: str, name: str) -> list[bytes | None]:
        """The values of one object's records, oldest first; `name` may be `namespace/name`."""
        wanted = name if "/" in name else f"/{name}"
        found = []
        for record in self.records:
            key = parse_key(record.key)
            if key.kind == kind and f"{key.namespace}/{key.name}" == wanted:
                found.append(record.value)
        return found


async def turns() -> None:
    """Let the other tasks run until they wait again."""
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def watched(site: SimulatedSite, topics: MemoryTopics) -> AsyncIterator[list[Source]]:
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
