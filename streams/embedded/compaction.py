"""Which records of a partition to remove, by Kafka's clean-up policies: from offset, timestamp, key and tombstone.

In: a topic's configuration, a connection for reading and the state of the last run. Out: offsets to remove.

The last record of a partition always stays: the recovery of a table waits for it, and the next offset follows it.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from underhost.schemas.topics import DAY_MS
from underhost.streams.embedded import store

DEFAULT_RETENTION_MS = 7 * DAY_MS
DEFAULT_TOMBSTONE_MS = DAY_MS
DIRTY_RATIO = 0.5


@dataclass(frozen=True)
class Policy:
    """How a topic is cleaned up; the names are Kafka's, times in milliseconds.

    Attributes:
        compact: keep the newest record of each key.
        lag: min.compaction.lag.ms: younger records are never compacted, nor do they supersede older ones.
        tombstones: delete.retention.ms: how long a tombstone stays after it may be compacted.
        retention: retention.ms: older records go, from the oldest on; None keeps them for ever.
        dirty_ratio: min.cleanable.dirty.ratio: how much must be new before a partition is compacted again.
    """

    compact: bool
    lag: int = 0
    tombstones: int = DEFAULT_TOMBSTONE_MS
    retention: int | None = None
    dirty_ratio: float = DIRTY_RATIO

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "Policy":
        """The policy of a topic's configuration; what is absent is as in Kafka."""
        kinds = {kind.strip() for kind in str(config.get("cleanup.policy", "delete")).split(",")}
        retention = int(config.get("retention.ms", DEFAULT_RETENTION_MS))
        return cls(
            compact="compact" in kinds,
            lag=int(config.get("min.compaction.lag.ms", 0)),
            tombstones=int(config.get("delete.retention.ms", DEFAULT_TOMBSTONE_MS)),
            retention=retention if "delete" in kinds and retention >= 0 else None,
            dirty_ratio=float(config.get("min.cleanable.dirty.ratio", DIRTY_RATIO)),
        )


@dataclass
class Progress:
    """State after the last run of one partition: below offset `cleaned` there is one record a key, `rows` in all."""

    cleaned: int = 0
    rows: int = 0


def plan(
    db: sqlite3.Connection, number: int, end: int, policy: Policy, progress: Progress, now: int, *, force: bool = False
) -> list[int]:
    """The offsets of partition `number` to remove, given its `end` and the time `now` (milliseconds since 1970).

    `force` compacts even where little is new.
    """
    gone: list[int] = []
    start = 0
    if policy.retention is not None:
        gone = _expired(db, number, end, now - policy.retention, now)
        start = gone[-1] + 1 if gone else 0
    if policy.compact:
        gone += _superseded(db, number, start, end, policy, progress, now, force)
    return gone


def _aged(db: sqlite3.Connection, first: int, end: int, before: int, now: int) -> int:
    """Where the records from rowid `first` on that were written before a time end: at the first that is younger.

    A time after `now` is of a clock that was ahead, and says nothing: such a record is as old as the next one.
    """
    young = db.execute(
        "SELECT id FROM records WHERE id >= ? AND id < ? AND timestamp BETWEEN ? AND ? ORDER BY id LIMIT 1",
        (first, end, before, now),
    ).fetchone()
    last = db.execute(
        "SELECT id FROM records WHERE id >= ? AND id < ? AND timestamp < ? ORDER BY id DESC LIMIT 1",
        (first, young[0] if young else end, before),
    ).fetchone()
    return int(last[0]) + 1 if last else first


def _expired(db: sqlite3.Connection, number: int, end: int, before: int, now: int) -> list[int]:
    """The oldest records up to the first that is young enough, but never the last of the partition."""
    first, last = store.rowid(number, 0), store.rowid(number, end - 1)
    aged = _aged(db, first, last, before, now)
    rows = db.execute("SELECT id FROM records WHERE id >= ? AND id < ? ORDER BY id", (first, aged))
    return [id_ - first for (id_,) in rows]


def _superseded(
    db: sqlite3.Connection, number: int, start: int, end: int, policy: Policy, progress: Progress, now: int, force: bool
) -> list[int]:
    base = store.rowid(number, 0)
    aged = now - policy.lag + 1
    cleanable = _aged(db, base + max(progress.cleaned, start), base + end, aged, now) - base
    dirty = cleanable - progress.cleaned
    if dirty <= 0 and not force:
        return []
    if not force and dirty < policy.dirty_ratio * (progress.rows + dirty):
        return []
    rows = db.execute(
        "SELECT id, timestamp, key, value IS NULL FROM records WHERE id >= ? AND id < ? ORDER BY id",
        (base + start, base + cleanable),
    ).fetchall()
    newest = {key: id_ for id_, _, key, _ in rows}
    forgotten = now - policy.lag - policy.tombstones
    last = base + end - 1
    gone = [
        id_ - base
        for id_, timestamp, key, tombstone in rows
        if key is not None and id_ != last and (newest[key] != id_ or (tombstone and timestamp <= forgotten))
    ]
    progress.cleaned, progress.rows = cleanable, len(rows) - len(gone)
    return gone
