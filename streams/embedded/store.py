"""The SQLite file of the embedded log: schema, lock, reads and writes. Blocking; knows no event loop and no Faust.

In: rows to append, offsets to commit, ranges to read. Out: the same, durable. Which records to remove is left to
`compaction.py`.

A record's rowid is its partition's number times 2**40 plus its offset: a partition is one range of the table, and
the next offset is the last one plus one, because the last record of a partition is never removed.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from underhost.schemas.errors import InputError, Refused, Unreachable

Headers = tuple[tuple[str, bytes], ...]
TopicPartition = tuple[str, int]
"""(topic, partition); Faust's and aiokafka's own tuples are equal to it."""

APPLICATION_ID = 0x75686C67  # "uhlg"
FORMAT = 1
OFFSET_BITS = 40
SYNC_MODES = ("NORMAL", "FULL", "EXTRA")
FULL = 2
"""SQLite's number of that mode."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, config TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS partitions(
  id INTEGER PRIMARY KEY, topic INTEGER NOT NULL REFERENCES topics(id), partition INTEGER NOT NULL,
  UNIQUE(topic, partition));
CREATE TABLE IF NOT EXISTS records(
  id INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB);
CREATE TABLE IF NOT EXISTS offsets(
  consumer TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
  PRIMARY KEY(consumer, partition)) WITHOUT ROWID;
"""


class Entry(NamedTuple):
    """A record of one partition. `timestamp` is in milliseconds since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class PartitionRow(NamedTuple):
    """A partition as the file holds it: `first` is the oldest offset there is, `end` the next one to be written."""

    topic: str
    partition: int
    number: int
    first: int
    end: int


def rowid(number: int, offset: int) -> int:
    """The rowid of a record in partition `number`."""
    return (number << OFFSET_BITS) + offset


OWNERS_ONLY = 0o600
"""Mode of every file of the log: what is in it is what the account of the sources may see of a cluster."""


def _private(path: str, flags: int) -> int:
    """An opener of files that nobody else reads."""
    return os.open(path, flags, OWNERS_ONLY)


def _make_private(path: Path) -> None:
    """Make the file, or take from others what they could read of one of ours. SQLite gives its other files its mode.

    Only before this process has opened it: closing a file that is opened twice would end SQLite's locks on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNERS_ONLY))
    except FileExistsError:
        for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            if file.exists() and file.stat().st_uid == os.geteuid() and file.stat().st_mode & 0o077:
                file.chmod(OWNERS_ONLY)


def lock(path: Path) -> TextIO:
    """Take the file for this process; the lock is held while the returned file is open. Others cannot read either.

    Raises Refused when another process holds it, Unreachable when the folder cannot be written, InputError when it is
    no log of ours: then nothing is made beside it, and it stays as it is.
    """
    try:
        if path.exists():
            _opened(path, "rw", lambda db: _tables(db, path)).close()  # not "ro", which leaves SQLite's files behind
        path.parent.mkdir(parents=True, exist_ok=True)
        # The descriptor is the one of the lock, and closes with the returned file.
        handle = open(path.with_name(path.name + ".lock"), "a+", encoding="ascii", opener=_private)  # noqa: SIM115
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror or error}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.seek(0)
        pid = handle.read().strip() or "unknown"
        handle.close()
        raise Refused(
            f"{path} is in use by another underhost (pid {pid}); the embedded log belongs to one process: "
            "stop that one, or give --bootstrap-servers"
        ) from error
    try:
        _make_private(path)
    except OSError as error:
        handle.close()
        raise Unreachable(f"{path}: {error.strerror or error}") from error
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def connect(path: Path, *, read_only: bool, sync: str = "NORMAL") -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any one thread at a time.

    Raises Unreachable when the file cannot be opened, InputError when it is no log of ours.
    """
    return _opened(path, "ro" if read_only else "rwc", lambda db: _prepare(db, path, read_only, sync))


def _opened(path: Path, mode: str, prepare: Callable[[sqlite3.Connection], object]) -> sqlite3.Connection:
    if path.is_dir():
        raise InputError(f"{path}: a folder, not an embedded log")
    quoted = str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        db = sqlite3.connect(
            f"file:{quoted}?mode={mode}", uri=True, check_same_thread=False, isolation_level=None, timeout=10
        )
    except sqlite3.Error as error:
        raise Unreachable(f"{path}: {error}") from error
    try:
        prepare(db)
    except sqlite3.DatabaseError as error:
        db.close()
        if "not a database" in str(error):
            raise InputError(f"{path}: not an embedded log") from error
        raise Unreachable(f"{path}: {error}") from error
    except InputError:
        db.close()
        raise
    return db


def _tables(db: sqlite3.Connection, path: Path) -> int:
    """How many tables and indexes there are; none in a new log. Raises InputError for a file that is no log of ours."""
    application, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    tables = int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if tables and application != APPLICATION_ID:
        raise InputError(f"{path}: an SQLite file, but not an embedded log")
    if tables and version != FORMAT:
        raise InputError(f"{path}: written by another version of underhost (format {version}, this one reads {FORMAT})")
    return tables


