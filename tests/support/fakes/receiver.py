"""An HTTP server on loopback that takes what alerting sends, and can be made to refuse it or to be away."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web


class Receiver:
    """Keeps (path, headers, decoded body) of every request.

    `answers` are the statuses of the next ones; after them `judge` tells each body's, by default 200. `certificate`:
    PEM of a certificate and its key; with it TLS is spoken. `why`: what is said to whoever is not answered 200.
    """

    def __init__(
        self,
        *answers: int,
        certificate: Path | None = None,
        judge: Callable[[Any], int] = lambda body: 200,
        why: bytes = b"no: <why>",
    ) -> None:
        self.answers, self.judge, self._why = list(answers), judge, why
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(certificate)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.port = 0
        self._came = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens, or did."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Receiver":
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen, on the port of before if there was one."""
        app = web.Application()
        app.router.add_post("/{path:.*}", self._take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        where = "127.0.0.1", self.port
        await web.TCPSite(self._runner, *where, reuse_address=True, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def requested(self, count: int) -> list[Any]:
        """The bodies, once there are this many. Raises TimeoutError, which says what came instead."""
        try:
            async with asyncio.timeout(30), self._came:
                await self._came.wait_for(lambda: len(self.requests) >= count)
        except TimeoutError:
            came = [body for _, _, body in self.requests]
            raise TimeoutError(f"{count} requests were awaited, came: {came}") from None
        return [body for _, _, body in self.requests]

    async def _take(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        async with self._came:
            self.requests.append((request.path, dict(request.headers), body))
            self._came.notify_all()
        status = self.answers.pop(0) if self.answers else self.judge(body)
        return web.Response(status=status, body=b"" if status == 200 else self._why)
