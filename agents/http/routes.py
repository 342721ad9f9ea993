"""Every route of the worker beside the probes, and what runs while it listens.

In: settings, the latest decisions, why the worker is not ready, its pipeline. Out: `HttpRoutes` for `server.py`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http import api, applying, details, events, page, plans
from underhost.agents.http.extender import ExtenderRoutes
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.observer import TopicObserver
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.pipeline.tables.sites import joining_of
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings

FEATURES = {"/api/v1/whatif": "whatif", "/api/v1/repair": "repair", "/api/v1/history": "history"}
"""What the page offers only where the route is there."""


@dataclass(frozen=True)
class HttpRoutes:
    """Routes; `running` are contexts of the server's life, `ending` is awaited before connections are closed.

    `questions` are kube-scheduler's, which may have a listener of their own.
    """

    routes: list[web.RouteDef]
    running: list[Callable[[web.Application], AsyncIterator[None]]]
    ending: list[Callable[[web.Application], Awaitable[None]]]
    questions: list[web.RouteDef] = field(default_factory=list)


def http_routes(
    settings: Settings,
    latest: LatestDecisions,
    unready: Callable[[], dict[str, str]],
    pipeline: Callable[[], Pipeline | None],
    registry: CollectorRegistry,
    observer: TopicObserver | None = None,
    on_visit: Callable[[], None] = lambda: None,
) -> HttpRoutes:
    """The routes of a worker with these settings; `observer` fills `latest` where the worker does not evaluate.

    `on_visit` is called when a page begins to follow a site.
    """
    on_read = observer.look if observer is not None else lambda: None
    reader, options = open_reader(settings.kafka), options_of(settings)
    feeds = ChangeFeeds(latest, settings.site, unready, reader, on_read)
    past_sites = PastSites(settings.site, options, reader, feeds.known, joining=joining_of(settings))
    extender = ExtenderRoutes(settings.site, options, pipeline, latest, registry, settings.host_label)
    routes = [
        *page.routes(),
        *events.routes(feeds, on_visit),
        *past_sites.routes(),
        *plans.routes(feeds, options, past_sites),
        *applying.routes(feeds, options, lambda: running.repairs if (running := pipeline()) is not None else None),
    ]
    features = [FEATURES[route.path] for route in routes if route.path in FEATURES]
    runbooks = settings.alerting.runbooks
    routes += [*api.routes(feeds, features, past_sites, runbooks), *details.routes(feeds, options, past_sites)]
    routes += extender.probes()
    looking = [observer.running] if observer is not None else []
    return HttpRoutes(routes, [feeds.running, extender.running, *looking], [feeds.end], extender.routes())
