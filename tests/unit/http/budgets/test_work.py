"""Long work: for so long, and only while somebody waits for it."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from underhost.agents.http.budgets import work
from underhost.agents.http.budgets.work import Bench
from underhost.agents.http.guard import RequestRefused
from underhost.agents.schedule.progress import told


class Connection:
    """A transport that a test closes."""

    def __init__(self) -> None:
        self.closed = False

    def is_closing(self) -> bool:
        """Whether the client has left."""
        return self.closed


def asked(connection: Connection) -> Any:
    return SimpleNamespace(transport=connection)


def for_ever(begun: threading.Event) -> None:
    """Says how far it is, and has no end."""
    while True:
        for _ in told("working", [1]):
            begun.set()


async def test_work_is_done_in_a_thread_of_its_own() -> None:
    bench = Bench("test", 60.0, "use something else")
    assert (await bench.do(asked(Connection()), lambda: threading.current_thread().name)).startswith("test")
    with pytest.raises(ValueError, match="broken"):
        await bench.do(asked(Connection()), lambda: int("broken"))


async def test_work_that_takes_too_long_ends_and_its_thread_is_free() -> None:
    bench = Bench("test", 0.0, "use something else")
    with pytest.raises(RequestRefused, match="it takes longer than 0 s; use something else") as refused:
        await bench.do(asked(Connection()), lambda: for_ever(threading.Event()))
    assert refused.value.status == 422


class Picture:
    """What work holds, much of it perhaps."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("leaves", [pytest.param(False, id="refused"), pytest.param(True, id="given up")])
async def test_what_failed_work_held_is_gone_with_its_answer(leaves: bool) -> None:
    bench, pictures = Bench("test", 60.0, ""), list[weakref.ref[Picture]]()

    def fail(connection: Connection) -> None:
        picture = Picture()
        pictures.append(weakref.ref(picture))
        connection.closed = leaves
        if leaves:
            for_ever(threading.Event())
        raise RequestRefused(422, f"no room for {picture}")

    for _ in range(2):  # once the thread has begun the second, it has let go of the first
        connection = Connection()
        with pytest.raises(RequestRefused):
            await bench.do(asked(connection), partial(fail, connection))
    assert pictures[0]() is None


async def test_work_ends_when_its_client_leaves_and_the_next_begins() -> None:
    bench, leaving, begun = Bench("test", 3600.0, ""), Connection(), threading.Event()
    first = asyncio.ensure_future(bench.do(asked(leaving), lambda: for_ever(begun)))
    waiting = Connection()
    second = asyncio.ensure_future(bench.do(asked(waiting), lambda: for_ever(begun)))
    await asyncio.to_thread(begun.wait)
    leaving.closed = waiting.closed = True
    for one in (first, second):
        with pytest.raises(RequestRefused) as refused:
            await one
        assert refused.value.status == 499
    assert await bench.do(asked(Connection()), lambda: 7) == 7


async def test_work_ends_when_the_server_does() -> None:
    bench, begun = Bench("test", 3600.0, ""), threading.Event()
    doing = asyncio.ensure_future(bench.do(asked(Connection()), lambda: for_ever(begun)))
    await asyncio.to_thread(begun.wait)
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert await bench.do(asked(Connection()), lambda: 7) == 7


class Time:
    """The clock of work whose event loop has not looked since 100; it rests until the test lets it go on."""

    def __init__(self) -> None:
        self.now, self.resting, self.go_on = 100.0, threading.Event(), threading.Event()

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """The work rests."""
        self.resting.set()
        self.go_on.wait()


async def test_work_rests_while_the_event_loop_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Time(), list[int]()
    monkeypatch.setattr(work, "time", clock)
    monkeypatch.setattr(work, "LOOK", 3600.0)

    def steps() -> None:
        for step in told("working", [1, 2]):
            done.append(step)
            clock.now += 2 * work.BEHIND

    working = asyncio.create_task(Bench("test", 60.0, "use something else").do(asked(Connection()), steps))
    await asyncio.to_thread(clock.resting.wait)
    assert done == [1]
    clock.now = 100.0
    clock.go_on.set()
    await working
    assert done == [1, 2]
