"""The table of the server's rooms beside the probes: every route that there is, and what runs while it listens.

In: settings, the latest decisions, why the worker is not ready, its pipeline. Out: `Rooms` for `server.py`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http import api, events, page, plans
from underhost.agents.http.extender import ExtenderRoom
from underhost.agents.http.feeds import Feeds
from underhost.agents.http.history import Pasts
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.observer import TopicObserver
from underhost.agents.pipeline.run import Pipeline
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings

FEATURES = {"/api/v1/whatif": "whatif", "/api/v1/history": "history"}
"""What the page offers only where the route is there."""


@dataclass(frozen=True)
class Rooms:
    """Routes; `running` are contexts of the server's life, `ending` is awaited before connections are closed."""

    routes: list[web.RouteDef]
    running: list[Callable[[web.Application], AsyncIterator[None]]]
    ending: list[Callable[[web.Application], Awaitable[None]]]


def furnish(
    settings: Settings,
    latest: LatestDecisions,
    unready: Callable[[], dict[str, str]],
    pipeline: Callable[[], Pipeline | None],
    registry: CollectorRegistry,
    observer: TopicObserver | None = None,
) -> Rooms:
    """The rooms of a worker with these settings; `observer` fills `latest` where the worker does not evaluate."""
    looked = observer.look if observer is not None else lambda: None
    feeds = Feeds(latest, settings.site, unready, open_reader(settings.kafka), looked)
    options = options_of(settings)
    routes: list[web.RouteDef] = []
    routes += page.routes()
    routes += events.routes(feeds)
    pasts = Pasts(settings.site, options, open_reader(settings.kafka))
    routes += pasts.routes()
    offered = lambda: [FEATURES[route.path] for route in routes if route.path in FEATURES]  # noqa: E731
    routes += api.routes(feeds, options, offered, pasts)
    routes += plans.routes(feeds, options)
    extender = ExtenderRoom(settings.site, options, pipeline, latest, registry)
    routes += extender.routes()
    looking = [observer.running] if observer is not None else []
    return Rooms(routes, [feeds.running, extender.running, *looking], [feeds.end])
