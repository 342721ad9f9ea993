"""A TLS server in front of a real one that speaks HTTP/1.1: every request passes through it, and can be cut off.

In: the address of the real server, and who is told of each write. Out: an address for a worker. Which requests are
writes, and whose answers are held back, is left to the subclasses (`apiserver.py`, `vcenter.py`).
"""

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

BEFORE, AFTER = "before", "after"
LARGEST = 16 * 2**20
"""Bytes of a request: far more than a worker ever sends."""
OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "content-encoding"}
"""Headers that belong to one connection, or to a body that is written anew."""

OnWrite = Callable[[str, str], Awaitable[None]]
"""Told of (`before` or `after`, the write) while the request waits. Raises Cut: the request ends here."""


class Cut(Exception):
    """The connection is dropped: before the write, which then is not made, or after it, which then has no answer."""


class Forwarder(ABC):
    """Passes requests on to `target`; `trusted` is how that is verified."""

    def __init__(self, target: str, trusted: ssl.SSLContext, on_write: OnWrite) -> None:
        self._target, self._trusted, self._on_write = target.rstrip("/"), trusted, on_write
        self._answering: set[asyncio.Task[web.StreamResponse]] = set()
        self._handling: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext) -> AsyncIterator[str]:
        """Serve until the end of the block; gives `https://127.0.0.1:PORT`."""
        app = web.Application(client_max_size=LARGEST)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_shutdown.append(self._let_go)
        # A killed worker's watches end with it.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        connector = aiohttp.TCPConnector(ssl=self._trusted, limit=0)
        endless = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=endless, cookie_jar=aiohttp.DummyCookieJar()
        ) as self._session:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
                yield f"https://127.0.0.1:{runner.addresses[0][1]}"
            finally:
                await runner.cleanup()

    @abstractmethod
    def write_of(self, request: web.Request, body: bytes) -> str | None:
        """The write that is asked for, in words that are the same in every plan; None where it only reads."""

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """The real server's answer; a subclass may hold it back, or change it."""
        async with self.ask(request, body) as answer:
            return self.passed_on(answer, await answer.read())

    def ask(
        self, request: web.Request, body: bytes = b"", query: str | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Ask the real server the same, or with another query."""
        headers = {key: value for key, value in request.headers.items() if key.lower() not in OF_THE_CONNECTION}
        raw = request.rel_url.raw_query_string if query is None else query
        url = URL(f"{self._target}{request.rel_url.raw_path}{'?' + raw if raw else ''}", encoded=True)
        return self._session.request(request.method, url, headers=headers, data=body or None)

    @staticmethod
    def passed_on(answer: aiohttp.ClientResponse, data: bytes) -> web.Response:
        """The answer with this body."""
        response = web.Response(status=answer.status, body=data)
        for key, value in answer.headers.items():
            if key.lower() not in OF_THE_CONNECTION | {"content-type"}:
                response.headers.add(key, value)
        response.headers["Content-Type"] = answer.headers.get("Content-Type", "application/json")
        return response

    def _kept(self, answering: Coroutine[Any, Any, web.StreamResponse]) -> "asyncio.Task[web.StreamResponse]":
        """A task that lasts until it is done, whoever stops waiting for it."""
        task = asyncio.ensure_future(answering)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    async def _let_go(self, app: web.Application) -> None:
        """End the requests before aiohttp waits for them: it stumbles over a worker that dies as it stops waiting."""
        handling = list(self._handling)
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        body = await request.read()
        write = self.write_of(request, body)
        try:
            if write is not None:
                await self._on_write(BEFORE, write)
            if write is None:
                return await self.answer(request, body)
            # What has left a worker is carried out, though it may be dead by then: not even its end tears it in two.
            response = await asyncio.shield(self._kept(self.answer(request, body)))
            if response.status < 300:
                await self._on_write(AFTER, write)
        except (Cut, aiohttp.ClientError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return response
