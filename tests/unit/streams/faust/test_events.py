"""The stream of our agents: when a record counts as done, and what ends it."""

import asyncio
from pathlib import Path

import faust
import pytest
from support.workers.embedded import a_topic, an_app, committed, running

from underhost.streams.faust.events import AT_ONCE


async def send(app: faust.App, *values: bytes) -> None:
    """The records, one after another, into one partition."""
    for value in values:
        await app.producer.send_and_wait("orders", b"k", value, 0, None, None)


async def test_a_record_is_done_when_the_next_one_is_asked_for(tmp_path: Path) -> None:
    path, waits = tmp_path / "log.db", asyncio.Event()
    app = an_app(path, broker_commit_interval=60)

    async def take(stream: faust.StreamT) -> None:
        async for event in stream.events():
            if event.value == b"third":
                waits.set()
                await asyncio.Event().wait()

    app.agent(a_topic(app, "orders"), name="take")(take)
    async with running(app):
        await send(app, b"first", b"second", b"third", b"fourth")
        await asyncio.wait_for(waits.wait(), 60)
        await app.consumer.commit()
        assert await committed(path) == 2


async def test_the_record_at_which_an_agent_was_cut_off_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async def read_until(last: bytes, *sent: bytes) -> list[bytes]:
        app, read, there = an_app(path, broker_commit_interval=60), list[bytes](), asyncio.Event()

        async def take(stream: faust.StreamT) -> None:
            async for event in stream.events():
                read.append(event.value)
                if event.value == last:
                    there.set()
                    await asyncio.Event().wait()

        app.agent(a_topic(app, "orders"), name="take")(take)
        async with running(app):
            await send(app, *sent)
            await asyncio.wait_for(there.wait(), 60)
        return read

    assert await read_until(b"second", b"first", b"second") == [b"first", b"second"]
    assert await read_until(b"third", b"third") == [b"second", b"third"]


async def test_an_agent_that_never_waits_leaves_turns_to_others(tmp_path: Path) -> None:
    app, waiting, read = an_app(tmp_path / "log.db"), asyncio.Event(), asyncio.Event()
    turns, seen = 0, list[int]()

    async def take(stream: faust.StreamT) -> None:
        async for event in stream.events():
            if event.value == b"0":
                await waiting.wait()
            seen.append(turns)
            if len(seen) == 3 * AT_ONCE:
                read.set()

    app.agent(a_topic(app, "orders"), name="take")(take)
    async with running(app):
        await send(app, *[b"%d" % number for number in range(3 * AT_ONCE)])
        waiting.set()
        while not read.is_set():
            turns += 1
            await asyncio.sleep(0)
    assert 2 <= seen[-1] - seen[0] <= AT_ONCE, "a turn for each so many records, not one for each"


async def test_a_stream_that_is_ended_ends_its_agent_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app, begun = an_app(tmp_path / "log.db"), asyncio.Queue[None]()

    async def take(stream: faust.StreamT) -> None:
        begun.put_nowait(None)
        async for _ in stream.events():
            """Nothing comes."""

    app.agent(a_topic(app, "orders"), name="take")(take)
    async with running(app):
        await asyncio.wait_for(begun.get(), 60)
    assert begun.empty()
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
