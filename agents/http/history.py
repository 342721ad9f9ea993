"""`/api/v1/history`, and `at=` of the map and the findings: the site as it was, worked out from the topics.

In: the topics. Out: documents in the shape of the live ones. The topics are read when somebody looks, at most every few
seconds; one request is worked on at a time, in a thread of its own. What is kept has a budget of memory, and is let go
once nobody has looked for a while.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from aiohttp import web

from underhost.agents.evaluate.check import check
from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.budgets.work import LEFT, has_left
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.map_rows import MapRows
from underhost.agents.site.snapshot import BY_VM, Joining, Options, Snapshot
from underhost.agents.snapshots.history import SiteHistory
from underhost.agents.snapshots.times import parse_time
from underhost.schemas.errors import InputError
from underhost.schemas.page import FindingMark, HistoryRange
from underhost.schemas.records import OPENED, RESOLVED, Finding, FindingEvent
from underhost.schemas.severities import LABEL_STALE
from underhost.streams.derived import rfc3339
from underhost.streams.ports import TopicReader

FRESH = 5.0
"""Seconds for which what was read of the topics is good enough."""
REST = 20
"""Times as long as reading them has taken, for which it is good enough for whoever asks only how far they reach: a page
does twice a minute."""
AHEAD = 60_000
"""Milliseconds by which the clock of a browser may be ahead: what is now for it is now."""
BUDGET = 256 << 20
"""Bytes of the records that are kept, of all sites: of a longer history only the newest part is told."""
SITES = 2
"""Sites whose records are kept, where both fit."""
READING = 60.0
"""Seconds that reading the topics may take."""
IDLE = 600.0
"""Seconds after the last request for which anything is kept."""
KEPT_BYTES = 32 << 20
"""Bytes of the documents that are kept, together."""
WAITING, EACH = 8, 6
"""Requests that may wait for their turn, and those of one client: a browser has six connections."""
RECORDED = (LABEL_STALE,)
"""Severities that time alone makes: they are told as they were published, not worked out."""

MARKS, ENDED = 2000, 20
"""Times at which findings opened or ended, and findings that have ended, that are told: the newest."""

INVENTORY = "Inventory"

_encoder = msgspec.json.Encoder(order="sorted")


class _Reading(NamedTuple):
    """What was read of the topics of a site. `at` is when, by the clock, and `took` how long, in seconds; all that came
    before `until`, milliseconds since 1970, is in it."""

    at: float
    took: float
    until: int
    past: SiteHistory


def document(body: bytes) -> web.Response:
    """A JSON answer, compressed where the client can read it."""
    response = web.Response(body=body, content_type="application/json")
    response.enable_compression()
    return response


class PastSites:
    """The pasts of the sites; `home` is meant where a request names none. `known` raises RequestRefused for others."""

    def __init__(
        self,
        home: str,
        options: Options,
        reader: TopicReader,
        known: Callable[[str], str],
        *,
        joining: Joining = BY_VM,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._joining, self._clock = joining, clock
        self._home, self._options, self._reader, self._known_site = home, options, reader, known
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="past")
        self._lock = asyncio.Lock()
        self._places = ClientPlaces(WAITING, EACH, "other moments are being worked out")
        self._read: OrderedDict[str, _Reading] = OrderedDict()
        self._known: OrderedDict[tuple[str, int], tuple[bytes, bytes]] = OrderedDict()
        self._last: tuple[tuple[str, int, float], Snapshot, MapRows] | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    def routes(self) -> list[web.RouteDef]:
        """The one route that is not the live ones' too."""
        return [web.get("/api/v1/history", self.range)]

    async def range(self, request: web.Request) -> web.Response:
        """How far back every moment can be told."""
        site = self._known_site(request.query.get("site", self._home))
        async with self._turn(request):
            past = (await self._reading(site, _now(), REST)).past
        told = HistoryRange(site, rfc3339(past.begins / 1000), rfc3339(time.time()), *_marks(past))
        return document(_encoder.encode(told))

    async def map(self, request: web.Request) -> web.Response:
        """The map at a moment."""
        return document((await self._documents(request))[0])

    async def findings(self, request: web.Request) -> web.Response:
        """The findings at a moment."""
        return document((await self._documents(request))[1])

    async def _documents(self, request: web.Request) -> tuple[bytes, bytes]:
        """The map and the findings at the moment that a request names."""
        site, moment = self._known_site(request.query.get("site", self._home)), _moment(request.query["at"])
        async with self._turn(request):
            found = self._known.get((site, moment))
            if found is None:
                reading = await self._reading(site, moment)
                _, rows = await self._picture(site, moment, reading)
                found = await asyncio.get_running_loop().run_in_executor(self._pool, _told, rows, site, moment)
                if moment < reading.until:  # else the topics may still tell more of it
                    self._known[site, moment] = found
                while sum(len(each) for both in self._known.values() for each in both) > KEPT_BYTES:
                    self._known.popitem(last=False)
            return found

    async def moment(self, request: web.Request, site: str, at: str) -> tuple[Snapshot, MapRows]:
        """The site at a moment (`parse_time`), with its rows. Raises RequestRefused, InputError."""
        site, moment = self._known_site(site), _moment(at)
        async with self._turn(request):
            return await self._picture(site, moment, await self._reading(site, moment))

    async def _picture(self, site: str, moment: int, reading: _Reading) -> tuple[Snapshot, MapRows]:
        """The one that was asked for last is kept: whoever looks at a moment asks several things of it."""
        wanted = site, moment, reading.at
        if self._last is None or self._last[0] != wanted:
            loop = asyncio.get_running_loop()
            self._last = wanted, *(await loop.run_in_executor(self._pool, self._work_out, reading.past, moment))
        return self._last[1:]

    @asynccontextmanager
    async def _turn(self, request: web.Request) -> AsyncIterator[None]:
        """One request at a time; when none has come for a while, what was read is forgotten.

        Raises RequestRefused where too many wait, or nobody does any more.
        """
        with self._places.place(request):
            try:
                async with self._lock:
                    if has_left(request):
                        raise RequestRefused(LEFT, "the client has left")
                    yield
            finally:
                if self._forgetting is not None:
                    self._forgetting.cancel()
                self._forgetting = asyncio.get_running_loop().call_later(IDLE, self._forget)

    def _forget(self) -> None:
        self._read.clear()
        self._known.clear()
        self._last = None

    async def _reading(self, site: str, moment: int, rest: float = 0.0) -> _Reading:
        """The topics as they were read last, or anew where the moment is after that, and they have rested for `rest`
        times as long as that took.

        Raises RequestRefused where they cannot tell of the site now, BackendError where they do not answer.
        """
        found = self._read.get(site)
        if found is None or (moment >= found.until and self._clock() - found.at > max(FRESH, rest * found.took)):
            self._read.pop(site, None)  # it need not be in memory twice
            found = None
            begun, until = self._clock(), _now()
            try:
                async with asyncio.timeout(READING):
                    past = await SiteHistory.read(self._reader, site, budget=BUDGET, joining=self._joining)
            except TimeoutError:
                raise RequestRefused(503, f"the topics were not read within {READING:.0f} s; ask again") from None
            except InputError as error:  # what was asked is right: it is the topics, or the settings, that are not
                raise RequestRefused(503, "; ".join(error.faults)) from error
            found = self._read[site] = _Reading(self._clock(), self._clock() - begun, until, past)
            while len(self._read) > SITES or (len(self._read) > 1 and self._size() > BUDGET):
                self._read.popitem(last=False)
        self._read.move_to_end(site)
        return found

    def _size(self) -> int:
        return sum(reading.past.size for reading in self._read.values())

    def _work_out(self, past: SiteHistory, moment: int) -> tuple[Snapshot, MapRows]:
        snapshot, published = past.at(moment), past.published(moment)
        at = rfc3339(moment / 1000)
        found = check(snapshot, self._options).findings
        events = {one.id: _event(past.site, one, published.get(one.id), at) for one in found}
        events |= {id_: one for id_, one in published.items() if one.severity in RECORDED or one.rule == INVENTORY}
        rows = MapRows()
        rows.update(snapshot, events)
        return snapshot, rows


