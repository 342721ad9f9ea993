"""How many connections are held, and who makes room for whom."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http.budgets import connections
from underhost.agents.http.budgets.bodies import body_of
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


async def test_connections_that_have_ended_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(monkeypatch) as doors:
        for _ in range(10):
            line = await doors.connect("127.0.0.1", HEALTH)
            assert await line.first() == b"HTTP/1.1 200 OK\r\n"
            line.writer.close()
            await line.writer.wait_closed()
