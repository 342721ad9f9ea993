"""A page's server over decisions that a test makes, and one over the whole pipeline, each on a thread of its own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry
from support.published import decided, records
from support.simulation.operated import OperatedSite

from underhost.agents.http import api, applying, details, events, page, plans
from underhost.agents.http.doors import session
from underhost.agents.http.doors.door import Door
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.sinks.ports import Writers
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.worker import run_worker
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import Topic
from underhost.streams.ports import Record
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings, WebSettings
from underhost.streams.settings.sinks import SinkSettings

T = TypeVar("T")
SECONDS = 60


class OwnLoop:
    """An event loop on a thread. `serve` runs in it until `stop` is set, and tells `ready` the address."""

    def __init__(self) -> None:
        self._ready: Future[str] = Future()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.address = ""

    def __enter__(self: T) -> T:
        self._thread.start()  # type: ignore[attr-defined]
        self.address = self._ready.result(SECONDS)  # type: ignore[attr-defined]
        return self

    def __exit__(self, *error: object) -> None:
        if self._stop is not None:
            self.do(self._stop.set)
        self._thread.join(SECONDS)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        except BaseException as error:  # noqa: BLE001 - handed to the test that waits
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        await self.serve(self._ready.set_result, self._stop)

    async def serve(self, ready: Callable[[str], None], stop: asyncio.Event) -> None:
        """Run until told to stop."""
        raise NotImplementedError

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The loop stands still meanwhile: connections stay, and nothing is answered."""
        thawed = threading.Event()
        self._loop.call_soon_threadsafe(thawed.wait, SECONDS)
        try:
            yield
        finally:
            thawed.set()

    def do(self, act: Callable[[], T]) -> T:
        """Do something on the loop's thread."""

        async def acting() -> T:
            return act()

        return self.wait(acting())

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for something that happens on the loop's thread."""

        async def waiting() -> T:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(waiting(), self._loop).result(SECONDS)


class ShownSite(OwnLoop):
    """The site `prod`, as a test says that it is.

    Attributes:
        features: what the API says that it offers. more: routes beside the real ones. door: who gets in.
        repairing: who carries repairs out. reasons: why the worker is not ready, by what is not; none once a site is.
    """

    features = ("repair", "whatif")
    more: tuple[web.RouteDef, ...] = ()
    repairing: applying.Repairing | None = None

    def __init__(self, door: Door | None = None) -> None:
        super().__init__()
        self._door = door or Door()
        self.latest = LatestDecisions()
        self._records: asyncio.Queue[Record] = asyncio.Queue()
        self._told = 0
        self.reasons = {"site prod": "kubernetes has not listed pods"}

    async def follow(self, topics: Iterable[Topic], *, from_beginning: bool = False) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        while True:
            yield await self._records.get()

    async def serve(self, ready: Callable[[str], None], stop: asyncio.Event) -> None:
        """See `OwnLoop`."""
        feeds = ChangeFeeds(self.latest, "prod", lambda: self.reasons, self)  # type: ignore[arg-type]
        past_sites = PastSites("prod", Options(), self, feeds.known)  # type: ignore[arg-type]
        routes = [*page.routes(), *events.routes(feeds), *plans.routes(feeds, Options(), past_sites), *self.more]
        routes += applying.routes(feeds, Options(), lambda: self.repairing)
        routes += past_sites.routes() if "history" in self.features else []
        routes += [*api.routes(feeds, self.features, past_sites), *details.routes(feeds, Options(), past_sites)]
        routes = HttpRoutes([*routes, *session.routes(self._door)], [feeds.running], [feeds.end])
        server = await start_server(
            "127.0.0.1:0",
            unready=dict,
            registry=CollectorRegistry(),
            refresh=lambda: None,
            routes=routes,
            door=self._door,
        )
        ready(server.address)
        await stop.wait()
        await server.close()

    def put(self, snapshot: Snapshot, *findings: FindingEvent) -> None:
        """The site is like this now."""
        self.reasons = {}
        self.do(lambda: self.latest.put("prod", decided(snapshot, *findings)))

    def tell(self, topic: Topic, key: str, value: object) -> None:
        """A record is published."""
        for record in records((topic, key, value), start=self._told):
            self.do(lambda record=record: self._records.put_nowait(record))  # type: ignore[misc]
        self._told += 1


class LiveDemo(OwnLoop):
    """The pipeline over the simulated site, as the demo runs it.

    Attributes:
        visits: how many pages have begun to follow it.
    """

    def __init__(self, folder: Path, **site: Any) -> None:
        super().__init__()
        self._folder = folder
        self.visits = 0
        self.site = OperatedSite("kubevirt", seed=1, **site)

    async def serve(self, ready: Callable[[str], None], stop: asyncio.Event) -> None:
        """See `OwnLoop`."""
        settings = Settings(
            site="demo",
            kafka=KafkaSettings(embedded=self._folder / "demo.db"),
            kubernetes=KubernetesSettings(simulated="kubevirt"),
            vsphere=VSphereSettings(simulated="kubevirt"),
            sinks=SinkSettings(labels=True, bindings=True, drs_rules=True),
            web=WebSettings(listen="127.0.0.1:0"),
        )
        connections = Connections(
            self.site.sources, Writers(self.site.kubernetes, self.site.vsphere, moves=self.site.vsphere)
        )
        await run_worker(settings, connections=connections, stop=stop, on_listening=ready, on_visit=self._visited)

    def _visited(self) -> None:
        self.visits += 1
