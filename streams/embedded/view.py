"""Reading an embedded log that another process writes: read-only, from the same file, by polling.

In: a path. Out: the reading methods of `log.Log`, so that readers and admin commands work with either; `open_view`
chooses. Never takes the lock, never writes, never holds a read transaction open.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from underhost.schemas.errors import Unreachable
from underhost.streams.embedded import registry, store
from underhost.streams.embedded.log import Log
from underhost.streams.embedded.store import Entry, PartitionRow, TopicPartition

POLL_SECONDS = 0.1

T = TypeVar("T")


class FileView:
    """A read-only view of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partitions: dict[TopicPartition, PartitionRow] = {}
        self._counts: Mapping[str, int] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embedded-view")
        self._seen = -1

    async def open(self) -> None:
        """Raises Unreachable when there is no file, InputError when it is not one of ours."""
        self._db = await self._run(self._connect)
        await self._refresh()

    def _connect(self) -> sqlite3.Connection:
        if not self.path.exists():
            raise Unreachable(
                f"{self.path}: no such file; `underhost run` makes it: name the log with --embedded or --config"
            )
        return store.connect(self.path, read_only=True)

    async def close(self) -> None:
        """Close the file."""
        await self._run(self._db.close)
        self._pool.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except (sqlite3.Error, OSError) as error:
            raise Unreachable(f"{self.path}: cannot be read: {error}") from error

    async def _refresh(self) -> bool:
        """Read topics and bounds again if another process has written meanwhile; returns whether it has."""

        def look() -> tuple[int, list[PartitionRow]] | None:
            version = int(self._db.execute("PRAGMA data_version").fetchone()[0])
            if version == self._seen:
                return None
            return version, store.partitions(self._db)

        found = await self._run(look)
        if found is None:
            return False
        self._seen, rows = found
        self._partitions = {(row.topic, row.partition): row for row in rows}
        self._counts = Counter(row.topic for row in rows)
        return True

    def partition_count(self, topic: str) -> int | None:
        """None for an unknown topic."""
        return self._counts.get(topic)

    def first(self, tp: TopicPartition) -> int:
        """The oldest offset that is there (`end` when there is none)."""
        return self._partitions[tp].first

    def end(self, tp: TopicPartition) -> int:
        """One more than the last offset."""
        return self._partitions[tp].end

    async def read(self, tp: TopicPartition, start: int, limit: int) -> list[Entry]:
        """At most `limit` records from `start` on, below `end`."""
        row = self._partitions[tp]
        if start >= row.end:
            return []
        return await self._run(lambda: store.read(self._db, row.number, start, row.end, limit))

    async def wait_beyond(self, positions: Mapping[TopicPartition, int]) -> None:
        """Return once there may be records beyond these positions."""
        while not await self._refresh():  # noqa: ASYNC110 (another process sends no signal)
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def open_view(path: Path) -> AsyncIterator[Log | FileView]:
    """The log of `path`: in memory when this process owns it, the file read-only otherwise. Raises Unreachable."""
    if registry.held(path) is not None:
        log = await registry.acquire(path)
        try:
            yield log
        finally:
            await registry.release(log)
        return
    view = FileView(path)
    await view.open()
    try:
        yield view
    finally:
        await view.close()
