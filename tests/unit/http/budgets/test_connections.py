"""How many connections are held, and who makes room for whom."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http.budgets import connections
from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.budgets.connections import HeldConnections
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import HttpServer, start_server

ASKED = b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HALF_BODY = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


@dataclass
class Line:
    """A client's connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, sent: bytes) -> None:
        """Send something."""
        self.writer.write(sent)
        await self.writer.drain()

    async def first(self) -> bytes:
        """The first line of the answer; nothing where the connection was cut off."""
        async with asyncio.timeout(60):
            try:
                return await self.reader.readline()
            except ConnectionError:
                return b""


@dataclass
class Doors:
    """A server that holds two connections of a client and three in all, and one route that waits."""

    server: HttpServer
    begun: asyncio.Semaphore
    may_end: asyncio.Event
    lines: list[Line]

    async def connect(self, address: str, sent: bytes = b"") -> Line:
        """A connection from an address of this machine, and what it sends at once."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, local_addr=(address, 0))
        line = Line(reader, writer)
        self.lines.append(line)
        await line.ask(sent)
        return line


@asynccontextmanager
async def listening(patch: pytest.MonkeyPatch) -> AsyncIterator[Doors]:
    patch.setattr(connections, "MOST", 3)
    patch.setattr(connections, "EACH", 2)
    begun, may_end = asyncio.Semaphore(0), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        begun.release()
        await body_of(request)
        await may_end.wait()
        return web.Response()

    routes = HttpRoutes([web.get("/slow", slow), web.post("/slow", slow)], [], [])
    server = await start_server(
        "127.0.0.1:0", unready=dict, registry=CollectorRegistry(), refresh=lambda: None, routes=routes
    )
    doors = Doors(server, begun, may_end, [])
    yield doors
    may_end.set()
    for line in doors.lines:
        line.writer.close()
    await server.close()


@pytest.mark.parametrize("sent", [b"", b"GET /heal", HALF_BODY], ids=["nothing", "half a request", "half a body"])
async def test_who_asks_nothing_makes_room_for_who_comes(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as doors:
        first, second = [await doors.connect("127.0.0.1", sent) for _ in range(2)]
        if sent == HALF_BODY:
            await doors.begun.acquire()
            await doors.begun.acquire()
        third = await doors.connect("127.0.0.1", HEALTH)
        assert await third.first() == b"HTTP/1.1 200 OK\r\n"
        assert await first.first() == b""
        await second.ask(HEALTH[len("GET /heal") :] if sent else HEALTH)
        if sent != HALF_BODY:
            assert await second.first() == b"HTTP/1.1 200 OK\r\n"


async def test_an_answer_under_way_is_never_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as doors:
        asked = [await doors.connect("127.0.0.1", ASKED) for _ in range(2)]
        for _ in asked:
            await doors.begun.acquire()
        assert await (await doors.connect("127.0.0.1", HEALTH)).first() == b""
        assert await (await doors.connect("127.0.0.2", HEALTH)).first() == b"HTTP/1.1 200 OK\r\n"
        doors.may_end.set()
        assert [await line.first() for line in asked] == [b"HTTP/1.1 200 OK\r\n"] * 2


async def test_of_all_clients_the_one_with_most_connections_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as doors:
        alone = await doors.connect("127.0.0.1", HEALTH)
        assert await alone.first() == b"HTTP/1.1 200 OK\r\n"
        first, _ = [await doors.connect("127.0.0.2") for _ in range(2)]
        assert await (await doors.connect("127.0.0.3", HEALTH)).first() == b"HTTP/1.1 200 OK\r\n"
        assert await first.first() == b""
        await alone.ask(HEALTH)
        assert await alone.reader.readuntil(b"HTTP/1.1 200 OK\r\n")


async def test_who_leaves_or_speaks_no_http_leaves_nothing_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(monkeypatch) as doors:
        leaving = await doors.connect("127.0.0.1", HALF_BODY)
        await doors.begun.acquire()
        leaving.writer.transport.abort()
        for sent in (b"GET /\x80 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX\x00: 1\r\n\r\n"):
            assert b" 400 " in await (await doors.connect("127.0.0.2", sent)).first()
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


class Reader(asyncio.Transport):
    """A connection of which so many bytes are not read yet."""

    def __init__(self, unread: int) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.unread, self.closed = unread, False

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`."""
        return self.unread

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self.closed

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self.closed = True


def test_who_reads_nothing_of_an_answer_is_cut_off_after_a_while() -> None:
    held, reading, stuck, growing, idle = HeldConnections(), Reader(100), Reader(100), Reader(100), Reader(0)
    readers = (reading, stuck, growing, idle)
    assert all(map(held.admit, readers))
    for now in (0.0, 10.0, 20.0, 21.0):
        held.let_go_stuck(now)
        assert [one.closed for one in readers] == [False, now > 20, now > 20, False]
        reading.unread -= 10
        growing.unread += 10  # a follower who is sent more, and reads nothing


def test_answers_that_wait_to_be_read_take_so_much_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD", 100)
    held, readers = HeldConnections(), [Reader(size) for size in (40, 50, 60, 0)]
    assert all(map(held.admit, readers))
    held.let_go_unread()
    assert [one.closed for one in readers] == [False, False, True, False]


def an_answer(size: int) -> web.Response:
    return web.Response(body=bytes(size))


def test_who_reads_nothing_is_looked_for_once_so_much_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD", 100)
    monkeypatch.setattr(connections, "ANSWERED", 50)
    held, reader = HeldConnections(), Reader(101)
    assert held.admit(reader)
    for answer, closed in ((web.StreamResponse(), False), (an_answer(50), False), (an_answer(1), True)):
        held.answered(answer)
        assert reader.closed is closed


async def test_requests_that_do_not_end_take_so_much_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BEGUN", 3000)
    async with listening(monkeypatch) as doors:
        large = await doors.connect("127.0.0.1", b"GET / HTTP/1.1\r\nX: " + b"y" * 2000)
        small = await doors.connect("127.0.0.2", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 900)
        other = await doors.connect("127.0.0.3", HEALTH[:-2] + b"X: " + b"y" * 900 + b"\r\n\r\n")
        assert await large.first() == b""
        assert await other.first() == b"HTTP/1.1 200 OK\r\n"
        await small.ask(b"\r\n\r\n")
        assert await small.first() == b"HTTP/1.1 200 OK\r\n"


async def test_a_body_does_not_count_as_a_request_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BEGUN", 3000)
    async with listening(monkeypatch) as doors:
        head = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
        line = await doors.connect("127.0.0.1", head)
        await doors.begun.acquire()
        doors.may_end.set()
        for _ in range(9):
            await line.ask(b" " * 100_000)
        assert await line.first() == b"HTTP/1.1 200 OK\r\n"


async def test_connections_that_have_ended_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as doors:
        for _ in range(10):
            line = await doors.connect("127.0.0.1", HEALTH)
            assert await line.first() == b"HTTP/1.1 200 OK\r\n"
            line.writer.close()
            await line.writer.wait_closed()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_new_connection_takes_the_place_of_an_idle_one_on_every_event_loop(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asking() -> list[bytes]:
        async with listening(monkeypatch) as doors:
            idle = [await doors.connect("127.0.0.1") for _ in range(2)]
            answered = await doors.connect("127.0.0.1", HEALTH)
            return [await line.first() for line in (answered, idle[0])]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(asking()) == [b"HTTP/1.1 200 OK\r\n", b""]
