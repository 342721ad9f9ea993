"""The embedded log's file in memory: SQLite as it is, without a disk.

In: the path that the log opens. Out: connections to one database in memory that stays while the seed lasts, so that a
restarted worker finds what a killed one had committed.
"""

import io
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from underhost.streams.embedded import registry, store

OnRecord = Callable[[int, int, bytes | None, bytes | None], None]
"""Is told of (rowid, timestamp, key, value) of each record that is committed."""


class MemoryFile:
    """One database, and whoever listens to its commits."""

    def __init__(self, name: str, on_record: OnRecord) -> None:
        self._name, self._on_record = name, on_record
        self._anchor = self._connect()

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{self._name}?mode=memory&cache=shared"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)

    def open(self, path: Path, *, read_only: bool, sync: str = "NORMAL") -> sqlite3.Connection:
        """In the place of `store.connect`."""
        db = self._connect()
        store._prepare(db, path, read_only, sync)
        return db

    def append(self, db: sqlite3.Connection, records: Any, committed: Any) -> None:
        """In the place of `store.append`."""
        rows = list(records)
        _append(db, rows, committed)
        for row, timestamp, key, _, value in rows:
            self._on_record(row, timestamp, key, value)

    def topics(self) -> dict[int, str]:
        """The topic of each partition, by the partition's number."""
        query = "SELECT p.id, t.name FROM partitions p JOIN topics t ON t.id = p.topic"
        return dict(self._anchor.execute(query).fetchall())

    def records(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """(topic, key, value) of every record that is there, in the order of each partition."""
        topics = self.topics()
        rows = self._anchor.execute("SELECT id, key, value FROM records ORDER BY id")
        return [(topics[number >> store.OFFSET_BITS], key, value) for number, key, value in rows]

    def install(self) -> None:
        """Let the embedded log open this file, whatever its path."""
        store.connect, store.append = self.open, self.append  # type: ignore[assignment]
        store.lock = lambda path: io.StringIO()

    def crashed(self) -> None:
        """The process that had the file open is gone."""
        registry._held.clear()

    def close(self) -> None:
        """Forget everything."""
        registry._held.clear()
        self._anchor.close()


_append = store.append
