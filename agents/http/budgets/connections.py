"""How many connections are held: of all clients, and of one. Who asks nothing makes room for who comes.

In: new connections. Out: those that are held go on to the server. Where there are too many, the one that has been there
for longest without a request is cut off: half a request, or half a body, is none. So a probe always gets in, whoever
else keeps connections open. Where all of them are being answered, the new one is cut off.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from underhost.agents.http.budgets.places import client_of

MOST, EACH = 512, 256
"""Connections in all, and of one client: a process often has 1,024 descriptors."""
BACKLOG = 128


class HeldConnections:
    """The connections that are open."""

    def __init__(self) -> None:
        self._most, self._each = MOST, EACH
        self._held: dict[str, dict[asyncio.BaseTransport, None]] = {}
        self._busy: set[asyncio.BaseTransport] = set()

    async def listen(
        self, server: Callable[[], asyncio.Protocol], host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> asyncio.Server:
        """A listening socket whose connections are counted. Raises OSError."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Door(self, server), host, port, ssl=tls, backlog=BACKLOG)

    def admit(self, transport: asyncio.Transport) -> bool:
        """Whether a new connection is held; for its sake others may be cut off."""
        address = transport.get_extra_info("peername")
        client = client_of(address[0] if isinstance(address, tuple) else None)
        own = self._held.setdefault(client, {})
        if len(own) >= self._each:
            self._make_room(own, self._each)
        if self._count() >= self._most:
            for one in sorted(self._held.values(), key=len, reverse=True):
                self._make_room(one, len(one) - self._count() + self._most)
        fits = len(own) < self._each and self._count() < self._most
        if fits:
            own[transport] = None
        self._held = {name: held for name, held in self._held.items() if held}
        return fits

    def _count(self) -> int:
        return sum(map(len, self._held.values()))

    def _make_room(self, own: dict[asyncio.BaseTransport, None], most: int) -> None:
        """Forget those that have ended; then cut off those that ask nothing, the oldest first, until one is free."""
        for transport in [one for one in own if one.is_closing()]:
            del own[transport]
        for transport in [one for one in own if one not in self._busy]:
            if len(own) < most:
                return
            del own[transport]
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()

    # ------------------------------------------------------------------------------------------- what a request says
    @contextmanager
    def answering(self, request: web.Request) -> Iterator[None]:
        """Its connection is not cut off meanwhile."""
        transport = request.transport
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
        yield
        if transport is not None:
            self._busy.add(transport)


CONNECTIONS = web.AppKey("connections", HeldConnections)


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A connection is not cut off while its request is answered."""
    with request.app[CONNECTIONS].answering(request):
        return await handler(request)


class _Door(asyncio.Protocol):
    """Takes a new connection, and hands it on to the server or cuts it off."""

    def __init__(self, held: HeldConnections, server: Callable[[], asyncio.Protocol]) -> None:
        self._held, self._server = held, server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        if not self._held.admit(transport):
            transport.abort()
            return
        protocol = self._server()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
