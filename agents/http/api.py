"""`/api/v1`: sites, map, findings, what happened, and one pod with every rule's word on every node. Read only.

In: change feeds and activity logs, the evaluator's `explain`. Out: the documents of `schemas/page.py`. `site=` chooses
a site; absent, it is the one of the settings. An explanation is worked out in a thread, one at a time, from the same
snapshot that the map shows.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec
from aiohttp import web

from underhost.agents.alerts.alert import severity_alert
from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.history import PastSites, document
from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import PodVerdict
from underhost.schemas.page import History, PodDetail, SeverityList, SeverityRow, SiteList
from underhost.schemas.severities import ROWS

REMEMBERED = 32
"""Explanations that are kept of one snapshot: each speaks of every node."""
WAITING, EACH = 8, 6
"""Explanations that may wait for their turn, and those of one client: a browser has six connections."""

_encoder = msgspec.json.Encoder(order="sorted")


def routes(
    feeds: ChangeFeeds, options: Options, features: Collection[str], past_sites: PastSites
) -> list[web.RouteDef]:
    """The routes. `features` names what else this server offers; `past_sites` answers for `at=`."""
    explanations = Explanations(options)

    def site_of(request: web.Request) -> str:
        return request.query.get("site", feeds.default())

    async def sites(request: web.Request) -> web.Response:
        return document(_encoder.encode(SiteList([feeds.summary(site) for site in feeds.names()], sorted(features))))

    async def site_map(request: web.Request) -> web.Response:
        if "at" in request.query:
            return await past_sites.map(request)
        return document(await feeds.wanted(site_of(request)).map())

    async def findings(request: web.Request) -> web.Response:
        if "at" in request.query:
            return await past_sites.findings(request)
        return document(await feeds.wanted(site_of(request)).findings())

    async def activity(request: web.Request) -> web.Response:
        site = feeds.known(site_of(request))
        activity_log, subject = feeds.activity_log(site), request.query.get("subject")
        entries = activity_log.latest() if subject is None else activity_log.of(subject)
        return document(_encoder.encode(History(site, entries)))

    async def pod(request: web.Request) -> web.Response:
        site = site_of(request)
        feed = feeds.wanted(site)
        name = f"{request.match_info['namespace']}/{request.match_info['name']}"
        found = await feed.pod(name)
        if found is None:
            raise RequestRefused(404, f"pod {name}: not in site {site}, or finished")
        row, host, named = found
        snapshot = feed.decisions.snapshot
        if name not in snapshot.pods:
            raise RequestRefused(404, f"pod {name}: gone")
        verdict = await explanations.of(request, snapshot, name)
        history = feeds.activity_log(site).of_pod(name, row.node)
        scheduler = snapshot.pods[name].spec.scheduler_name
        return document(_encoder.encode(PodDetail(site, row, host, scheduler, verdict, named, history)))

    return [
        web.get("/api/v1/sites", sites),
        web.get("/api/v1/severities", _severities),
        web.get("/api/v1/map", site_map),
        web.get("/api/v1/findings", findings),
        web.get("/api/v1/activity", activity),
        web.get("/api/v1/pods/{namespace}/{name:.+}", pod),
    ]


async def _severities(_: web.Request) -> web.Response:
    rows = [
        SeverityRow(
            row.name,
            row.meaning,
            row.alert,
            row.colour,
            row.icon,
            row.remedy,
            row.remedies,
            runbook=f"{severity_alert(row.name)}.md",
            grave=row.grave,
        )
        for row in ROWS
    ]
    return document(_encoder.encode(SeverityList(rows)))


class Explanations:
    """Explains pods, one after another, and remembers the last answer of a snapshot."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._places = ClientPlaces(WAITING, EACH, "other explanations are being worked out")
        self._snapshot: Snapshot | None = None
        self._known: OrderedDict[str, PodVerdict] = OrderedDict()

    async def of(self, request: web.Request, snapshot: Snapshot, pod: str) -> PodVerdict:
        """The verdict on a pod. Raises InputError for an object that breaks the API's rules, RequestRefused if busy."""
        if snapshot is not self._snapshot:
            self._snapshot, self._known = snapshot, OrderedDict()
        if pod in self._known:
            return self._known[pod]
        with self._places.place(request):
            loop = asyncio.get_running_loop()
            explained = await loop.run_in_executor(self._pool, explain, snapshot, self._options, [pod])
        verdict = explained.pods[pod]
        if snapshot is self._snapshot:
            self._known[pod] = verdict
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return verdict
