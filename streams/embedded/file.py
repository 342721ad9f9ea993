"""The file of an embedded log, in the hands of its owner: locked, with one thread that writes and one that reads.

In: work on a connection. Out: its result. A failure is final, because after it we no longer know what is on disk.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from underhost.schemas.errors import BackendError, InputError, Refused
from underhost.streams.embedded import store

T = TypeVar("T")


class LogFile:
    """An SQLite file; `on_failure` is called after the first failure.

    Attributes:
        failure: why the file can no longer be used, or None.
        db: the connection that writes.
    """

    def __init__(self, path: Path, sync: str, on_failure: Callable[[], None]) -> None:
        if sync not in store.SYNC_MODES:
            raise InputError(f"{path}: sync is one of {', '.join(store.SYNC_MODES)}, not {sync!r}")
        self._path, self._sync, self._on_failure = path, sync, on_failure
        self.failure: BackendError | None = None

    async def open(self) -> None:
        """Lock and open the file. Raises Refused (another process has it), Unreachable or InputError."""
        self._lock = store.lock(self._path)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="embedded-log-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="embedded-log-reader")
        try:
            self.db = await self._run(
                self._writer, "written", lambda: store.connect(self._path, read_only=False, sync=self._sync)
            )
            self._read_db = await self._run(self._reader, "read", lambda: store.connect(self._path, read_only=True))
        except BaseException:  # a cancellation, too: release the threads and the lock
            self._writer.shutdown(wait=False)
            self._reader.shutdown(wait=False)
            self._lock.close()
            raise

    async def close(self) -> None:
        """Close the file and release the lock."""
        await self.read(sqlite3.Connection.close)
        await self.write(sqlite3.Connection.close)
        self._reader.shutdown()
        self._writer.shutdown()
        self._lock.close()

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do this in the thread that writes. Raises Refused where it fails."""
        return await self._run(self._writer, "written", lambda: work(self.db))

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do this in the thread that reads. Raises Refused where it fails."""
        return await self._run(self._reader, "read", lambda: work(self._read_db))

    async def _run(self, pool: ThreadPoolExecutor, verb: str, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        except (sqlite3.Error, OSError) as error:
            self.failure = Refused(f"{self._path}: cannot be {verb}: {error}")
            self._on_failure()
            raise self.failure from error
