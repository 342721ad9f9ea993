"""`/api/v1/repair/apply` and `/api/v1/maintenance/apply`: a repair, or maintenance of hosts, is carried out by the
worker that may move VMs, and followed to its end.

In: the body of a request, as for `/api/v1/repair` and `/api/v1/maintain`. Out: a `RepairProgress`, a
`MaintenanceProgress`; its id asks how far it is by then. The plan is the worker's own, made of its newest picture, and
made anew after every step.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from aiohttp import web

from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.history import document
from underhost.agents.http.repairs import MaintainRequest, RepairRequest, chosen_of, terms_of
from underhost.agents.http.trials import decoded
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.sinks.moves.campaign import Campaign
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import to_json
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.page import LastMaintenance

PATH, MAINTENANCE = "/api/v1/repair/apply", "/api/v1/maintenance/apply"
LAST = "/api/v1/maintenance"
"""What the page looks at: how far the last maintenance is."""


class MaintenanceRequest(MaintainRequest, forbid_unknown_fields=True, rename="camel"):
    """Which hosts have their turn; with `exit` each is taken out of maintenance mode again, without it by a person."""

    exit: bool = False


_repairs = msgspec.json.Decoder(RepairRequest)
_maintenance = msgspec.json.Decoder(MaintenanceRequest)


class Repairing(Protocol):
    """The pipeline, as far as it is asked here."""

    def begin_repair(self, site: str, terms: RepairTerms) -> Campaign:
        """Begin to carry out a repair. Raises Unreachable where that cannot be done here now."""

    def repair(self, id_: str) -> Campaign | None:
        """A repair that was begun here."""

    def begin_maintenance(self, site: str, terms: MaintenanceTerms) -> MaintenanceRun:
        """Begin to carry out a maintenance. Raises as `begin_repair`."""

    def maintenance(self, id_: str = "") -> MaintenanceRun | None:
        """A maintenance that was begun here; without an id the last one."""


def routes(feeds: ChangeFeeds, options: Options, pipeline: Callable[[], Repairing | None]) -> list[web.RouteDef]:
    """The routes; `options` are the worker's, `pipeline` is the one that runs now."""

    def site_of(request: web.Request, asked: RepairRequest | MaintenanceRequest) -> str:
        if asked.at:
            raise InputError("at: what is past cannot be changed any more")
        return asked.site or request.query.get("site", feeds.default())

    def begun(begin: Callable[[Repairing], Campaign | MaintenanceRun]) -> web.Response:
        running = pipeline()
        if running is None:
            raise RequestRefused(503, "the worker is being started again")
        try:
            return document(to_json(begin(running).progress))
        except Unreachable as error:
            raise RequestRefused(503, str(error)) from error

    async def repair(request: web.Request) -> web.Response:
        asked = decoded(await body_of(request), _repairs, lambda one: one)
        site = site_of(request, asked)
        terms, decided = terms_of(asked), feeds.wanted(site).decisions
        terms.check(decided.snapshot)
        terms.wanted(decided.report.findings if decided.report is not None else [])
        return begun(lambda running: running.begin_repair(site, terms))

    async def maintain(request: web.Request) -> web.Response:
        asked = decoded(await body_of(request), _maintenance, lambda one: one)
        site, chosen = site_of(request, asked), chosen_of(asked)
        chosen.check(feeds.wanted(site).decisions.snapshot, options)
        return begun(lambda running: running.begin_maintenance(site, MaintenanceTerms(chosen, asked.exit)))

    def following(
        what: str, of: Callable[[Repairing, str], Campaign | MaintenanceRun | None]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def follow(request: web.Request) -> web.Response:
            running, id_ = pipeline(), request.match_info["id"]
            found = of(running, id_) if running is not None else None
            if found is None:
                raise RequestRefused(404, f"no {what} {id_[:40]} was begun by this worker since its start")
            return document(to_json(found.progress))

        return follow

    async def last_maintenance(request: web.Request) -> web.Response:
        running = pipeline()
        run = running.maintenance() if running is not None else None
        return document(to_json(LastMaintenance(run.progress if run is not None else None)))

    return [
        web.post(PATH, repair),
        web.get(PATH + "/{id}", following("repair", lambda running, id_: running.repair(id_))),
        web.post(MAINTENANCE, maintain),
        web.get(LAST, last_maintenance),
        web.get(MAINTENANCE + "/{id}", following("maintenance", lambda running, id_: running.maintenance(id_))),
    ]
