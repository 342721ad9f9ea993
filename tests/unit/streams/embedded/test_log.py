"""The log by itself: offsets, group commit, what a reader sees, and what a failed write does."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from underhost.schemas.errors import InputError, Refused
from underhost.streams.embedded import log as log_module
from underhost.streams.embedded import memory
from underhost.streams.embedded.log import Log
from underhost.streams.embedded.store import SYNC_MODES, Entry

TP = ("t", 0)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    """An open log with topic `t` of two partitions."""
    opened = Log(tmp_path / "log.db")
    await opened.open()
    await opened.create_topic("t", 2, {})
    yield opened
    await opened.close()


def rows_on_disk(path: Path) -> list[bytes]:
    """The values in the file, seen by a connection of its own."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return [value for (value,) in db.execute("SELECT value FROM records ORDER BY id")]
    finally:
        db.close()


async def test_a_send_resolves_with_its_offset_once_the_record_is_on_disk(log: Log) -> None:
    assert await log.append(TP, b"k", b"first", 1) == 0
    assert rows_on_disk(log.path) == [b"first"]
    assert await log.append(TP, b"k", b"second", 2) == 1
    assert rows_on_disk(log.path) == [b"first", b"second"]


async def test_records_put_without_a_future_are_on_disk_after_a_flush_in_order(log: Log) -> None:
    assert [log.put(TP, b"k", value, 1) for value in (b"a", b"b")] == [0, 1]
    sent = log.append(TP, b"k", b"c", 1)
    assert log.put(TP, b"k", b"d", 1) == 3
    assert rows_on_disk(log.path) == []
    await log.flush()
    assert rows_on_disk(log.path) == [b"a", b"b", b"c", b"d"]
    assert (await sent, log.end(TP)) == (2, 4)


async def test_a_record_written_at_leisure_goes_to_disk_with_the_next_one_in_order(log: Log) -> None:
    assert log.put(TP, b"k", b"row", 1, at_leisure=True) == 0
    await log.append(("t", 1), b"k", b"prompt", 1)
    assert sorted(rows_on_disk(log.path)) == [b"prompt", b"row"]
    assert log.end(TP) == 1


