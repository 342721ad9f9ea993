"""`/api/v1/repair/apply`: a repair is carried out, by the worker that may move VMs, and followed to its end.

In: the body of a request, as for `/api/v1/repair`. Out: a `RepairProgress`; its id asks how far it is by then. The plan
is the worker's own, made of its newest picture, and made anew after every step.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec
from aiohttp import web

from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.history import document
from underhost.agents.http.repairs import RepairRequest, terms_of
from underhost.agents.http.trials import decoded
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaign
from underhost.schemas.documents import to_json
from underhost.schemas.errors import InputError, Unreachable

PATH = "/api/v1/repair/apply"

_repairs = msgspec.json.Decoder(RepairRequest)


class Repairing(Protocol):
    """The pipeline, as far as it is asked here."""

    def begin_repair(self, site: str, terms: RepairTerms) -> Campaign:
        """Begin to carry out a repair. Raises Unreachable where that cannot be done here now."""

    def repair(self, id_: str) -> Campaign | None:
        """A repair that was begun here."""


def routes(feeds: ChangeFeeds, pipeline: Callable[[], Repairing | None]) -> list[web.RouteDef]:
    """The routes; `pipeline` is the one that runs now."""

    async def apply(request: web.Request) -> web.Response:
        asked = decoded(await body_of(request), _repairs, lambda one: one)
        if asked.at:
            raise InputError("at: what is past cannot be repaired any more")
        site = asked.site or request.query.get("site", feeds.default())
        terms, decided, running = terms_of(asked), feeds.wanted(site).decisions, pipeline()
        terms.check(decided.snapshot)
        terms.wanted(decided.report.findings if decided.report is not None else [])
        if running is None:
            raise RequestRefused(503, "the worker is being started again")
        try:
            return document(to_json(running.begin_repair(site, terms).progress))
        except Unreachable as error:
            raise RequestRefused(503, str(error)) from error

    async def follow(request: web.Request) -> web.Response:
        running, id_ = pipeline(), request.match_info["id"]
        campaign = running.repair(id_) if running is not None else None
        if campaign is None:
            raise RequestRefused(404, f"no repair {id_[:40]} was begun by this worker since its start")
        return document(to_json(campaign.progress))

    return [web.post(PATH, apply), web.get(PATH + "/{id}", follow)]