def _now() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def _moment(at: str) -> int:
    """Milliseconds since 1970 of a moment of the past. Raises InputError."""
    moment, now = parse_time(at), _now()
    if moment > now + AHEAD:
        raise InputError(f"at {at}: this is still to come")
    return min(moment, now)


def _told(rows: MapRows, site: str, moment: int) -> tuple[bytes, bytes]:
    """The documents of the map and of the findings."""
    at = rfc3339(moment / 1000)
    return _encoder.encode(rows.site_map(site, at)), _encoder.encode(rows.open_findings(site, at))


def _marks(past: SiteHistory) -> tuple[list[FindingMark], list[FindingEvent]]:
    """When findings opened and ended, the newest of them; and the findings that have ended last."""
    marks: deque[FindingMark] = deque(maxlen=MARKS)
    ended: dict[str, FindingEvent] = {}
    for at, event in past.events():
        if event.state in (OPENED, RESOLVED) and at >= past.begins:
            marks.append(FindingMark(rfc3339(at / 1000), event.id, event.state, event.severity))
        ended.pop(event.id, None)
        if event.state == RESOLVED:
            ended[event.id] = event
    return list(marks), list(reversed(ended.values()))[:ENDED]


def _event(site: str, finding: Finding, published: FindingEvent | None, at: str) -> FindingEvent:
    """The finding with its life; one that had not been published yet began just now."""
    told = {name: getattr(finding, name) for name in finding.__struct_fields__ if name != "field"}
    if published is None:
        return FindingEvent(state="opened", site=site, first_seen=at, updated_at=at, snapshot={}, **told)
    return msgspec.structs.replace(published, **told)
