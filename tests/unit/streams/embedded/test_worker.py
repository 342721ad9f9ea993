"""Faust workers over the embedded log: restarts, hard kills, full disks, and what the transport refuses."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import faust
import pytest
from faust.transport.drivers import TRANSPORTS
from faust.types import TP
from support.workers.embedded import a_topic, an_app, running

from underhost.schemas.errors import InputError, Refused
from underhost.streams.embedded import registry
from underhost.streams.embedded.transport import Transport, register

PROGRAM = Path(__file__).with_name("table_process.py")
TESTS = Path(__file__).parents[3]
Worker = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Start a worker over one log; what still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def run(count: int) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path / "log.db"), str(count)],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


async def _read_all(stream: faust.StreamT) -> None:
    async for _ in stream:
        pass


def until(process: "subprocess.Popen[str]", word: str) -> list[int]:
    """The numbers of the next line that begins with `word`."""
    assert process.stdout is not None
    for line in process.stdout:
        first, *numbers = line.split()
        if first == word:
            return [int(number) for number in numbers]
    raise AssertionError(f"the worker ended without saying {word!r}")


def finish(process: "subprocess.Popen[str]") -> tuple[list[int], list[int]]:
    """Let a worker stop in order: ([rows, sum of values], [records read])."""
    assert process.stdin is not None
    process.stdin.write("stop\n")
    process.stdin.flush()
    rows, read = until(process, "rows"), until(process, "again")
    until(process, "stopped")
    assert process.wait() == 0
    return rows, read


def test_a_restarted_worker_has_its_whole_table_and_reads_nothing_again(worker: Worker) -> None:
    first = worker(4000)
    assert until(first, "ready") == [0]
    assert until(first, "read") == [4000]
    everything = [2000, sum(range(2000, 4000))]
    assert finish(first) == (everything, [4000])
    again = worker(0)
    assert until(again, "ready") == [2000]
    assert finish(again) == (everything, [0])


def test_a_worker_killed_in_mid_stream_ends_with_the_same_table_as_one_that_was_not(worker: Worker) -> None:
    first = worker(4000)
    while until(first, "acknowledged") < [2500]:
        continue
    first.kill()
    first.wait()
    second = worker(4000)  # sends everything once more, after what the first one left
    until(second, "read")
    rows, _ = finish(second)
    assert rows == [2000, sum(range(2000, 4000))]


def with_agent(app: faust.App) -> asyncio.Event:
    """Give the app one agent on topic `source`; the event is set at its first record."""
    read = asyncio.Event()

    async def keep(stream: faust.StreamT) -> None:
        async for _ in stream:
            read.set()

    app.agent(a_topic(app, "source"), name="keep")(keep)
    return read


async def test_a_worker_whose_disk_is_full_crashes_with_a_reason_and_can_still_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    app = an_app(path)
    with_agent(app)
    acknowledged = 0
    async with running(app):
        log = registry.held(path)
        assert log is not None
        log._file.db.execute("PRAGMA max_page_count = 60")
        with pytest.raises(Refused, match="cannot be written: database or disk is full"):
            while True:
                # A topic that nobody reads, so that it is not a commit of offsets that fails.
                await app.producer.send_and_wait("other", b"k", b"x" * 1000, 0, None, None)
                acknowledged += 1
        await asyncio.wait_for(app.wait_until_stopped(), 10)
        assert app.crashed
        assert str(app.crash_reason) == f"{path}: cannot be written: database or disk is full"
    assert registry.held(path) is None
    again = await registry.acquire(path)
    assert again.end(("other", 0)) == acknowledged
    await registry.release(again)


async def test_a_rebalance_of_a_worker_without_sensors_is_nothing_to_warn_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = an_app(tmp_path / "log.db")
    app.agent(a_topic(app, "source"), name="keep")(_read_all)
    async with running(app):
        assert app.consumer_generation_id > 0
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


async def test_what_was_read_is_committed_at_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    app = an_app(path, broker_commit_interval=60)
    read = with_agent(app)
    async with running(app):
        await app.producer.send_and_wait("source", b"k", b"v", 2, None, None)
        await asyncio.wait_for(read.wait(), 10)
        await asyncio.sleep(0)  # the agent's loop comes round, which acknowledges the record
    log = await registry.acquire(path)
    assert log.committed("t", ("source", 2)) == 1
    await registry.release(log)


async def test_an_app_that_starts_at_latest_does_not_read_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await registry.acquire(path)
    await log.create_topic("source", 4, {})
    await log.append(("source", 0), b"k", b"old", 0)
    app = an_app(path, consumer_auto_offset_reset="latest")
    with_agent(app)
    async with running(app):
        assert await app.consumer.position(TP("source", 0)) == 1
    await registry.release(log)


async def test_a_worker_goes_on_while_its_log_is_compacted_under_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    app = an_app(path)
    table = app.Table("last", key_type=bytes, value_type=bytes, partitions=4)
    seen = asyncio.Queue[bytes]()

    async def keep(stream: faust.StreamT) -> None:
        async for event in stream.events():
            table[event.key] = event.value
            seen.put_nowait(event.value)

    app.agent(a_topic(app, "source"), name="keep")(keep)
    changelog = table.changelog_topic.get_topic_name()
    async with running(app):
        log = registry.held(path)
        assert log is not None
        values = []
        for number in range(600):
            await app.producer.send_and_wait("source", b"k%d" % (number % 3), b"%d" % number, number % 3, None, None)
            if number % 50 == 0:
                await log.compact(force=True)
            values.append(await asyncio.wait_for(seen.get(), 10))
        await app.producer.flush()
        assert await log.compact(force=True) > 0
        left = [await log.read((changelog, partition), 0, 100) for partition in range(3)]
    assert values == [b"%d" % number for number in range(600)]
    assert [[entry.value for entry in entries] for entries in left] == [[b"597"], [b"598"], [b"599"]]
    assert [log.committed("t", ("source", partition)) for partition in range(3)] == [200, 200, 200]


def test_exactly_once_is_refused(tmp_path: Path) -> None:
    app = an_app(tmp_path / "log.db", processing_guarantee="exactly_once")
    with pytest.raises(InputError, match="the embedded log is at-least-once"):
        _ = app.transport


def test_a_url_without_a_file_is_refused() -> None:
    with pytest.raises(InputError, match="no file is named"):
        _ = faust.App("t", broker="embedded://", web_enabled=False).transport


async def test_an_unknown_sync_in_the_url_is_refused(tmp_path: Path) -> None:
    app = an_app(tmp_path / "log.db", sync="OFF")
    with pytest.raises(InputError, match="sync is one of NORMAL, FULL, EXTRA, not 'OFF'"):
        await app.transport.acquire()


@pytest.mark.parametrize("name", ["log.db", "a b.db", "a,b;c.db", "100%.db", "é?#.db"])
async def test_any_file_name_survives_the_url(tmp_path: Path, name: str) -> None:
    app = an_app(tmp_path / name)
    log = await app.transport.acquire()
    assert log.path == tmp_path / name
    assert (tmp_path / name).exists()
    await registry.release(log)


def test_faust_finds_the_transport_by_its_entry_point() -> None:
    script = (
        "from faust.transport.drivers import by_url; "
        "import sys; assert not any(name.startswith('underhost') for name in sys.modules); "
        "print(by_url('embedded:///x.db').__module__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "underhost.streams.embedded.transport\n"


def test_registering_makes_the_scheme_known_where_no_entry_point_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TRANSPORTS, "aliases", {})
    monkeypatch.setattr(TRANSPORTS, "namespaces", set())
    register()
    assert TRANSPORTS.by_url("embedded:///x.db") is Transport


@pytest.mark.parametrize(
    ("changelog", "rows"),
    [
        pytest.param([], {}, id="empty"),
        pytest.param([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")], {b"a": b"2", b"b": b"1"}, id="compacted"),
        pytest.param([(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"b", None)], {}, id="all deleted"),
        pytest.param([(b"a", b"1"), (b"b", None), (b"a", None)], {}, id="tombstones only"),
    ],
)
async def test_a_table_recovers_from_a_changelog_however_little_compaction_left_of_it(
    tmp_path: Path, changelog: list[tuple[bytes, bytes | None]], rows: dict[bytes, bytes]
) -> None:
    path = tmp_path / "log.db"
    log = await registry.acquire(path)
    name = "t-last-changelog"
    await log.create_topic(name, 4, {"cleanup.policy": "compact", "delete.retention.ms": "0"})
    for key, value in changelog:
        await log.append((name, 1), key, value, 0)
    await log.compact(force=True)
    app = an_app(path)
    table = app.Table("last", key_type=bytes, value_type=bytes, partitions=4)
    with_agent(app)
    async with running(app):
        assert dict(table.items()) == rows
    await registry.release(log)


async def test_a_second_worker_on_the_file_says_who_has_it_and_the_first_goes_on(
    worker: Worker, tmp_path: Path
) -> None:
    first = worker(100)
    until(first, "read")
    app = an_app(tmp_path / "log.db")
    with pytest.raises(Refused, match=rf"is in use by another underhost \(pid {first.pid}\)"):
        await app.start()
    await app.stop()
    assert finish(first) == ([100, sum(range(100))], [100])


async def test_a_worker_loses_nothing_when_it_subscribes_to_more_in_mid_stream(tmp_path: Path) -> None:
    app = an_app(tmp_path / "log.db")
    table = app.Table("last", key_type=bytes, value_type=bytes, partitions=4)
    complete = asyncio.Event()
    everything = asyncio.Event()
    seen = set()

    async def keep(stream: faust.StreamT) -> None:
        async for event in stream.events():
            table[event.key] = event.value
            seen.add(event.value)
            if len(seen) == 400:
                everything.set()

    async def rebalanced(sender: object, **options: object) -> None:
        complete.set()

    source = a_topic(app, "source")
    app.agent(source, name="keep")(keep)
    async with running(app):
        app.on_rebalance_complete.connect(rebalanced, weak=False)
        for number in range(400):
            await app.producer.send_and_wait("source", b"k%d" % (number % 8), b"%d" % number, number % 4, None, None)
            if number == 100:
                subscribed = {tp.topic for tp in app.consumer.assignment()}
                await app.consumer.subscribe(subscribed | {"another"})
        await asyncio.wait_for(complete.wait(), 20)
        await asyncio.wait_for(everything.wait(), 20)
        assert {tp.topic for tp in app.consumer.assignment()} == subscribed | {"another"}
        assert dict(table.items()) == {b"k%d" % key: b"%d" % (392 + key) for key in range(8)}