def _prepare(db: sqlite3.Connection, path: Path, read_only: bool, sync: str) -> None:
    tables = _tables(db, path)
    if read_only:
        return
    if not tables:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {sync}")
    db.execute("PRAGMA cache_size = -16000")  # KiB, negative by SQLite's rule
    db.execute("PRAGMA journal_size_limit = 67108864")  # a burst does not leave its write-ahead log behind for ever
    if not tables:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.executescript(f"BEGIN;{SCHEMA}COMMIT;")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def topics(db: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Every topic's configuration by name."""
    return {name: msgspec.json.decode(config) for name, config in db.execute("SELECT name, config FROM topics")}


def partitions(db: sqlite3.Connection) -> list[PartitionRow]:
    """Every partition with its bounds."""
    rows = db.execute(
        """SELECT t.name, p.partition, p.id,
             (SELECT min(id) FROM records WHERE id >= p.id << 40 AND id < (p.id + 1) << 40),
             (SELECT max(id) FROM records WHERE id >= p.id << 40 AND id < (p.id + 1) << 40)
           FROM partitions p JOIN topics t ON t.id = p.topic"""
    )
    mask = (1 << OFFSET_BITS) - 1
    return [
        PartitionRow(name, part, number, 0 if first is None else first & mask, 0 if last is None else (last & mask) + 1)
        for name, part, number, first, last in rows
    ]


def offsets(db: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Every committed offset: (consumer, partition number, next offset to process)."""
    return db.execute("SELECT consumer, partition, offset FROM offsets").fetchall()


def create_topic(db: sqlite3.Connection, name: str, count: int, config: Mapping[str, str]) -> list[int]:
    """Add a topic; the numbers of its partitions, in order."""
    with _transaction(db):
        encoded = msgspec.json.encode(dict(config)).decode()
        topic = db.execute("INSERT INTO topics(name, config) VALUES(?, ?)", (name, encoded)).lastrowid
        insert = "INSERT INTO partitions(topic, partition) VALUES(?, ?)"
        return [db.execute(insert, (topic, partition)).lastrowid or 0 for partition in range(count)]


def append(
    db: sqlite3.Connection,
    records: Iterable[tuple[int, int, bytes | None, bytes | None, bytes | None]],
    committed: Mapping[tuple[str, int], int],
    *,
    on_disk: bool = False,
) -> None:
    """One transaction: records as (rowid, timestamp, key, headers, value), offsets by (consumer, partition number).

    `on_disk` forces it to the disk before this returns, whatever the connection's mode.
    """
    with _forced(db) if on_disk else nullcontext(), _transaction(db):
        db.executemany("INSERT INTO records(id, timestamp, key, headers, value) VALUES(?, ?, ?, ?, ?)", records)
        if committed:
            rows = [(consumer, number, offset) for (consumer, number), offset in committed.items()]
            db.executemany("INSERT OR REPLACE INTO offsets(consumer, partition, offset) VALUES(?, ?, ?)", rows)


@contextmanager
def _forced(db: sqlite3.Connection) -> Iterator[None]:
    """What is committed in here is synchronised to the disk, as in mode FULL at least."""
    usual = _pragma(db, "synchronous")
    db.execute(f"PRAGMA synchronous = {max(usual, FULL)}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA synchronous = {usual}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:  # KeyboardInterrupt, too: the connection must not stay in the transaction
        if db.in_transaction:  # SQLite leaves it by itself on a full disk
            db.execute("ROLLBACK")
        raise


def read(db: sqlite3.Connection, number: int, start: int, end: int, limit: int) -> list[Entry]:
    """At most `limit` records of a partition from offset `start` up to, but without, `end`."""
    rows = db.execute(
        "SELECT id, timestamp, key, value, headers FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (rowid(number, start), rowid(number, end), limit),
    )
    base = rowid(number, 0)
    return [Entry(id_ - base, timestamp, key, value, unpack(headers)) for id_, timestamp, key, value, headers in rows]


def remove(db: sqlite3.Connection, number: int, gone: Sequence[int]) -> None:
    """Remove these offsets of a partition, in one transaction."""
    with _transaction(db):
        db.executemany("DELETE FROM records WHERE id = ?", [(rowid(number, offset),) for offset in gone])


def shrink(db: sqlite3.Connection, pages: int = 1000) -> None:
    """Give some of the free pages back to the file system."""
    db.executescript(f"PRAGMA incremental_vacuum({pages})")  # execute() would stop after the first page


def pack(headers: Headers) -> bytes | None:
    """Headers as they are stored."""
    return _encoder.encode(headers) if headers else None


def unpack(data: bytes | None) -> Headers:
    """The reverse of `pack`."""
    return _decoder.decode(data) if data else ()


_encoder: Any = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Headers)
