"""A simulated server that the watchers list and follow, with what goes wrong on the way.

In: the store of its objects, faults. Out: answers that take their time or do not come, all changes since the beginning
in the order of their versions, and silences. How its API looks is left to `api.py` and `vcenter.py`.
"""

import asyncio
from bisect import bisect_right

from trust.simulation.faults import Faults

from underhost.schemas.errors import Unreachable
from underhost.streams.simulated.store import Change, Store

UNREACHABLE = 0.005
"""The share of requests that fail."""
REQUEST = 10.0
"""Seconds after which a request without an answer is given up."""


class Server:
    """One server; `name` is how people call it.

    Attributes:
        silent_since: when it ceased to answer whoever lists and watches (writes go on), in the loop's seconds; None
            while it answers.
    """

    def __init__(self, name: str, store: Store, faults: Faults) -> None:
        self.name, self.store, self.faults = name, store, faults
        self.silent_since: float | None = None
        self._versions: list[int] = []
        self._changes: list[Change] = []
        self._changed, self._speaks = asyncio.Event(), asyncio.Event()
        self._speaks.set()
        store.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        self._versions.append(self.store.version)
        self._changes.append(change)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # ------------------------------------------------------------------------------------------------------- silence
    def be_silent(self, seconds: float) -> None:
        """Answer nobody who lists or watches for so long."""
        if self.silent_since is None:
            self.faults.note(f"{self.name} silent")
            loop = asyncio.get_running_loop()
            self.silent_since = loop.time()
            self._speaks.clear()
            loop.call_later(seconds, self.speak)

    def speak(self) -> None:
        """Answer again."""
        self.silent_since = None
        self._speaks.set()

    async def heard(self, patience: float) -> None:
        """Until it answers. Raises Unreachable where that takes longer than the client's patience, in seconds."""
        if self.silent_since is None:
            return
        try:
            async with asyncio.timeout(patience):
                await self._speaks.wait()
        except TimeoutError:
            raise Unreachable(f"{self.name} is silent: simulated") from None

    async def answer(self) -> None:
        """A request takes its time, or fails. Raises Unreachable."""
        await self.faults.delay()
        await self.heard(REQUEST)
        self.faults.fail(f"{self.name} does not answer", UNREACHABLE)

    # ------------------------------------------------------------------------------------------------------- changes
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
