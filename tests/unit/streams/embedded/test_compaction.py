"""Compaction and retention: what a policy lets go, decided exactly, and carried out while records arrive."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from underhost.schemas.topics import DAY_MS, PLACEMENTS, PODS
from underhost.streams.embedded.compaction import Policy
from underhost.streams.embedded.log import Log

TP = ("t", 0)
COMPACT = {"cleanup.policy": "compact"}
NOW = 1_000 * DAY_MS


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    """An open log without topics, which compacts only when it is told to."""
    opened = Log(tmp_path / "log.db", compact_every=10_000)
    await opened.open()
    yield opened
    await opened.close()


async def fill(log: Log, *records: tuple[str, str | None, int]) -> None:
    """Append (key, value, age in milliseconds) records to partition 0 of topic t; key "-" is none."""
    for key, value, age in records:
        data = None if value is None else value.encode()
        await log.append(TP, None if key == "-" else key.encode(), data, NOW - age)


async def left(log: Log) -> list[tuple[int, str | None]]:
    """(offset, value) of every record: the same from disk and memory."""
    entries = await log.read(TP, 0, 10_000)
    tail, log._partitions[TP].tail = log._partitions[TP].tail, []
    on_disk = await log.read(TP, 0, 10_000)
    log._partitions[TP].tail = tail
    assert entries == on_disk
    return [(entry.offset, None if entry.value is None else entry.value.decode()) for entry in entries]


async def test_the_newest_record_of_each_key_stays(log: Log) -> None:
    await log.create_topic("t", 1, COMPACT)
    await fill(log, ("a", "1", 9), ("b", "1", 8), ("a", "2", 7), ("c", "1", 6), ("a", "3", 5), ("b", "2", 4))
    assert await log.compact(NOW) == 3
    assert await left(log) == [(3, "1"), (4, "3"), (5, "2")]
    assert (log.first(TP), log.end(TP)) == (3, 6)


async def test_records_younger_than_the_lag_stay_and_supersede_nothing(log: Log) -> None:
    await log.create_topic("t", 1, {**COMPACT, "min.compaction.lag.ms": str(DAY_MS)})
    await fill(log, ("a", "1", 3 * DAY_MS), ("a", "2", 2 * DAY_MS), ("b", "1", 2 * DAY_MS))
    await fill(log, ("a", "3", DAY_MS - 1), ("b", "2", 5), ("b", "3", 4))
    assert await log.compact(NOW) == 1
    assert await left(log) == [(1, "2"), (2, "1"), (3, "3"), (4, "2"), (5, "3")]


async def test_what_was_too_young_goes_when_it_has_aged(log: Log) -> None:
    await log.create_topic("t", 1, {**COMPACT, "min.compaction.lag.ms": str(DAY_MS)})
    await fill(log, ("a", "1", 2), ("a", "2", 1), ("a", "3", 0))
    assert await log.compact(NOW) == 0
    assert await log.compact(NOW + DAY_MS + 1) == 2
    assert await left(log) == [(2, "3")]


async def test_a_tombstone_stays_for_a_while_so_that_followers_see_it_and_then_goes(log: Log) -> None:
    await log.create_topic("t", 1, {**COMPACT, "delete.retention.ms": "1000"})
    await fill(log, ("a", "1", 20), ("a", None, 10), ("b", "1", 5))
    assert await log.compact(NOW) == 1
    assert await left(log) == [(1, None), (2, "1")]
    assert await log.compact(NOW + 989, force=True) == 0
    assert await log.compact(NOW + 990, force=True) == 1
    assert await left(log) == [(2, "1")]


async def test_a_tombstone_never_goes_before_what_it_deletes(log: Log) -> None:
    await log.create_topic("t", 1, {**COMPACT, "delete.retention.ms": "0"})
    await fill(log, ("a", "1", 20), ("b", "1", 15), ("a", None, 10), ("c", "1", 5))
    assert await log.compact(NOW) == 2
    assert await left(log) == [(1, "1"), (3, "1")]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({**COMPACT, "delete.retention.ms": "0"}, id="compact"),
        pytest.param({"cleanup.policy": "delete", "retention.ms": "0"}, id="delete"),
        pytest.param({"cleanup.policy": "compact,delete", "retention.ms": "0", "delete.retention.ms": "0"}, id="both"),
    ],
)
async def test_the_last_record_of_a_partition_always_stays(log: Log, config: dict[str, str]) -> None:
    await log.create_topic("t", 1, config)
    await fill(log, ("a", "1", 30), ("a", None, 20))
    await log.compact(NOW, force=True)
    assert await left(log) == [(1, None)]
    assert (log.first(TP), log.end(TP)) == (1, 2)


async def test_offsets_go_on_after_a_restart_of_a_compacted_log(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    await log.open()
    await log.create_topic("t", 1, {**COMPACT, "delete.retention.ms": "0"})
    await fill(log, ("a", "1", 30), ("b", "1", 20), ("a", None, 10))
    await log.compact(NOW)
    await log.close()
    again = Log(tmp_path / "log.db")
    await again.open()
    assert (again.first(TP), again.end(TP)) == (1, 3)
    assert await again.append(TP, b"c", b"1", NOW) == 3
    await again.close()


async def test_records_older_than_the_retention_go_from_the_oldest_on(log: Log) -> None:
    await log.create_topic("t", 1, {"cleanup.policy": "delete", "retention.ms": "100"})
    await fill(log, ("a", "1", 300), ("-", "2", 101), ("a", "3", 100), ("a", "4", 250), ("a", "5", 1))
    assert await log.compact(NOW) == 2
    assert await left(log) == [(2, "3"), (3, "4"), (4, "5")]
    assert log.first(TP) == 2


async def test_records_without_a_key_are_never_compacted(log: Log) -> None:
    await log.create_topic("t", 1, COMPACT)
    await fill(log, ("-", "1", 9), ("-", "2", 8), ("a", "1", 7), ("a", "2", 6))
    assert await log.compact(NOW) == 1
    assert await left(log) == [(0, "1"), (1, "2"), (3, "2")]


async def test_partitions_do_not_touch_one_another(log: Log) -> None:
    await log.create_topic("t", 2, COMPACT)
    await log.create_topic("u", 1, COMPACT)
    for tp in (TP, ("t", 1), ("u", 0)):
        await log.append(tp, b"a", b"1", NOW)
    await log.append(("t", 1), b"a", b"2", NOW)
    assert await log.compact(NOW) == 1
    assert [len(await log.read(tp, 0, 9)) for tp in (TP, ("t", 1), ("u", 0))] == [1, 1, 1]


async def test_little_that_is_new_is_left_for_later(log: Log) -> None:
    await log.create_topic("t", 1, COMPACT)
    await fill(log, *((f"k{number}", "1", 9) for number in range(100)))
    assert await log.compact(NOW) == 0
    await fill(log, *((f"k{number}", "2", 8) for number in range(50)))
    assert await log.compact(NOW) == 0, "50 new over 100 clean is under min.cleanable.dirty.ratio"
    await fill(log, *((f"k{number}", "2", 8) for number in range(50, 100)))
    assert await log.compact(NOW) == 100


async def test_compaction_beside_a_writer_and_a_reader_keeps_the_last_value_of_every_key(log: Log) -> None:
    await log.create_topic("t", 1, COMPACT)
    total, keys = 6000, 50
    written = asyncio.Event()

    async def write() -> None:
        for start in range(0, total, 100):
            batch = range(start, start + 100)
            await asyncio.gather(*(log.append(TP, b"k%d" % (number % keys), b"%d" % number, NOW) for number in batch))
        written.set()

    async def read() -> dict[bytes | None, bytes | None]:
        state: dict[bytes | None, bytes | None] = {}
        position = 0
        while position < total:
            entries = await log.read(TP, position, 37)
            assert [entry.offset for entry in entries] == sorted({entry.offset for entry in entries})
            state |= {entry.key: entry.value for entry in entries}
            position = entries[-1].offset + 1 if entries else position
            if not entries:
                await log.wait_beyond({TP: position})
        return state

    async def compact() -> int:
        removed = 0
        while not written.is_set():
            removed += await log.compact(NOW, force=True)
            await asyncio.sleep(0)
        return removed + await log.compact(NOW, force=True)

    _, state, removed = await asyncio.gather(write(), read(), compact())
    expected = {b"k%d" % (number % keys): b"%d" % number for number in range(total - keys, total)}
    assert state == expected
    assert removed == total - keys
    assert [offset for offset, _ in await left(log)] == list(range(total - keys, total))


class NotedLog(Log):
    """A log that tells of every compaction that is over."""

    def __init__(self, path: Path, compact_every: float) -> None:
        super().__init__(path, compact_every=compact_every)
        self.compacted: asyncio.Queue[int] = asyncio.Queue()

    async def compact(self, now: int | None = None, *, force: bool = False) -> int:
        """As it is, and noted."""
        removed = await super().compact(now, force=force)
        self.compacted.put_nowait(removed)
        return removed


async def test_the_log_compacts_by_itself_while_it_is_open(tmp_path: Path) -> None:
    log = NotedLog(tmp_path / "log.db", compact_every=0.01)
    await log.open()
    await log.create_topic("t", 1, COMPACT)
    await asyncio.gather(*(log.append(TP, b"k", b"%d" % number, NOW) for number in range(500)))
    removed = 0
    async with asyncio.timeout(10):
        while removed < 499:
            removed += await log.compacted.get()
    assert await left(log) == [(499, "499")]
    await log.close()


async def test_the_file_gives_room_back_that_compaction_freed(log: Log) -> None:
    await log.create_topic("t", 1, COMPACT)
    await asyncio.gather(*(log.append(TP, b"k", b"x" * 3000, NOW) for _ in range(500)))
    before = log._file.db.execute("PRAGMA page_count").fetchone()[0]
    await log.compact(NOW)
    assert log._file.db.execute("PRAGMA page_count").fetchone()[0] < before / 2


def test_the_policies_of_our_topics_are_read_from_their_configuration() -> None:
    assert Policy.of(PODS.config) == Policy(compact=True, lag=DAY_MS, tombstones=DAY_MS, retention=None)
    assert Policy.of(PLACEMENTS.config) == Policy(compact=False, retention=7 * DAY_MS)


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        pytest.param({}, Policy(compact=False, retention=7 * DAY_MS), id="Kafka's defaults"),
        pytest.param({"retention.ms": "-1"}, Policy(compact=False, retention=None), id="kept for ever"),
        pytest.param(
            {"cleanup.policy": "compact, delete", "retention.ms": "5", "min.cleanable.dirty.ratio": "0.1"},
            Policy(compact=True, retention=5, dirty_ratio=0.1),
            id="both",
        ),
    ],
)
def test_a_policy_is_read_as_kafka_reads_it(config: dict[str, str], policy: Policy) -> None:
    assert Policy.of(config) == policy


# ------------------------------------------------------------------------------------ records of a clock that was ahead
AHEAD = -400 * DAY_MS


async def test_a_record_of_the_future_goes_with_the_next_one_that_has_aged(log: Log) -> None:
    """A clock that was ahead for a moment: nothing that came after it was removed for as long."""
    await log.create_topic("t", 1, {"cleanup.policy": "delete", "retention.ms": "100"})
    await fill(log, ("a", "1", AHEAD), ("a", "2", 300), ("-", "3", AHEAD), ("a", "4", 101), ("a", "5", AHEAD))
    await fill(log, ("a", "6", 100), ("a", "7", 101), ("a", "8", 1))
    assert await log.compact(NOW) == 4
    assert await left(log) == [(4, "5"), (5, "6"), (6, "7"), (7, "8")]


async def test_records_of_the_future_alone_are_too_young_to_go(log: Log) -> None:
    await log.create_topic("t", 1, {"cleanup.policy": "delete", "retention.ms": "100"})
    await fill(log, ("a", "1", 300), ("a", "2", AHEAD), ("a", "3", AHEAD))
    assert await log.compact(NOW) == 1
    assert await log.compact(NOW - AHEAD + 101) == 1
    assert await left(log) == [(2, "3")]


async def test_a_record_of_the_future_is_superseded_with_the_next_one_that_has_aged(log: Log) -> None:
    await log.create_topic("t", 1, {**COMPACT, "min.compaction.lag.ms": str(DAY_MS)})
    await fill(log, ("a", "1", AHEAD), ("a", "2", 3 * DAY_MS), ("b", "1", 2 * DAY_MS), ("b", "2", AHEAD))
    await fill(log, ("b", "3", DAY_MS - 1), ("b", "4", 5))
    assert await log.compact(NOW) == 1
    assert await left(log) == [(1, "2"), (2, "1"), (3, "2"), (4, "3"), (5, "4")]
    assert await log.compact(NOW + DAY_MS, force=True) == 3
    assert await left(log) == [(1, "2"), (5, "4")]
