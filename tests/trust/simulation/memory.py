"""The embedded log's file in memory: SQLite as it is, without a disk.

In: the path that the log opens. Out: connections to one database in memory that stays while the seed lasts, so that a
restarted worker finds what a killed one had committed.
"""

import io
import random
import sqlite3
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from underhost.streams.embedded import registry, store

OnRecord = Callable[[int, int, bytes | None, bytes | None], None]
"""Is told of (rowid, timestamp, key, value) of each record that is committed."""


class MemoryFile:
    """One database, and whoever listens to its commits."""

    path = Path("/nowhere/town.db")
    """What the settings call it; nothing is ever there."""

    _opened = count()

    def __init__(self, name: str, on_record: OnRecord) -> None:
        # A killed worker's connections may be open still: a seed that is played twice must not find their database.
        self._name, self._on_record = f"{name}-{next(self._opened)}", on_record
        self._anchor = self._connect()

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{self._name}?mode=memory&cache=shared"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)

    def open(self, path: Path, *, read_only: bool, sync: str = "NORMAL") -> sqlite3.Connection:
        """In the place of `store.connect`."""
        db = self._connect()
        store._prepare(db, path, read_only, sync)
        return db

    def append(self, db: sqlite3.Connection, records: Any, committed: Any, **options: Any) -> None:
        """In the place of `store.append`."""
        rows = list(records)
        _append(db, rows, committed, **options)
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

    def send_late(self, dice: random.Random, topic: str, exists: Callable[[str], bool]) -> bool:
        """Send an old record of the topic once more, as the batch of a former owner that was cut off meanwhile.

        Only of an object that exists: a term, which no worker of this log has, is what tells of one that is gone.
        """
        log = registry.held(self.path)
        if log is None or topic not in log.topics:
            return False
        query = "SELECT r.key, r.value, r.headers FROM records r WHERE r.id >= ? AND r.id < ? AND r.value IS NOT NULL"
        [number] = [number for number, name in self.topics().items() if name == topic] or [0]
        rows = self._anchor.execute(query, (store.rowid(number, 0), store.rowid(number + 1, 0))).fetchall()
        rows = [row for row in rows if exists(row[0].decode())]
        if not rows:
            return False
        key, value, headers = dice.choice(rows)
        log.put((topic, 0), key, value, int(time.time() * 1000), store.unpack(headers))
        return True

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
