"""Plans that are tried for whoever asks: one at a time in a thread, on the picture of a site, within a budget.

In: a request, how its body is read and what is worked out of it. Out: the document. The site is that of now, or of a
moment of the past; of now it is compiled once for all plans, and followed. Who would wait too long is told to come
again; a plan ends when its client leaves.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple, TypeVar

import msgspec
from aiohttp import web

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.http.budgets import shape
from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.budgets.work import Bench
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites, document
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import InputError
from underhost.streams.files.faults import fault_of

WAITING, EACH = 4, 2
"""Plans that may be under way, and those of one client."""
SECONDS = 60.0
"""Of trying one plan."""
BOUNDS = shape.Bounds(depth=64, values=100_000)
"""Of a body: a pod is some hundred values."""
ELSEWHERE = "the command line tries it without a bound, on your machine (--server)"

T = TypeVar("T")
M = TypeVar("M")


class Trial(NamedTuple):
    """What is asked.

    Attributes:
        site: "" for the one that the query names, or the worker's own. at: a moment, "" for now.
        answer: gets the picture, and who knows its compiled site: None for a moment of the past.
    """

    site: str
    at: str
    answer: Callable[[Snapshot, Options, Evaluator | None], bytes]


class Trials:
    """`options` are the worker's; pods of every scheduler that the commands place are placed here, too."""

    def __init__(self, feeds: ChangeFeeds, options: Options, past_sites: PastSites) -> None:
        self._feeds, self._past_sites = feeds, past_sites
        self._judged = replace(options, scheduler_names=Options().scheduler_names)
        self._evaluator, self._bench = Evaluator(self._judged), Bench("plans", SECONDS, ELSEWHERE)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="plans")
        self._running = ClientPlaces(WAITING, EACH, "other plans are being tried")

    async def tried(self, request: web.Request, read: Callable[[bytearray], Trial]) -> web.Response:
        """The answer to a request whose body `read` makes sense of. Raises RequestRefused, and as `read`."""
        body = await body_of(request)
        with self._running.place(request):
            trial = await asyncio.get_running_loop().run_in_executor(self._reading, read, body)
            site = trial.site or request.query.get("site", self._feeds.default())
            if trial.at:
                (picture, _), holder = await self._past_sites.moment(request, site, trial.at), None
            else:
                picture, holder = self._feeds.wanted(site).decisions.snapshot, self._evaluator
            answer, options = trial.answer, self._judged
            return document(await self._bench.do(request, lambda: answer(picture, options, holder)))


def decoded(body: bytearray, decoder: msgspec.json.Decoder[T], made: Callable[[T], M]) -> M:
    """What a body asks. Raises InputError for one that is no such question, or that is too large."""
    shape.check(body, BOUNDS)
    try:
        body.decode()  # parts of it may be read later, each by itself
        return made(decoder.decode(body))
    except msgspec.ValidationError as error:
        raise fault_of(error, data=bytes(body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(str(error)) from error
