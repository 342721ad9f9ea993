"""`/api/v1/snapshot` and `/api/v1/whatif`: the picture of a site to take away, and plans tried on it.

In: the newest decisions of a site. Out: gzip of the documents that `-f` reads; a `WhatIf`, with `each` a `WhatIfList`.
Neither changes anything.

A plan is `{"site": S, "steps": [{"drain": "n1"}, {"fail": "host/esx-1"}, {"add": [OBJECT, …]}, …], "ha": true}`: every
step is an option of `underhost whatif` with its value; or `{"each": "host" | "node", "ha": true}`. With
`"at": TIME` it is tried on the site as it was then.
"""

import asyncio
import zlib
from collections.abc import Iterator
from typing import TypeVar

import msgspec
from aiohttp import web

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.http import repairs
from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites
from underhost.agents.http.trials import EACH, ELSEWHERE, WAITING, Trial, Trials, decoded
from underhost.agents.manifests.allowance import Allowance
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.dump import documents
from underhost.agents.snapshots.load import added_of
from underhost.agents.whatif.each import each, listed
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import HOST, NODE, Step, parse
from underhost.schemas.documents import to_json
from underhost.schemas.errors import InputError
from underhost.schemas.page import OPTIONS, SITE, Judging
from underhost.streams.files.faults import fault_of
from underhost.streams.files.reader import InputReader

STEPS, OBJECTS, NAME = 200, 2000, 1024
"""Steps of a plan, objects that they add together, and characters of what one is done to, at most."""
PODS, PODS_SIZE = 5_000, 8 << 20
"""Pods that the manifests of a plan may make together, and the bytes of their specs."""
KEPT = 1000
"""Pods that a plan may have made for the compiled site to stay as the plan has left it."""
GZIP = 16 + zlib.MAX_WBITS

T = TypeVar("T")


class PlanRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    site: str = ""
    steps: list[dict[str, msgspec.Raw]] = []
    each: str = ""
    ha: bool = True
    at: str = ""


_plans = msgspec.json.Decoder(PlanRequest)
_objects = msgspec.json.Decoder(list[msgspec.Raw])
_texts = msgspec.json.Decoder(str)


def routes(feeds: ChangeFeeds, options: Options, past_sites: PastSites) -> list[web.RouteDef]:
    """The routes; `options` are the worker's, `past_sites` tells the site of a plan with `at`."""
    trials = Trials(feeds, options, past_sites)
    sending = ClientPlaces(WAITING, EACH, "other snapshots are being sent")

    async def snapshot(request: web.Request) -> web.StreamResponse:
        feed = feeds.wanted(request.query.get("site", feeds.default()))
        with sending.place(request):
            return await _send(request, feed.decisions.snapshot, options)

    async def whatif(request: web.Request) -> web.Response:
        return await trials.tried(request, lambda body: decoded(body, _plans, _trial))

    return [
        web.get("/api/v1/snapshot", snapshot),
        web.post("/api/v1/whatif", whatif),
        *repairs.routes(trials),
    ]


def _trial(plan: PlanRequest) -> Trial:
    """What is to be tried. Raises InputError, msgspec.DecodeError."""
    allowance = Allowance(PODS, PODS_SIZE)
    steps = _steps(plan, allowance)

    def answer(picture: Snapshot, options: Options, holder: Evaluator | None) -> bytes:
        if plan.each:
            return to_json(listed(each(picture, options, plan.each, ha=plan.ha, evaluator=holder)))
        try:
            return to_json(what_if(picture, options, steps, evaluator=holder).document)
        finally:
            if holder is not None and allowance.taken > KEPT:
                holder.update(picture)  # it holds the site that it was asked about last

    return Trial(plan.site, plan.at, answer)


def _steps(plan: PlanRequest, allowance: Allowance) -> list[Step]:
    """The steps of a request. Raises InputError, msgspec.DecodeError."""
    if plan.each and (plan.steps or plan.each not in (HOST, NODE)):
        raise InputError("each: host or node is expected, and no steps beside it")
    if len(plan.steps) > STEPS:
        raise InputError(f"steps: more than {STEPS}; {ELSEWHERE}")
    steps: list[Step] = []
    added = 0
    for number, step in enumerate(plan.steps):
        if len(step) != 1:
            raise InputError(f"steps[{number}]: one option with its value is expected")
        ((name, value),) = step.items()
        if name == "add":
            added += len(_decoded(_objects, value, f"steps[{number}].add"))
            if added > OBJECTS:
                raise InputError(f"steps[{number}].add: more than {OBJECTS} objects in all; {ELSEWHERE}")
            reading = InputReader()
            reading.read_json(b'{"kind":"List","items":' + bytes(value) + b"}", f"steps[{number}].add")
            steps.append(added_of(reading.result(), allowance))
        else:
            text = _decoded(_texts, value, f"steps[{number}].{name}")
            if len(text) > NAME:
                raise InputError(f"steps[{number}].{name}: more than {NAME} characters")
            steps.append(parse(name, text, ha=plan.ha))
    return steps


def _decoded(decoder: msgspec.json.Decoder[T], value: msgspec.Raw, field: str) -> T:
    """The value of a step. Raises BadObjectError, msgspec.DecodeError."""
    try:
        return decoder.decode(value)
    except msgspec.ValidationError as error:
        raise fault_of(error, field, data=value) from error


async def _send(request: web.Request, snapshot: Snapshot, options: Options) -> web.StreamResponse:
    """The snapshot, made and compressed piece by piece while it is sent."""
    judging = Judging(
        list(options.host_keys),
        options.physical_host,
        snapshot.joining.by_name,
        options.cross_namespace,
        snapshot.joining.label,
    )
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


def _next(pieces: Iterator[bytes], squeeze: "zlib._Compress") -> bytes | None:
    """The next piece, compressed; None after the last."""
    piece = next(pieces, None)
    return None if piece is None else squeeze.compress(piece)
