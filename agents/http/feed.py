"""One site as the page follows it: the rows now, a version of them, and the changes that lead to it.

In: the newest decisions (`pipeline/latest.py`) and lines for the list of what happened (`activity.py`). Out: encoded
documents, and events from a version on. Nothing is worked out while nobody looks. The events that are kept are bounded
in number and bytes; whoever is behind them is told to read everything again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Executor

import msgspec

from underhost.agents.http.map_rows import MapRows
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.numbers import number
from underhost.schemas.page import HistoryEntry, MapChange, SiteMap

KEPT, KEPT_BYTES = 512, 4 << 20
"""Events that are kept for who comes back, at most, and their bytes together."""
LINGER = 120.0
"""Seconds after the last look for which changes are still worked out, so that a short break costs no reload."""

_encoder = msgspec.json.Encoder(order="sorted")


class ChangeFeed:
    """One site's rows and events. `epoch` tells one life of a feed from another.

    Attributes:
        decisions: the newest ones. ended: the site is not decided for here any more.
        changed: set once something is new after now. Taken before a look, it cannot miss what comes during it.
    """

    def __init__(self, site: str, decisions: Decisions, pool: Executor, *, epoch: str) -> None:
        self._site, self._pool, self._epoch = site, pool, epoch
        self.decisions = decisions
        self._rows = MapRows()
        self._shown: Decisions | None = None
        self._count = 0
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._on_read = float("-inf")
        self.changed = asyncio.Event()
        self._lock = asyncio.Lock()
        self._maps: dict[bool, tuple[int, bytes]] = {}
        self.ended = False

    @property
    def version(self) -> str:
        """The version of the rows, as documents and events name it."""
        return f"{self._epoch}-{self._count}"

    # ----------------------------------------------------------------------------------------------- what comes in
    def put(self, decisions: Decisions) -> None:
        """There are new decisions; they are shown at the next look."""
        self.decisions = decisions
        self._wake()

    def tell(self, entry: HistoryEntry) -> None:
        """Something happened; of no interest where nobody looks."""
        if self._is_looked_at():
            self._push("activity", _encoder.encode(entry))
            self._wake()

    def end(self) -> None:
        """The site is not decided for here any more: whoever follows has to ask again."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _is_looked_at(self) -> bool:
        return time.monotonic() - self._on_read < LINGER

    # ---------------------------------------------------------------------------------------------- what is looked at
    async def refresh(self) -> None:
        """Bring the rows up to the newest decisions; the difference is an event."""
        asleep, self._on_read = not self._is_looked_at(), time.monotonic()
        async with self._lock:
            decisions = self.decisions
            if decisions is self._shown:
                return
            open_ = decisions.findings.open if decisions.findings is not None else {}
            loop = asyncio.get_running_loop()
            change = await loop.run_in_executor(self._pool, self._rows.update, decisions.snapshot, open_)
            self._shown = decisions
            if asleep:  # what was told meanwhile is lost: nobody may go on from before
                self._events.clear()
                self._count, self._bytes = self._count + 1, 0
            elif change != MapChange():
                self._push("change", _encoder.encode(change))

    def _push(self, kind: str, data: bytes) -> None:
        self._count += 1
        event = b"id: %s\nevent: %s\ndata: %s\n\n" % (self.version.encode(), kind.encode(), data)
        self._events.append((self._count, event))
        self._bytes += len(event)
        while len(self._events) > KEPT or self._bytes > KEPT_BYTES:
            self._bytes -= len(self._events.popleft()[1])

    async def map(self, *, outline: bool = False) -> bytes:
        """The map as JSON, or its outline."""
        await self.refresh()
        async with self._lock:
            if self._maps.get(outline, (None,))[0] != self._count:
                self._maps[outline] = (
                    self._count,
                    await asyncio.get_running_loop().run_in_executor(
                        self._pool, self._told, self._rows.outline if outline else self._rows.site_map
                    ),
                )
            return self._maps[outline][1]

    def _told(self, rows: Callable[[str, str], SiteMap]) -> bytes:
        return _encoder.encode(rows(self._site, self.version))

    async def piece(self, nodes: Collection[str]) -> bytes:
        """These nodes and their pods as JSON."""
        await self.refresh()
        async with self._lock:
            return _encoder.encode(self._rows.piece(self._site, self.version, nodes))

    async def findings(self) -> bytes:
        """The open findings as JSON."""
        await self.refresh()
        async with self._lock:
            return _encoder.encode(self._rows.open_findings(self._site, self.version))

    async def picture(self) -> tuple[Snapshot, MapRows]:
        """The newest snapshot and its rows, which stay as they are until the next `await`."""
        await self.refresh()
        async with self._lock:
            return self.decisions.snapshot, self._rows

    # ------------------------------------------------------------------------------------------------ what is followed
    def position(self, version: str) -> int | None:
        """Where a follower goes on that has seen this version; None where it has to read everything again."""
        epoch, _, text = version.rpartition("-")
        count = number(text)
        if epoch != self._epoch or count is None:
            return None
        return count if self.since(count) is not None else None

    def since(self, position: int) -> tuple[int, list[bytes]] | None:
        """The events after a position, and the position after them; None where some of them are gone."""
        first = self._events[0][0] if self._events else self._count + 1
        if not first - 1 <= position <= self._count:
            return None
        return self._count, [event for count, event in self._events if count > position]
