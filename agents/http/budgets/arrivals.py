"""New connections: taken from the system as they come, and let in a few in a turn of the event loop, client by client.

In: a listening socket. Out: connections of a protocol each, those of one client in their order. The event loop's own
servers take them in the order of all clients, uvloop's one in each turn: behind a crowd of a thousand a probe waited
for a second. Here it is the next but a few, however many come from elsewhere.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from underhost.agents.http.budgets.places import client_of

BACKLOG = 4096
"""Connections that wait in the system to be taken; with fewer, a crowd makes a probe wait for its second try."""
TAKEN, LET_IN = 256, 8
"""Connections that are taken from the system, and let in, in one turn of the loop; each takes it some 3 ms."""
WAITING = 256
"""Connections that are taken and not let in yet, of all clients. They have nothing but a descriptor."""
PAUSE = 0.1
"""Seconds after which connections are taken again, where the process had no descriptor for one."""
HANDSHAKE = 10.0
"""Seconds that a client may take to agree on TLS."""

T = TypeVar("T")


class Turns(Generic[T]):
    """What waits, by client: one of each in turn. `most` may wait; beyond them who has most waiting loses one."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._waiting: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return self._size

    def put(self, client: str, one: T) -> T | None:
        """It waits from now on; what does not wait any more for its sake, which may be itself."""
        self._waiting.setdefault(client, deque()).append(one)
        self._size += 1
        if self._size <= self._most:
            return None
        most = max(reversed(self._waiting), key=lambda name: len(self._waiting[name]))
        return self._pop(most, newest=True)

    def take(self) -> T:
        """What is next. Raises StopIteration where nothing waits."""
        client = next(iter(self._waiting))
        one = self._pop(client, newest=False)
        if client in self._waiting:
            self._waiting[client] = self._waiting.pop(client)  # behind the others
        return one

    def _pop(self, client: str, *, newest: bool) -> T:
        own = self._waiting[client]
        self._size -= 1
        one = own.pop() if newest else own.popleft()
        if not own:
            del self._waiting[client]
        return one


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """One for every address that the host has. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


class Entrance:
    """Listening sockets; each new connection gets a protocol of its own, over TLS where there is a context."""

    def __init__(
        self, sockets: list[socket.socket], protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        self.sockets, self._protocol, self._tls = sockets, protocol, tls
        self._loop = asyncio.get_running_loop()
        self._waiting = Turns[socket.socket](WAITING)
        self._next: asyncio.Handle | None = None
        self._entering: set[asyncio.Task[None]] = set()
        for each in sockets:
            each.setblocking(False)
            self._open(each)

    def close(self) -> None:
        """Listen no more, and let in nobody who waits."""
        while self.sockets:
            listening = self.sockets.pop()
            self._loop.remove_reader(listening)
            listening.close()
        while self._waiting:
            self._waiting.take().close()
        for task in self._entering:
            task.cancel()

    def _open(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:  # else it was closed meanwhile
            self._loop.add_reader(listening, self._take, listening)

    def _take(self, listening: socket.socket) -> None:
        """Take those that have come."""
        for _ in range(TAKEN):
            try:
                line, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionError:
                continue  # it has ended already
            except OSError:
                self._loop.remove_reader(listening)
                self._loop.call_later(PAUSE, self._open, listening)
                break
            line.setblocking(False)
            superfluous = self._waiting.put(client_of(address[0]), line)
            if superfluous is not None:
                superfluous.close()
        if self._next is None:
            self._let_in()

    def _let_in(self) -> None:
        """Let in a few of those that wait; the others when the loop has done what else there is."""
        self._next = None
        for _ in range(min(LET_IN, len(self._waiting))):
            task = self._loop.create_task(self._enter(self._waiting.take()))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)
        if self._waiting:
            self._next = self._loop.call_soon(self._let_in)

    async def _enter(self, line: socket.socket) -> None:
        connect = partial(self._loop.connect_accepted_socket, self._protocol, line)
        with suppress(OSError):  # it has left, or shows no certificate that would do: there is nobody to tell
            await (connect() if self._tls is None else connect(ssl=self._tls, ssl_handshake_timeout=HANDSHAKE))
