"""How many connections are held: of all clients, and of one. Who asks nothing makes room for who comes.

In: new connections. Out: those that are held go on to the server. Where there are too many, the one that has been there
for longest without a request is cut off: half a request, or half a body, is none. So a probe always gets in, whoever
else keeps connections open. Where all of them are being answered, the new one is cut off. Answers that nobody reads are
let go after a while, or at once where they take too much memory together; so are requests that do not end.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from underhost.agents.http.budgets.arrivals import Entrance
from underhost.agents.http.budgets.places import client_of
from underhost.agents.http.budgets.work import LEFT, has_left
from underhost.agents.http.guard import RequestRefused

MOST, EACH = 512, 256
"""Connections in all, and of one client: a process often has 1,024 descriptors."""
UNREAD, ANSWERED = 32 << 20, 1 << 20
"""Bytes of answers that wait to be read, of all clients; and of those given between two looks at how many they are."""
BEGUN = 16 << 20
"""Bytes of what was sent and is no whole request yet, of all clients; what is made of headers takes twice as much."""
LOOK, STUCK = 5.0, 20.0
"""Seconds between two looks at what is not read; and for which a client may read nothing of its answer."""


class HeldConnections:
    """The connections that are open."""

    def __init__(self) -> None:
        self._most, self._each = MOST, EACH
        self._held: dict[str, dict[asyncio.Transport, None]] = {}
        self._busy: set[asyncio.Transport] = set()
        self._unread: dict[asyncio.Transport, tuple[int, float]] = {}
        self._answered = 0
        self._reading: set[asyncio.Transport] = set()
        self._begun: dict[asyncio.Transport, int] = {}
        self._begun_size = 0

    def enter(
        self, sockets: list[socket.socket], server: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> Entrance:
        """Listening sockets whose connections are counted."""
        return Entrance(sockets, lambda: _Door(self, server), tls)

    def admit(self, transport: asyncio.Transport) -> bool:
        """Whether a new connection is held; for its sake others may be cut off."""
        client = _client(transport)
        own = self._held.setdefault(client, {})
        if len(own) >= self._each:
            self._make_room(own, self._each)
        if self._count() >= self._most:
            for one in sorted(self._held.values(), key=len, reverse=True):
                self._make_room(one, len(one) - self._count() + self._most)
                if self._count() < self._most:
                    break
        fits = len(own) < self._each and self._count() < self._most
        if fits:
            own[transport] = None
        self._held = {name: held for name, held in self._held.items() if held}
        return fits

    def _count(self) -> int:
        return sum(map(len, self._held.values()))

    def _make_room(self, own: dict[asyncio.Transport, None], most: int) -> None:
        """Forget those that have ended; then cut off those that ask nothing, the oldest first, until one is free."""
        for transport in [one for one in own if one.is_closing()]:
            del own[transport]
        for transport in [one for one in own if one not in self._busy]:
            if len(own) < most:
                return
            del own[transport]
            transport.abort()

    # ----------------------------------------------------------------------------------------- what is not read
    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """While the server listens, it looks for answers that nobody reads."""
        looking = asyncio.ensure_future(self._look())
        yield
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.let_go_stuck(time.monotonic())

    def let_go_stuck(self, now: float) -> None:
        """Cut off who has read nothing of an answer for too long; `now` in seconds."""
        before, self._unread = self._unread, {}
        for transport, size in self._waiting():
            last, since = before.get(transport, (size + 1, now))
            if size < last:
                since = now
            if now - since > STUCK:
                transport.abort()
            else:
                self._unread[transport] = size, since

    def answered(self, response: web.StreamResponse) -> None:
        """An answer is about to be sent; a stream waits for its reader by itself."""
        body = response.body if isinstance(response, web.Response) else None
        self._answered += len(body) if isinstance(body, (bytes, bytearray)) else 0
        if self._answered > ANSWERED:
            self._answered = 0
            self.let_go_unread()

    def let_go_unread(self) -> None:
        """Cut off those with most to read, where all together is too much."""
        waiting = sorted(self._waiting(), key=lambda each: each[1])
        together = sum(size for _, size in waiting)
        while together > UNREAD:
            transport, size = waiting.pop()
            transport.abort()
            together -= size

    def _waiting(self) -> list[tuple[asyncio.Transport, int]]:
        """The connections whose answers are not read yet, and how many bytes of each."""
        held = [one for own in self._held.values() for one in own if not one.is_closing()]
        sizes = [(one, one.get_write_buffer_size()) for one in held]
        return [(one, size) for one, size in sizes if size]

    # ------------------------------------------------------------------------------------------- what does not end
    def heard(self, transport: asyncio.Transport, size: int) -> None:
        """So many bytes came; too many of requests that do not end let go of who has sent most of them."""
        if transport in self._busy or transport in self._reading:
            return  # a body, which counts elsewhere, or what waits in the socket until the answer is given
        self._begun[transport] = self._begun.get(transport, 0) + size
        self._begun_size += size
        while self._begun_size > BEGUN:
            most = max(self._begun, key=self._begun.__getitem__)
            self.ended(most)
            most.abort()

    def ended(self, transport: asyncio.Transport | None) -> None:
        """A request is whole, or its connection has ended."""
        if transport is not None:
            self._begun_size -= self._begun.pop(transport, 0)

    # ------------------------------------------------------------------------------------------- what a request says
    @contextmanager
    def answering(self, request: web.Request) -> Iterator[None]:
        """Its connection is not cut off meanwhile."""
        transport = request.transport
        self.ended(transport)
        if transport is not None:
            self._busy.add(transport)
        try:
            yield
        finally:
            self._busy.discard(transport)

    @contextmanager
    def waiting_for(self, request: web.Request) -> Iterator[None]:
        """Within an answer: its client is to send something first."""
        transport = request.transport
        self._busy.discard(transport)
        if transport is not None:
            self._reading.add(transport)
        try:
            yield
        finally:
            self._reading.discard(transport)
        if transport is not None:
            self._busy.add(transport)


CONNECTIONS = web.AppKey("connections", HeldConnections)


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A connection is not cut off while its request is answered; one that its client closes meanwhile is no error.

    Raises RequestRefused for that.
    """
    held = request.app[CONNECTIONS]
    with held.answering(request):
        try:
            response = await handler(request)
        except ConnectionError:
            if has_left(request):
                raise RequestRefused(LEFT, "the client has left") from None
            raise
    held.answered(response)
    return response


class WithoutNoise(logging.Filter):
    """What is no HTTP is answered 400 and not worth a traceback each: whoever sends it would fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        return not isinstance(record.exc_info[1] if record.exc_info else None, HttpProcessingError)


class _Door(asyncio.Protocol):
    """Takes a new connection, and hands it on to the server or cuts it off; it counts what comes over it."""

    def __init__(self, held: HeldConnections, server: Callable[[], asyncio.Protocol]) -> None:
        self._held, self._server = held, server
        self._line: asyncio.Transport | None = None
        self._inner = asyncio.Protocol()  # of one that is cut off

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        line = cast(asyncio.Transport, transport)  # uvloop's has all of its methods, and is none
        if not self._held.admit(line):
            line.abort()
            return
        self._line, self._inner = line, self._server()
        self._inner.connection_made(line)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._held.ended(self._line)
        self._line = None
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._line is not None:
            self._held.heard(self._line, len(data))
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._inner.resume_writing()


def _client(line: asyncio.Transport) -> str:
    address = line.get_extra_info("peername")
    return client_of(address[0] if isinstance(address, tuple) else None)
