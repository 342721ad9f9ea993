"""One write over the connections of an aiohttp session, past the session: less than half of what a binding cost in it.

In: a request's method, address, headers and body. Out: status, headers and body of its answer. aiohttp connects, keeps
connections, encrypts and parses. Left out is what its session does for each request besides: cookies, redirects,
proxies, bodies that stream, and objects for all of these. What needs one of them is left to the session.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import aiohttp
from yarl import URL

from underhost.streams.before_write import before_write
from underhost.streams.limits import Limits


class Reply(NamedTuple):
    """What the server has said."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """Writes to one server. Made in the event loop of the session, which is not closed here.

    `server` is the address before each path, `server_hostname` the name in its certificate where that is another one.
    """

    def __init__(self, session: aiohttp.ClientSession, server: str, server_hostname: str | None) -> None:
        self.session, url = session, URL(server)
        self._host, self._prefix = url.host_port_subcomponent, url.raw_path.rstrip("/")
        self._limits = Limits()
        # By this the connector tells which connections are alike; nothing of it is sent.
        self._alike = aiohttp.ClientRequest(
            "POST", url, loop=asyncio.get_running_loop(), session=session, server_hostname=server_hostname
        )

    async def write(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, timeout: aiohttp.ClientTimeout
    ) -> Reply:
        """Send it once, and read the answer. `path` is quoted, and holds the query.

        Raises aiohttp.ClientError, HttpProcessingError or OSError (TimeoutError, too); then it may have been done.
        """
        connector = self.session.connector
        assert connector is not None  # the session is open
        with self._limits.begin(timeout.total):
            connection = await connector.connect(self._alike, [], timeout)
            try:
                answer = await self._ask(connection, self._head(method, path, headers, len(body)) + body)
            except BaseException:  # a cancellation, too: nobody else must get the answer to this
                connection.close()
                raise
            connection.release()
            return answer

    async def _ask(self, connection: aiohttp.connector.Connection, request: bytes) -> Reply:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params()
        before_write()
        transport.write(request)
        while True:
            message, payload = await protocol.read()
            if message.code >= 200:  # before it may come what is only on the way
                # Short ones are there already, and to wait for no more costs as much as reading.
                body = payload.read_nowait() if payload.is_eof() else await payload.read()
                return Reply(message.code, message.headers, body)

    def _head(self, method: str, path: str, headers: Mapping[str, str], length: int) -> bytes:
        fields = _fields(self._host or "", tuple(headers.items()))
        return f"{method} {self._prefix}{path} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n".encode("latin-1")


@lru_cache(maxsize=16)  # writes of one kind have the same ones
def _fields(host: str, headers: tuple[tuple[str, str], ...]) -> str:
    """The lines of these headers."""
    fields = {"Host": host, **dict(headers)}
    for name, value in fields.items():
        if not value.isprintable():
            raise ValueError(f"header {name} holds a line break, or another character that no header may hold")
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())