def commits_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each commit has from now on."""
    commits: list[int] = []

    def append(db: sqlite3.Connection, records: list[Any], *rest: Any, **options: Any) -> None:
        commits.append(len(records))
        write(db, records, *rest, **options)

    write = log_module.store.append
    monkeypatch.setattr(log_module.store, "append", append)
    return commits


async def test_records_that_follow_closely_share_a_commit_once_they_are_enough(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = commits_of(monkeypatch)
    monkeypatch.setattr(log_module, "LEAST_APART", 3600.0)
    monkeypatch.setattr(log_module, "MOST_APART", 3600.0)
    monkeypatch.setattr(log_module, "ENOUGH", 40)
    await log.append(TP, b"k", b"first", 1)
    for number in range(39):
        log.put(TP, b"k", b"%d" % number, 1)
        await asyncio.to_thread(rows_on_disk, log.path)  # time enough for a commit, if one was made
    await asyncio.wait_for(log.append(TP, b"k", b"last", 1), 30)
    log.put(TP, b"k", b"after that", 1)
    await asyncio.to_thread(rows_on_disk, log.path)
    assert commits == [1, 40]


async def test_a_log_that_is_closed_waits_for_no_other_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LEAST_APART", 3600.0)
    monkeypatch.setattr(log_module, "MOST_APART", 3600.0)
    log = Log(tmp_path / "log.db")
    await log.open()
    await log.create_topic("t", 1, {})
    await log.append(TP, b"k", b"first", 1)
    log.put(TP, b"k", b"last", 1)
    await asyncio.wait_for(log.close(), 30)
    assert rows_on_disk(log.path) == [b"first", b"last"]


async def test_a_record_written_at_leisure_makes_no_commit_of_its_own(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = commits_of(monkeypatch)
    monkeypatch.setattr(log_module, "AT_LEISURE", 3600.0)
    for _ in range(20):
        log.put(TP, b"k", b"row", 1, at_leisure=True)
        await asyncio.to_thread(rows_on_disk, log.path)  # time enough for a commit, if one was asked for
    await log.append(("t", 1), b"k", b"prompt", 1)
    assert commits == [21]


async def test_a_record_written_at_leisure_is_readable_in_the_end_though_no_other_follows(log: Log) -> None:
    log.put(TP, b"k", b"row", 1, at_leisure=True)
    await asyncio.wait_for(log.wait_beyond({TP: 0}), 30)
    assert rows_on_disk(log.path) == [b"row"]


async def test_records_written_at_leisure_are_not_kept_in_memory_and_are_read_whole(log: Log) -> None:
    await log.append(TP, b"k", b"a", 1)
    log.put(TP, b"k", b"b", 1, at_leisure=True)
    await log.flush()
    await log.append(TP, b"k", b"c", 1)
    log.put(TP, b"k", b"d", 1, at_leisure=True)
    await log.flush()
    assert log._partitions[TP].tail == []
    assert [entry.value for entry in await log.read(TP, 0, 10)] == [b"a", b"b", b"c", b"d"]


async def test_a_closed_log_has_written_what_was_left_for_the_next_commit(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    await log.open()
    await log.create_topic("t", 1, {})
    log.put(TP, b"k", b"row", 1, at_leisure=True)
    await log.close()
    assert rows_on_disk(log.path) == [b"row"]


async def test_offsets_count_per_partition(log: Log) -> None:
    sends = [log.append(("t", number % 2), None, b"", 0) for number in range(6)]
    assert await asyncio.gather(*sends) == [0, 0, 1, 1, 2, 2]


async def test_a_record_cannot_be_read_before_it_is_committed(log: Log) -> None:
    send = log.append(TP, b"k", b"v", 1)
    assert (log.end(TP), await log.read(TP, 0, 10)) == (0, [])
    await send
    assert (log.end(TP), await log.read(TP, 0, 10)) == (1, [Entry(0, 1, b"k", b"v", ())])


async def test_key_value_headers_and_time_come_back_as_they_were_after_a_restart(tmp_path: Path) -> None:
    sent = [
        Entry(0, 1_700_000_000_123, b"\x00key", b"\xffvalue", (("a", b"1"), ("a", b"\xff"))),
        Entry(1, 5, b"", b"", ()),
        Entry(2, 6, None, None, (("ce_id", b""),)),
    ]
    first = Log(tmp_path / "log.db")
    await first.open()
    await first.create_topic("t", 2, {"cleanup.policy": "compact"})
    for entry in sent:
        await first.append(("t", 1), entry.key, entry.value, entry.timestamp, entry.headers)
    in_memory = await first.read(("t", 1), 0, 10)
    await first.commit("group", {("t", 1): 2})
    await first.close()

    again = Log(tmp_path / "log.db")
    await again.open()
    assert in_memory == sent
    assert await again.read(("t", 1), 0, 10) == sent
    assert again.topics == {"t": {"cleanup.policy": "compact"}}
    assert [again.end(TP), again.end(("t", 1))] == [0, 3]
    assert [again.committed("group", ("t", 1)), again.committed("group", TP)] == [2, None]
    assert await again.append(("t", 1), None, b"next", 7) == 3
    await again.close()


async def test_reading_goes_on_from_disk_into_memory_without_a_gap(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "TAIL_BYTES", 5_000)
    await asyncio.gather(*(log.append(TP, b"k", b"%d" % number, 0) for number in range(100)))
    await asyncio.gather(*(log.append(TP, b"k", b"%d" % number, 0) for number in range(100, 130)))
    position, values = 0, []
    while entries := await log.read(TP, position, 7):
        values += [int(entry.value or b"-1") for entry in entries]
        position = entries[-1].offset + 1
    assert values == list(range(130))
    held = log._partitions[TP].tail
    assert 0 < len(held) < 30, "otherwise this test reads from one place only"


async def test_a_commit_of_offsets_is_on_disk_when_it_returns(log: Log) -> None:
    await log.append(TP, b"k", b"v", 1)
    await log.commit("group", {TP: 1, ("t", 1): 0})
    db = sqlite3.connect(f"file:{log.path}?mode=ro", uri=True)
    assert db.execute("SELECT consumer, offset FROM offsets ORDER BY partition").fetchall() == [
        ("group", 1),
        ("group", 0),
    ]
    db.close()
    assert log.committed("group", TP) == 1


async def test_senders_are_held_back_while_too_much_is_pending(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_PENDING", 3)
    disk = threading.Event()
    log._file._writer.submit(disk.wait)  # a slow disk
    written = [log.append(TP, b"k", b"v", 1)]
    await asyncio.sleep(0)  # the flusher takes the first record
    written += [log.append(TP, b"k", b"v", 1) for _ in range(3)]
    waiting = asyncio.ensure_future(log.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    disk.set()
    await waiting
    assert await asyncio.gather(*written) == [0, 1, 2, 3]


async def test_a_topic_keeps_its_partitions_and_refuses_another_count(log: Log) -> None:
    await log.create_topic("t", 2, {"cleanup.policy": "compact"})
    assert log.topics["t"] == {}, "an existing topic stays as it is"
    with pytest.raises(InputError, match=r"log\.db: topic t has 2 partitions, 3 are configured"):
        await log.create_topic("t", 3, {})


async def test_a_topic_created_twice_at_once_is_there_once(log: Log) -> None:
    await asyncio.gather(*(log.create_topic("u", 3, {}) for _ in range(5)))
    assert log.partition_count("u") == 3


async def test_a_partition_that_does_not_exist_is_an_error_that_names_it(log: Log) -> None:
    with pytest.raises(ValueError, match="no partition 2 of topic t"):
        log.append(("t", 2), None, b"", 0)


async def test_a_closed_log_refuses_to_take_more_and_has_written_what_it_took(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    await log.open()
    await log.create_topic("t", 1, {})
    sends = [log.append(TP, None, b"%d" % number, 0) for number in range(3)]
    await log.close()
    assert await asyncio.gather(*sends) == [0, 1, 2]
    with pytest.raises(Refused, match="the log is closed"):
        log.append(TP, None, b"late", 0)


async def test_a_full_disk_fails_this_and_all_later_sends_and_loses_nothing_acknowledged(log: Log) -> None:
    # SQLite's own SQLITE_FULL, as when the file system has no room for another page.
    log._file.db.execute("PRAGMA max_page_count = 40")
    sends = [log.append(TP, b"k", b"x" * 900, number) for number in range(20)]
    acknowledged = await asyncio.gather(*sends)
    failed = [log.append(TP, b"k", b"x" * 900, number) for number in range(500)]
    results = await asyncio.gather(*failed, return_exceptions=True)
    assert {type(result) for result in results} == {Refused}
    assert str(results[0]) == f"{log.path}: cannot be written: database or disk is full"
    assert len(rows_on_disk(log.path)) == len(acknowledged) == log.end(TP)
    for refused in (
        lambda: log.append(TP, b"k", b"small", 0),
        lambda: log.put(TP, b"k", b"small", 0),
        lambda: log.flush(),
        lambda: log.commit("group", {TP: 1}),
        lambda: log.create_topic("u", 1, {}),
        lambda: log.wait_beyond({TP: 20}),
    ):
        with pytest.raises(Refused, match="cannot be written"):
            await refused()
    assert log.failed.is_set()


async def test_a_failed_write_wakes_a_follower_that_waits(log: Log) -> None:
    waiting = asyncio.ensure_future(log.wait_beyond({TP: 0}))
    await asyncio.sleep(0)
    log._file.db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(Refused):
        await asyncio.gather(*(log.append(TP, b"k", b"x" * 5000, 0) for _ in range(50)))
    await waiting
    with pytest.raises(Refused, match="cannot be written"):
        await log.wait_beyond({TP: 0})


@pytest.mark.parametrize(("sync", "level"), [("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
async def test_sync_sets_what_a_commit_waits_for(tmp_path: Path, sync: str, level: int) -> None:
    log = Log(tmp_path / "log.db", sync)
    await log.open()
    assert log._file.db.execute("PRAGMA synchronous").fetchone() == (level,)
    assert log._file.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await log.create_topic("t", 1, {})
    assert await log.append(TP, None, b"v", 0) == 0
    await log.close()


def test_an_unknown_sync_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sync is one of NORMAL, FULL, EXTRA, not 'OFF'"):
        Log(tmp_path / "log.db", "OFF")


def modes(folder: Path) -> dict[str, int]:
    """What is in a folder, and who may read it."""
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"this is a text file, long enough to be looked at", "not an embedded log", id="text"),
        pytest.param("DELETE", "an SQLite file, but not an embedded log", id="another program's database"),
        pytest.param("WAL", "an SQLite file, but not an embedded log", id="one with a write-ahead log"),
    ],
)
async def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path: Path, content: bytes | str, why: str) -> None:
    path = tmp_path / "log.db"
    if isinstance(content, str):
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA journal_mode = {content}")
        db.execute("CREATE TABLE theirs(a)")
        db.commit()
        db.close()
    else:
        path.write_bytes(content)
    path.chmod(0o640)
    before = path.read_bytes()
    with pytest.raises(InputError, match=why):
        await Log(path).open()
    assert path.read_bytes() == before
    assert modes(tmp_path) == {"log.db": 0o640}


async def test_a_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir(mode=0o750)
    with pytest.raises(InputError, match="logs: a folder, not an embedded log"):
        await Log(tmp_path / "logs").open()
    assert modes(tmp_path) == {"logs": 0o750}


async def test_a_log_of_another_format_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db")
    await log.open()
    log._file.db.execute("PRAGMA user_version = 99")
    await log.close()
    with pytest.raises(InputError, match="another version of underhost"):
        await Log(tmp_path / "log.db").open()


@pytest.mark.parametrize(
    ("on_disk", "sync", "mode"),
    [
        pytest.param(False, "NORMAL", "1", id="a record like others"),
        pytest.param(True, "NORMAL", "2", id="a record that must outlast a power cut"),
        pytest.param(False, "FULL", "2", id="any record of a log that is asked for it"),
        pytest.param(True, "EXTRA", "3", id="never less than what is asked for"),
    ],
)
async def test_what_must_outlast_a_power_cut_is_forced_to_the_disk(
    tmp_path: Path, on_disk: bool, sync: str, mode: str
) -> None:
    log = Log(tmp_path / "log.db", sync)
    await log.open()
    await log.create_topic("t", 1, {})
    usual = str(SYNC_MODES.index(sync) + 1)
    modes, committed = [usual], list[str]()

    def trace(statement: str) -> None:
        if statement.startswith("PRAGMA synchronous = "):
            modes.append(statement.rpartition(" ")[2])
        elif statement == "COMMIT":
            committed.append(modes[-1])

    log._file.db.set_trace_callback(trace)
    log.put(TP, b"k", b"v", 1, on_disk=on_disk)
    await log.flush()
    log._file.db.set_trace_callback(None)
    assert committed == [mode]
    assert modes[-1] == usual, "as it was before"
    await log.close()
