"""Several processes and one file: who may own it, who may look, and what a hard kill leaves."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from support.transport_contract import pod, take
from support.workers.embedded import a_publisher

from underhost.schemas.errors import Refused, Unreachable
from underhost.schemas.topics import PODS
from underhost.streams.admin import describe_topics, ensure_topics
from underhost.streams.embedded import registry
from underhost.streams.embedded.view import FileView, open_view
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings

PROGRAM = Path(__file__).with_name("log_process.py")
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process that owns a log; it has opened it when this returns. What still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen([sys.executable, str(PROGRAM), *arguments], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        return process

    yield run
    for process in running:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def values(path: Path) -> list[int]:
    """The numbers in the file."""
    db = sqlite3.connect(path)
    found = [int(value) for (value,) in db.execute("SELECT value FROM records ORDER BY id")]
    db.close()
    return found


async def test_a_second_process_is_refused_in_one_line_with_the_pid_of_the_first(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = start(str(path), "hold")
    for attempt in (lambda: registry.acquire(path), lambda: ensure_topics(KafkaSettings(embedded=path))):
        with pytest.raises(Refused) as refused:
            await attempt()
        assert str(refused.value) == (
            f"{path} is in use by another underhost (pid {first.pid}); the embedded log belongs to one process: "
            "stop that one, or give --bootstrap-servers"
        )


async def test_the_file_is_free_again_when_its_owner_was_killed(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = start(str(path), "hold")
    first.kill()
    first.wait()
    log = await registry.acquire(path)
    assert log.partition_count("t") == 1
    await registry.release(log)


async def test_the_file_is_free_again_when_its_owner_released_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    for _ in range(3):
        log = await registry.acquire(path)
        await registry.release(log)
    again = await asyncio.gather(*(registry.acquire(path) for _ in range(3)))
    assert len({id(log) for log in again}) == 1
    await asyncio.gather(*(registry.release(log) for log in again))
    assert registry.held(path) is None


async def test_releasing_and_acquiring_at_once_never_meets_its_own_lock(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await registry.acquire(path)
    _, again = await asyncio.gather(registry.release(log), registry.acquire(path))
    await again.create_topic("t", 1, {})
    assert await again.append(("t", 0), None, b"v", 0) == 0
    await registry.release(again)


@pytest.mark.parametrize(
    ("what", "sync"),
    [
        pytest.param("write", "NORMAL", id="one by one"),
        pytest.param("bulk", "NORMAL", id="in batches"),
        pytest.param("bulk", "FULL", id="in batches, with an fsync per commit"),
    ],
)
def test_a_hard_kill_loses_no_acknowledged_record_and_leaves_no_gap(
    start: Start, tmp_path: Path, what: str, sync: str
) -> None:
    path = tmp_path / "log.db"
    for kill_after in (1, 7, 60):
        before = len(values(path)) if path.exists() else 0
        process = start(str(path), what, sync)
        assert process.stdout is not None
        for _ in range(kill_after):
            process.stdout.readline()
        process.kill()
        lines = process.communicate()[0].split("\n")
        acknowledged = [int(line) for line in lines[:-1]]  # those it still said; the last line may be cut
        there = values(path)[before:]
        assert there == list(range(len(there)))
        assert len(there) > max(acknowledged, default=kill_after - 1)


async def test_another_process_is_read_while_it_writes_and_followed(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    start(str(path), "write")
    async with open_view(path) as view:
        assert isinstance(view, FileView)
        position, seen = 0, []
        while len(seen) < 200:
            entries = await view.read(("t", 0), position, 50)
            seen += [int(entry.value or b"-1") for entry in entries]
            position += len(entries)
            if not entries:
                await view.wait_beyond({("t", 0): position})
    assert seen[:200] == list(range(200))


async def test_a_file_whose_owner_was_killed_is_still_read_whole(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    process = start(str(path), "bulk")
    assert process.stdout is not None
    acknowledged = int(process.stdout.readline())
    process.kill()
    process.wait()
    async with open_view(path) as view:
        assert view.end(("t", 0)) > acknowledged
        entries = await view.read(("t", 0), acknowledged, 1)
    assert [entry.value for entry in entries] == [b"%d" % acknowledged]


async def test_reader_and_description_work_over_a_file_that_nobody_owns(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings)
    async with a_publisher(settings.embedded) as publisher:
        await publisher.publish(pod("a", b"1"), pod("b", b"2"), pod("a", None))
    assert registry.held(settings.embedded) is None
    assert await open_reader(settings).state(PODS, "prod-a") == {"prod-a/pod/shop/b": b"2"}
    described = {one.name: one for one in await describe_topics(settings)}
    assert (described["underhost.pods"].records, described["underhost.pods"].partitions) == (3, 4)
    async with aclosing(open_reader(settings).follow([PODS], from_beginning=True)) as records:
        assert [record.value for record in await take(records, 3)] == [b"1", b"2", None]


async def test_a_file_that_does_not_exist_is_unreachable_and_not_made(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "none.db")
    with pytest.raises(
        Unreachable, match=r"none\.db: no such file; `underhost run` makes it: name the log with --embedded or --config"
    ):
        await describe_topics(settings)
    with pytest.raises(Unreachable, match="no such file"):
        await open_reader(settings).state(PODS, "prod-a")
    assert not settings.embedded.exists()
