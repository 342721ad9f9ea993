"""The vSphere watcher of a site: log in, list, follow the changes, poll what vCenter does not announce.

In: a Collector (a login with a filter). Out: the change topics of source `vsphere`, by way of `publisher.py`. A lost
session, a lost collector version and a lost server end alike: log in again, list, publish the differences.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from underhost.schemas.errors import BackendError, Conflict, Gone, Refused, UnderhostError, Unreachable
from underhost.schemas.topics import NODES, VSPHERE
from underhost.streams.log import structlog
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.timing import Backoff, Timing
from underhost.streams.vsphere.cache import InventoryCache
from underhost.streams.vsphere.changes import Collector, ObjectChange
from underhost.streams.vsphere.client import SessionLost
from underhost.streams.vsphere.collector import open_collector
from underhost.streams.vsphere.publisher import InventoryPublisher
from underhost.streams.vsphere.scope import identities

log = structlog.get_logger("underhost.vsphere")

LOOK_FOR_NODES = 300.0
"""Seconds between two looks at the nodes, whose VMs' clusters are watched where none are named. Until the first node is
known they are looked for at each poll."""
STEADY = 2.5
"""A session that still answered so many seconds after its list was a good one: after its end we log in at once."""
REFUSED_PAUSE = 50.0
"""Seconds after a refused login: another password in the file should be found within a minute. When the refused one is
tried again, `logins.py` says."""


class VSphereSource(Source):
    """The source of one vCenter.

    Attributes:
        ready: set once everything is listed and published.
    """

    name = VSPHERE
    contact: float | None = None

    def __init__(
        self,
        site: str,
        settings: VSphereSettings,
        publisher: Publisher,
        reader: TopicReader,
        *,
        connect: Callable[[VSphereSettings], Awaitable[Collector]] = open_collector,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._site = site
        self.epoch = time.time_ns() // 1_000_000
        self.ready = asyncio.Event()
        self._settings, self._reader = settings, reader
        self._connect, self._timing, self._clock = connect, timing or Timing(), clock
        self._topics = InventoryPublisher(
            site, self.epoch, publisher, self._timing, sign_of_life=settings.sign_of_life, clock=clock
        )
        self._asked = asyncio.Event()
        self._nodes, self._looked = frozenset[str](), float("-inf")
        """What VMs of nodes are known by, and when that was read."""
        self._since: float | None = None
        """When the session's list was published."""

    @property
    def shrunk(self) -> list[str]:
        """See `Source.shrunk`."""
        return self._topics.doubts.lines

    @property
    def stale(self) -> str:
        """One line when vCenter has not answered for too long (`vsphere.staleAfter`), "" while all is well.

        What the topics hold is then the last that was known: no reason to write anything new.
        """
        bound = self._settings.stale_bound
        if self.contact is None or self._clock() - self.contact < bound:
            return ""
        return f"vCenter has not answered for over {bound:g} s"

    def refresh(self) -> None:
        """Read rules and flags again now."""
        self._asked.set()

    def accept(self) -> list[str]:
        """See `Source.accept`."""
        settled = self._topics.accept()
        self.refresh()
        return settled

    async def run(self) -> None:
        """See `Source.run`."""
        backoff = Backoff(self._timing)
        while True:
            self._since = None
            try:
                await self._one_session()
            except UnderhostError as error:
                if not self._topics.listed:
                    if isinstance(error, Gone | Conflict):
                        raise Unreachable(str(error)) from error
                    raise
                if self._answered_after_list() >= STEADY:
                    backoff.reset()
                delay = REFUSED_PAUSE if isinstance(error, Refused) else backoff.next()
                log.warning("session ended", site=self._site, reason=str(error), delay=round(delay, 1))
                await self._timing.sleep(delay)

    def _answered_after_list(self) -> float:
        """For how many seconds the last session went on to answer after its list."""
        return self.contact - self._since if self._since is not None and self.contact is not None else 0.0

    async def _one_session(self) -> None:
        """From login to the end of the session, which is always an exception."""
        if self._settings.insecure:
            log.warning("certificate not checked", site=self._site, url=self._settings.url)
        collector = await self._connect(self._settings)
        try:
            cache = InventoryCache(self._site, self._settings.clusters)
            cache.know_nodes(self._nodes)
            version = await self._list(collector, cache)
            await self._follow(collector, cache, version)
        finally:
            await collector.close()

    async def _list(self, collector: Collector, cache: InventoryCache) -> str:
        """The first full update set; everything that differs from the topics is published, then the markers."""
        version, changes = await self._update_set(collector, "")
        cache.apply(changes)
        await self._topics.load(self._reader)
        # While vCenter starts, its REST API, which has the tags, is up last: without one no node may lose its labels.
        cache.know_tags(self._topics.host_tags())
        cache.know_clusters(self._topics.clusters())
        await self._poll(collector, cache)
        await self._look_for_nodes(cache)
        if reason := cache.missing_clusters():
            raise Refused(reason)
        await self._topics.reconcile(cache, first=True)
        self.ready.set()
        self._since = self._clock()
        log.info("listed", site=self._site, shrunk=bool(self.shrunk), **self._topics.counts())
        return version

    async def _follow(self, collector: Collector, cache: InventoryCache, version: str) -> None:
        """Publish changes as they come, and what has to be asked for at every interval. Ends by an exception."""
        update = asyncio.ensure_future(self._update_set(collector, version))
        due = asyncio.ensure_future(self._poll_due())
        try:
            while True:
                await asyncio.wait({update, due}, return_when=asyncio.FIRST_COMPLETED)
                if update.done():
                    version, changes = update.result()
                    await self._topics.publish_changes(cache, cache.apply(changes))
                    update = asyncio.ensure_future(self._update_set(collector, version))
                if due.done():
                    due = asyncio.ensure_future(self._poll_due())
                    await self._poll(collector, cache)
                    await self._look_for_nodes(cache)
                    try:
                        await self._topics.compare(self._reader)
                    except BackendError as error:
                        log.warning("not compared with the topics", site=self._site, reason=str(error))
                    await self._topics.reconcile(cache)
        finally:
            for task in (update, due):
                task.cancel()
                with suppress(asyncio.CancelledError, UnderhostError):
                    await task

    async def _update_set(self, collector: Collector, version: str) -> tuple[str, list[ObjectChange]]:
        """One whole update: all pages of it, so that what vanished at once is judged at once."""
        changes: list[ObjectChange] = []
        while True:
            page = await collector.wait(version)
            self.contact = self._clock()
            if page is None:
                if version or changes:
                    continue
                return version, changes  # an inventory in which we see nothing
            version = page.version
            changes.extend(page.changes)
            if not page.truncated:
                return version, changes

    async def _poll_due(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), self._settings.poll_interval)
        self._asked.clear()

    async def _look_for_nodes(self, cache: InventoryCache) -> None:
        """Where the settings name no cluster, those are watched that hold a node's VM."""
        if self._settings.clusters or (self._nodes and self._clock() - self._looked < LOOK_FOR_NODES):
            return
        with suppress(Unreachable):  # a node that is not known yet is one a little later
            nodes = await self._reader.state(NODES, self._site)
            # Off the event loop: of 5,000 nodes this is a tenth of a second.
            self._nodes = (
                await asyncio.to_thread(identities, list(nodes.values()), by_name=self._settings.joins_by_name)
                if nodes
                else frozenset()
            )
            self._looked = self._clock()
        cache.know_nodes(self._nodes)

    async def _poll(self, collector: Collector, cache: InventoryCache) -> None:
        poll = await collector.poll()
        if cache.host_refs() and not poll.host_changes:
            raise SessionLost("vCenter shows no hosts any more: the session may have ended")
        cache.apply_poll(poll)
        self.contact = self._clock()
