"""The simulated API server as the live watcher lists and watches it, with what goes wrong on the way.

In: the store of the simulated cluster, faults. Out: `ListWatch` of each kind, which take the place of the HTTP
client's: everything above it is the watcher of a live cluster.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator
from typing import Any

from trust.simulation.faults import Faults

from underhost.schemas.errors import Gone, Unreachable
from underhost.streams.kubernetes import watcher
from underhost.streams.kubernetes.contact import Contact
from underhost.streams.kubernetes.kinds import Kind
from underhost.streams.simulated.store import Change, Store
from underhost.streams.timing import Timing
from underhost.streams.watching.changes import Listing, Seen, WatchBatch

UNREACHABLE, EXPIRED = 0.005, 0.3
"""The share of requests that fail, and of watches that are lost because their position has expired."""
MEAN_LIFE = 300.0
"""Seconds after which a watch is lost, on average."""
BOOKMARK = 60.0
"""Seconds of silence after which a watch says how far it is."""


class ApiServer:
    """All changes since the beginning, in the order of their versions."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self.store, self.faults = store, faults
        self._versions: list[int] = []
        self._changes: list[Change] = []
        self._changed = asyncio.Event()
        store.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        self._versions.append(self.store.version)
        self._changes.append(change)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

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

    async def answer(self) -> None:
        """A request takes its time, or fails. Raises Unreachable."""
        await self.faults.delay()
        if self.faults.strike("API server does not answer", UNREACHABLE):
            raise Unreachable("the API server does not answer: simulated")

    async def answers(self, timeout: float) -> bool:
        """Whether it answers the watcher's probe."""
        try:
            async with asyncio.timeout(timeout):
                await self.answer()
        except (Unreachable, TimeoutError):
            return False
        return True

    def since(self, version: int) -> tuple[list[Change], int]:
        """The changes after a version, and the newest version."""
        return self._changes[bisect_right(self._versions, version) :], self.store.version

    async def wait(self, seconds: float) -> None:
        """Until there may be a change, so many seconds at most."""
        changed = self._changed
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return


class SimulatedListWatch:
    """In the place of `KindListWatch`."""

    def __init__(self, server: ApiServer, kind: Kind, site: str, timing: Timing, contact: Contact) -> None:
        self.kind, self.name = kind, kind.plural
        self._server, self._site, self._contact = server, site, contact

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
                changes, version = server.since(version)
                mine = [self._seen(change) for change in changes if change.key.kind == kind]
                if mine:
                    await faults.delay()
                    self._contact.hear(self.name)
                    yield WatchBatch(mine, str(version))
                if clock() >= lost and faults.on:
                    if faults.strike("watch expired", EXPIRED):
                        raise Gone(f"{self.name}: too old resource version: simulated")
                    faults.strike("watch lost")
                    raise Unreachable("the connection is lost: simulated")
                silent = clock() + BOOKMARK
                while server.since(version)[1] == version and clock() < min(silent, lost if faults.on else silent):
                    await server.wait(min(silent, lost if faults.on else silent) - clock())
                if clock() >= silent:
                    self._contact.hear(self.name)
                    yield WatchBatch((), str(version))
        finally:
            self._contact.ended(self.name)
