"""The server that a worker of the sieve speaks to: nothing is said of a worker that dies while it is closed."""

import asyncio
import ssl
import time
from asyncio.sslproto import SSLProtocol
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.processes.authority import Authority
from trust.sieve.forwarder import Forwarder

WATCH = b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Waiting(Forwarder):
    """Answers nothing; `asked` is set once it was asked."""

    asked: asyncio.Event

    def write_of(self, request: web.Request, body: bytes) -> str | None:
        """All is read."""
        return None

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Not at all."""
        self.asked.set()
        await asyncio.Event().wait()
        return web.Response()


async def none(when: str, write: str) -> None:
    """Nobody is told of writes."""


async def test_a_worker_that_dies_while_the_server_closes_is_no_fault_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path, "ca")
    made = authority.certificate("server", "IP:127.0.0.1")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(made.cert, made.key)
    trusting = ssl.create_default_context(cafile=authority.cert)
    lost = SSLProtocol.connection_lost

    def busy(self: Any, error: Exception | None) -> None:
        """The loop learns that a worker has gone when it should have stopped to wait for it: the machine is busy."""
        lost(self, error)
        until = time.monotonic() + 0.3
        while self._server_side and time.monotonic() < until:
            pass

    monkeypatch.setattr(SSLProtocol, "connection_lost", busy)
    view = Waiting("https://127.0.0.1:1", trusting, none)
    view.asked = asyncio.Event()
    async with view.serving(serving) as address:
        port = int(address.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(WATCH)
        await view.asked.wait()
        asyncio.get_running_loop().call_later(0.02, writer.transport.abort)
    assert [record.getMessage() for record in caplog.records] == []
