"""The simulated API server as the live watcher lists and watches it, with what goes wrong on the way.

In: the server, faults. Out: `ListWatch` of each kind, which take the place of the HTTP client's: everything above it is
the watcher of a live cluster.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from trust.simulation.faults import Faults
from trust.simulation.server import Server

from underhost.schemas.errors import Gone, Unreachable
from underhost.streams.kubernetes import watcher
from underhost.streams.kubernetes.contact import Contact
from underhost.streams.kubernetes.kinds import Kind
from underhost.streams.simulated.store import Change, Store
from underhost.streams.timing import Timing
from underhost.streams.watching.changes import Listing, Seen, WatchBatch

EXPIRED = 0.3
"""The share of watches that are lost because their position has expired."""
MEAN_LIFE = 300.0
"""Seconds after which a watch is lost, on average."""
BOOKMARK = 60.0
"""Seconds of silence after which a watch says how far it is."""


class ApiServer(Server):
    """The Kubernetes API."""

    def __init__(self, store: Store, faults: Faults) -> None:
        super().__init__("API server", store, faults)

    def install(self) -> None:
        """Let the live watcher ask this server, whatever its settings say."""

        async def connect(settings: Any) -> ApiServer:
            await self.answer()
            return self

        watcher.connect = connect  # type: ignore[assignment]
        watcher.KindListWatch = SimulatedListWatch  # type: ignore[assignment,misc]

    async def __aenter__(self) -> "ApiServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def answers(self, timeout: float) -> bool:
        """Whether it answers the watcher's probe."""
        try:
            async with asyncio.timeout(timeout):
                await self.answer()
        except (Unreachable, TimeoutError):
            return False
        return True


class SimulatedListWatch:
    """In the place of `KindListWatch`."""

    def __init__(self, server: ApiServer, kind: Kind, site: str, timing: Timing, contact: Contact) -> None:
        self.kind, self.name = kind, kind.plural
        self._server, self._site, self._timing, self._contact = server, site, timing, contact

    def _seen(self, change: Change) -> Seen:
        _, namespace, name = change.key
        return Seen(self.kind.key(self._site, name, namespace), change.uid, change.value)

    async def list(self) -> Listing:
        """See `ListWatch.list`."""
        await self._server.answer()
        store, kind = self._server.store, self.kind.kind.lower()
        found = (self._seen(Change(key, value, value.metadata.uid)) for key, value in store.of_kind(kind))
        listing = Listing({seen.key: seen for seen in found}, (), str(store.version))
        await self._server.faults.delay()
        self._contact.hear(self.name)
        return listing

    async def watch(self, position: str) -> AsyncGenerator[WatchBatch, None]:
        """See `ListWatch.watch`."""
        server, faults, version, kind = self._server, self._server.faults, int(position), self.kind.kind.lower()
        await server.answer()
        clock = asyncio.get_running_loop().time
        lost = clock() + faults.dice.expovariate(1 / MEAN_LIFE)
        self._contact.opened(self.name)
        try:
            while True:
                await server.heard(self._timing.inactivity)
                changes, version = server.since(version)
                mine = [self._seen(change) for change in changes if change.key.kind == kind]
                if mine:
                    await faults.delay()
                    self._contact.hear(self.name)
                    yield WatchBatch(mine, str(version))
                if clock() >= lost and faults.on:
                    if faults.strike("watch expired", EXPIRED):
                        raise Gone(f"{self.name}: too old resource version: simulated")
                    faults.fail("watch lost", 1.0)
                    lost = clock() + faults.dice.expovariate(1 / MEAN_LIFE)
                silent = clock() + BOOKMARK
                while server.since(version)[1] == version and clock() < min(silent, lost if faults.on else silent):
                    await server.wait(min(silent, lost if faults.on else silent) - clock())
                await server.heard(self._timing.inactivity)
                if clock() >= silent:
                    self._contact.hear(self.name)
                    yield WatchBatch((), str(version))
        finally:
            self._contact.ended(self.name)
