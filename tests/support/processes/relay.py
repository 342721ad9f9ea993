"""A TCP relay in front of a server, whose connections a test can cut, refuse or freeze."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Outage:
    """Relays loopback connections to `port`; use `relaying`, which gives the port to connect to."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._down = False
        self.connections = 0

    @asynccontextmanager
    async def relaying(self) -> AsyncIterator[int]:
        """Relay until the end of the block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self._flowing.set()
            self.cut()
            server.close()

    def cut(self) -> None:
        """Abort every connection; new ones are aborted at once, until `mend`."""
        self._down = True
        self.drop()

    def mend(self) -> None:
        """Let connections through again, and data flow."""
        self._down = False
        self._flowing.set()

    def drop(self) -> None:
        """Abort every connection there is; new ones are let through."""
        for writer in list(self._writers):
            writer.transport.abort()

    def freeze(self) -> None:
        """Keep the connections and deliver nothing on them, as a router does that has lost its state."""
        self._flowing.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._down:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers.add(back)
        with suppress(ConnectionError):
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        for one in (writer, back):
            self._writers.discard(one)
            one.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flowing = self._flowing
        try:
            while data := await reader.read(65536):
                await flowing.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
