"""`/api/v1`: sites, map, findings, and what happened. Read only.

In: change feeds and activity logs. Out: the documents of `schemas/page.py`. `site=` chooses a site; absent, it is the
one of the settings.
"""

from collections.abc import Collection, Container, Mapping

import msgspec
from aiohttp import web

from underhost.agents.alerts.alert import RUNBOOKS, STOPPED, is_on_the_web, severity_alert
from underhost.agents.evaluate.findings import INVENTORY
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.history import PastSites, document
from underhost.agents.pipeline.decisions import Decisions
from underhost.schemas.page import History, SeverityList, SeverityRow, SiteList
from underhost.schemas.severities import ROWS

NAMED, NODES = "named", 200
"""What `pods=` of the map may ask for; the nodes whose pods may be asked for at once."""
SUBJECTS = "pod/NAMESPACE/NAME, node/NAME, host/ID, vm/ID or finding/ID"
"""What the activity of one object may be asked of."""

_encoder = msgspec.json.Encoder(order="sorted")


def routes(
    feeds: ChangeFeeds, features: Collection[str], past_sites: PastSites, runbooks: str = RUNBOOKS
) -> list[web.RouteDef]:
    """The routes. `features` names what else this server offers; `past_sites` answers for `at=`; `runbooks` is where
    alerts say that the runbooks are: where no browser can read that, they are the worker's own.
    """

    def site_of(request: web.Request) -> str:
        return request.query.get("site", feeds.default())

    async def sites(request: web.Request) -> web.Response:
        return document(_encoder.encode(SiteList([feeds.summary(site) for site in feeds.names()], sorted(features))))

    async def site_map(request: web.Request) -> web.Response:
        if "at" in request.query:
            return await past_sites.map(request)
        feed, nodes = feeds.wanted(site_of(request)), request.query.getall("node", [])
        if len(nodes) > NODES:
            raise RequestRefused(422, f"node: at most {NODES} at once")
        if (pods := request.query.get("pods", NAMED)) != NAMED:
            raise RequestRefused(422, f"pods {pods!r}: {NAMED} is expected")
        return document(await (feed.piece(nodes) if nodes else feed.map(outline="pods" in request.query)))

    async def findings(request: web.Request) -> web.Response:
        if "at" in request.query:
            return await past_sites.findings(request)
        return document(await feeds.wanted(site_of(request)).findings())

    async def activity(request: web.Request) -> web.Response:
        site = feeds.known(site_of(request))
        activity_log, subject = feeds.activity_log(site), request.query.get("subject")
        entries = activity_log.latest() if subject is None else activity_log.of(subject)
        if subject is not None and not entries:
            _check_subject(feeds.wanted(site).decisions, subject)
        return document(_encoder.encode(History(site, entries)))

    table = _encoder.encode(SeverityList(severities(runbooks)))

    async def known_severities(_: web.Request) -> web.Response:
        return document(table)

    return [
        web.get("/api/v1/sites", sites),
        web.get("/api/v1/severities", known_severities),
        web.get("/api/v1/map", site_map),
        web.get("/api/v1/findings", findings),
        web.get("/api/v1/activity", activity),
    ]


def _check_subject(decisions: Decisions, subject: str) -> None:
    """Raises RequestRefused for what is not in the site now; asked where nothing is remembered of it either."""
    snapshot, found = decisions.snapshot, decisions.findings
    there: Mapping[str, Container[str]] = {
        "pod": snapshot.pods,
        "node": snapshot.nodes,
        "host": snapshot.hosts,
        "vm": snapshot.vms,
        "finding": found.open if found is not None else (),
    }
    kind, _, name = subject.partition("/")
    if kind not in there or not name:
        raise RequestRefused(422, f"subject {subject!r}: {SUBJECTS} is expected")
    if name not in there[kind]:
        raise RequestRefused(404, f"{kind} {name}: not in site {snapshot.site}, and nothing is remembered of it")


def severities(runbooks: str) -> list[SeverityRow]:
    """Every severity, worst first, with the address of its runbook."""
    address = f"{runbooks.rstrip('/')}/{{}}.md" if is_on_the_web(runbooks) else "/runbooks/{}"
    return [
        SeverityRow(
            row.name,
            row.meaning,
            row.alert,
            row.colour,
            row.icon,
            row.remedy,
            row.remedies,
            runbook=address.format(severity_alert(row.name)),
            runbooks={INVENTORY: address.format(STOPPED)},
            grave=row.grave,
        )
        for row in ROWS
    ]
