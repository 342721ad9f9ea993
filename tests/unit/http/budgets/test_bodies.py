"""Bodies: plain, of bounded size, and bounded together."""

import asyncio
import gc
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry
from support.memory import traced

from underhost.agents.http.budgets import bodies
from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.budgets.connections import CONNECTIONS, HeldConnections
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server

JSON = {"Content-Type": "application/json"}


@dataclass
class Room:
    """A server with one route, which reads a body and waits until it may answer."""

    address: str
    client: aiohttp.ClientSession
    may_answer: asyncio.Event
    read: asyncio.Event
    bodies: list[bytearray]

    async def post(self, data: bytes, **headers: str) -> tuple[int, str]:
        """Status and text."""
        async with self.client.post(f"{self.address}echo", data=data, headers={**JSON, **headers}) as response:
            return response.status, await response.text()


@pytest.fixture
async def room(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(bodies, "TOGETHER", 100)
    may_answer, read, found = asyncio.Event(), asyncio.Event(), list[bytearray]()
    may_answer.set()

    async def echo(request: web.Request) -> web.Response:
        found.append(await body_of(request, 60))
        read.set()
        await may_answer.wait()
        return web.Response(text=f"{len(found[-1])}")

    registry, routes = CollectorRegistry(), HttpRoutes([web.post("/echo", echo)], [], [])
    server = await start_server("127.0.0.1:0", unready=dict, registry=registry, refresh=lambda: None, routes=routes)
    async with aiohttp.ClientSession() as client:
        yield Room(server.address, client, may_answer, read, found)
    await server.close()


async def pieces(size: int) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for _ in range(size):
        yield b" "


async def test_a_body_that_does_not_say_how_long_it_is_has_the_common_bound(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY", 50)
    assert await room.post(b" " * 55) == (200, "55")
    for size, status in ((50, 200), (55, 413)):
        async with room.client.post(f"{room.address}echo", data=pieces(size), headers=JSON) as response:
            assert response.status == status


async def test_a_body_has_a_size_that_is_told_before_it_is_read_or_while_it_is(room: Room) -> None:
    assert await room.post(b" " * 60) == (200, "60")
    assert (await room.post(b" " * 61))[0] == 413
    for size, status in ((60, 200), (61, 413)):
        async with room.client.post(f"{room.address}echo", data=pieces(size), headers=JSON) as response:
            assert response.status == status


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "deflate", "br", "zstd", "gzip, gzip", "unheard-of"])
async def test_a_body_in_a_content_coding_is_refused_unread(room: Room, coding: str) -> None:
    status, text = await room.post(gzip.compress(b" " * 50), **{"Content-Encoding": coding})
    assert (status, "a body in a content coding is not read; send it plain" in text) == (415, True)
    assert room.bodies == []


async def test_a_body_whose_coding_is_identity_is_plain(room: Room) -> None:
    assert await room.post(b" ", **{"Content-Encoding": "identity"}) == (200, "1")


async def test_all_bodies_together_have_a_bound_until_they_are_answered(room: Room) -> None:
    room.may_answer.clear()
    first = asyncio.ensure_future(room.post(b" " * 60))
    await room.read.wait()
    status, text = await room.post(b" " * 41)
    assert (status, "the bodies of other requests take all the room; ask again" in text) == (503, True)
    room.may_answer.set()
    assert await first == (200, "60")
    assert await room.post(b" " * 41) == (200, "41")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({f"X-{number}": "1" for number in range(30)}, 200, id="30 headers"),
        pytest.param({f"X-{number}": "1" for number in range(60)}, 400, id="60 headers"),
        pytest.param({"X-Long": "x" * 4000}, 200, id="4,000 bytes"),
        pytest.param({"X-Long": "x" * 5000}, 400, id="5,000 bytes"),
    ],
)
async def test_headers_have_bounds(room: Room, headers: dict[str, str], status: int) -> None:
    assert (await room.post(b" ", **headers))[0] == status


def test_nothing_is_remembered_of_a_request_that_is_answered() -> None:
    held, request = bodies.HeldBodies(), dict[str, int]()
    for _ in range(3):
        held.take(request, 10)  # type: ignore[arg-type]
        held.give_back(request)  # type: ignore[arg-type]
    assert (held.size, request) == (0, {})


def announced(size: int, sent: bytes, lost: Exception | None = None) -> web.Request:
    """A request that announces so many bytes, what its client has sent of them, and how the connection ended."""
    loop, app = asyncio.get_running_loop(), web.Application()
    app[bodies.HELD], app[bodies.SENDING], app[CONNECTIONS] = bodies.HeldBodies(), 60.0, HeldConnections()
    connected = BaseProtocol(loop)
    connected.connection_made(asyncio.Transport())
    content = StreamReader(connected, 64 << 20, loop=loop)
    content.feed_data(sent)
    if lost is None:
        content.feed_eof()
    else:
        loop.call_soon(loop.call_soon, content.set_exception, lost)
    return make_mocked_request("POST", "/", {"Content-Length": str(size)}, app=app, payload=content)


async def test_what_is_announced_and_not_sent_takes_no_memory() -> None:
    request = announced(64 << 20, b"{}")
    with traced() as used:
        assert await body_of(request, 64 << 20) == b"{}"
    assert used.most < 1 << 20


async def test_what_came_over_a_lost_connection_is_not_kept_with_its_error() -> None:
    gc.collect()
    gc.disable()  # the stream keeps the error, and the error the frames that it came through
    try:
        with traced() as used:
            request = announced(64 << 20, bytes(32 << 20), ConnectionResetError())
            with pytest.raises(ConnectionResetError):
                await body_of(request, 64 << 20)
    finally:
        gc.enable()
    assert used.held < 1 << 20


async def test_a_client_that_has_left_before_its_body_is_read_is_no_defect() -> None:
    request = announced(9, b"", ConnectionResetError())
    request.content._protocol.connection_lost(None)
    with pytest.raises(ConnectionError):
        await body_of(request)
