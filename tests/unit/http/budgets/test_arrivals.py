"""Who is let in next, in how many turns of the event loop, and what becomes of the others."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import uvloop
from prometheus_client import CollectorRegistry

from underhost.agents.http.budgets import arrivals
from underhost.agents.http.budgets.arrivals import Turns
from underhost.agents.http.server import HttpServer, start_server

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
OK = b"HTTP/1.1 200 OK"
NewLoop = Callable[[], asyncio.AbstractEventLoop]


@pytest.mark.parametrize(
    ("come", "lost", "let_in"),
    [
        pytest.param(["a1", "a2", "a3"], [], ["a1", "a2", "a3"], id="of one client, in their order"),
        pytest.param(["a1", "a2", "a3", "b1"], [], ["a1", "b1", "a2", "a3"], id="one of each client in turn"),
        pytest.param(["a1", "a2", "b1", "a3", "b2"], ["a3"], ["a1", "b1", "a2", "b2"], id="who has most loses one"),
        pytest.param(["a1", "a2", "a3", "a4", "a5"], ["a5"], ["a1", "a2", "a3", "a4"], id="nobody else is there"),
        pytest.param(["a1", "b1", "c1", "d1", "e1"], ["e1"], ["a1", "b1", "c1", "d1"], id="everybody has one"),
    ],
)
def test_one_of_each_client_is_next(come: list[str], lost: list[str], let_in: list[str]) -> None:
    turns = Turns[str](4)
    assert [one for name in come if (one := turns.put(name[0], name)) is not None] == lost
    assert [turns.take() for _ in range(len(turns))] == let_in
    assert len(turns) == 0


@asynccontextmanager
async def listening() -> AsyncIterator[HttpServer]:
    server = await start_server("127.0.0.1:0", unready=dict, registry=CollectorRegistry(), refresh=lambda: None)
    yield server
    await server.close()


@contextmanager
def connected(port: int, address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that are in the listener's queue before the event loop has its next turn."""
    lines = [socket.create_connection(("127.0.0.1", port), source_address=(address, 0)) for _ in range(count)]
    for line in lines:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        line.setblocking(False)
    yield lines
    for line in lines:
        line.close()


async def read(line: socket.socket) -> tuple[bytes, int]:
    """What is read of the first line, nothing where it was cut off; and after how many turns of the loop."""
    turns = 0
    while True:
        try:
            return line.recv(15), turns
        except BlockingIOError:
            turns += 1
            await asyncio.sleep(0)
        except ConnectionError:
            return b"", turns


@LOOPS
def test_behind_a_crowd_of_one_client_another_waits_for_a_few_turns_of_the_loop(loop: NewLoop) -> None:
    async def waited() -> int:
        async with listening() as server:
            with connected(server.port, "127.0.0.2", 200), connected(server.port, "127.0.0.1", 1) as (probe,):
                answer, turns = await read(probe)
                assert answer == OK
                return turns

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(waited()) < 20  # it was 204 with uvloop's own server


@LOOPS
def test_everybody_of_a_crowd_is_let_in_at_last(loop: NewLoop) -> None:
    async def answered() -> None:
        async with listening() as server:
            with connected(server.port, "127.0.0.1", 200) as lines:
                assert [(await read(line))[0] for line in lines] == [OK] * 200

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(answered())


@contextmanager
def without_descriptors() -> Iterator[None]:
    """The process can open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@LOOPS
def test_who_finds_no_descriptor_free_is_let_in_when_there_is_one(
    loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "PAUSE", 0.01)

    async def answered() -> None:
        async with listening() as server:
            with connected(server.port, "127.0.0.1", 1) as (line,):
                with without_descriptors():
                    for _ in range(50):
                        await asyncio.sleep(0)
                assert (await read(line))[0] == OK

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(answered())


async def test_who_waits_as_the_server_ends_is_cut_off() -> None:
    async with listening() as server:
        with connected(server.port, "127.0.0.1", 40) as lines:
            await asyncio.sleep(0)
            await server.close()
            assert {(await read(line))[0] for line in lines} <= {OK, b""}
