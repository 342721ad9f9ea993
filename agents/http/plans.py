"""`/api/v1/snapshot` and `/api/v1/whatif`: the picture of a site to take away, and plans tried on it.

In: the newest decisions of a site. Out: gzip of the documents that `-f` reads; a `WhatIf`, with `each` a `WhatIfList`.
Neither changes anything. Plans are tried one at a time in a thread; who would wait too long is told to come again.

A plan is `{"site": S, "steps": [{"drain": "n1"}, {"fail": "host/esx-1"}, {"add": [OBJECT, …]}, …], "ha": true}`: every
step is an option of `underhost whatif` with its value; or `{"each": "host" | "node", "ha": true}`.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
from aiohttp import web

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.http.api import feed_of
from underhost.agents.http.feed import ChangeFeed
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import body_of, refuse
from underhost.agents.http.history import document
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.dump import documents
from underhost.agents.snapshots.load import added_of
from underhost.agents.whatif.each import each
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import HOST, NODE, Step, parse
from underhost.schemas.documents import WhatIfList, to_json
from underhost.schemas.errors import InputError
from underhost.schemas.page import OPTIONS, SITE, Judging
from underhost.streams.files.reader import InputReader

WAITING = 4
"""Plans, and snapshots, that may be under way; one more is told to come again."""
GZIP = 16 + zlib.MAX_WBITS


class PlanRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    site: str = ""
    steps: list[dict[str, msgspec.Raw]] = []
    each: str = ""
    ha: bool = True


_plans = msgspec.json.Decoder(PlanRequest)


def routes(feeds: ChangeFeeds, options: Options) -> list[web.RouteDef]:
    """`options` are the worker's; pods of every scheduler that the commands place are placed here, too."""
    judged = replace(options, scheduler_names=Options().scheduler_names)
    planner = _Planner(judged)

    async def snapshot(request: web.Request) -> web.StreamResponse:
        feed = feed_of(request, feeds)
        if not isinstance(feed, ChangeFeed):
            return feed
        assert feed.decisions is not None  # a feed begins with its first decisions
        return await planner.send(request, feed.decisions.snapshot, options)

    async def whatif(request: web.Request) -> web.Response:
        try:
            plan = _plans.decode(await body_of(request))
            steps = _steps(plan)
        except (msgspec.DecodeError, RecursionError) as error:
            return refuse(422, str(error))
        except InputError as error:
            return refuse(422, "; ".join(error.faults))
        feed = feed_of(request, feeds, plan.site)
        if not isinstance(feed, ChangeFeed):
            return feed
        assert feed.decisions is not None
        picture = feed.decisions.snapshot
        try:
            if plan.each:
                found = await planner.run(lambda: to_json(WhatIfList(each(picture, judged, plan.each, ha=plan.ha))))
            else:
                found = await planner.run(
                    lambda: to_json(what_if(picture, judged, steps, evaluator=planner.evaluator).document)
                )
        except InputError as error:
            return refuse(422, "; ".join(error.faults))
        except OverflowError as error:
            return refuse(503, str(error))
        return document(found)

    return [web.get("/api/v1/snapshot", snapshot), web.post("/api/v1/whatif", whatif)]


def _steps(plan: PlanRequest) -> list[Step]:
    """The steps of a request. Raises InputError, msgspec.DecodeError."""
    if plan.each and (plan.steps or plan.each not in (HOST, NODE)):
        raise InputError("each: host or node is expected, and no steps beside it")
    steps: list[Step] = []
    for number, step in enumerate(plan.steps):
        if len(step) != 1:
            raise InputError(f"steps[{number}]: one option with its value is expected")
        ((name, value),) = step.items()
        if name == "add":
            reading = InputReader()
            reading.read_text(b'{"kind":"List","items":' + bytes(value) + b"}", f"steps[{number}].add")
            steps.append(added_of(reading.result()))
        else:
            steps.append(parse(name, msgspec.json.decode(value, type=str), ha=plan.ha))
    return steps


class _Planner:
    """Where plans are tried: one thread, and a bound on what may wait for it."""

    def __init__(self, options: Options) -> None:
        self.evaluator = Evaluator(options)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="what-if")
        self._running = self._sending = 0

    async def run(self, work: Callable[[], bytes]) -> bytes:
        """The result of the work. Raises OverflowError where too much is waiting."""
        if self._running >= WAITING:
            raise OverflowError("other plans are being tried; ask again")
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._running -= 1

    async def send(self, request: web.Request, snapshot: Snapshot, options: Options) -> web.StreamResponse:
        """The snapshot, made and compressed piece by piece while it is sent."""
        if self._sending >= WAITING:
            return refuse(503, "other snapshots are being sent; ask again")
        self._sending += 1
        try:
            judging = Judging(list(options.host_keys), options.physical_host)
            response = web.StreamResponse(headers={SITE: snapshot.site, OPTIONS: msgspec.json.encode(judging).decode()})
            response.content_type = "application/gzip"
            response.headers["Content-Disposition"] = f'attachment; filename="{snapshot.site}.json.gz"'
            await response.prepare(request)
            squeeze, pieces = zlib.compressobj(1, wbits=GZIP), documents(snapshot)
            while (piece := await asyncio.to_thread(_next, pieces, squeeze)) is not None:
                await response.write(piece)
            await response.write(squeeze.flush())
            await response.write_eof()
            return response
        finally:
            self._sending -= 1


def _next(pieces: Iterator[bytes], squeeze: "zlib._Compress") -> bytes | None:
    """The next piece, compressed; None after the last."""
    piece = next(pieces, None)
    return None if piece is None else squeeze.compress(piece)
