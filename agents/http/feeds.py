"""The feeds of all sites that this worker can show, and what happened in them.

In: the latest decisions, the topics. Out: a change feed and an activity log by site.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

from aiohttp import web

from underhost.agents.http.activity import TOPICS, ActivityLog, ActivityLogs
from underhost.agents.http.feed import ChangeFeed
from underhost.agents.http.guard import RequestRefused
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.schemas.errors import UnderhostError
from underhost.schemas.page import HistoryEntry, SiteSummary
from underhost.streams.ports import TopicReader

log = logging.getLogger(__name__)

AGAIN = 5.0
"""Seconds before the topics are followed again after a fault."""
OF_HOME = ("source ", "lease ")
"""What a worker has for the site of its settings alone: other sites have watchers elsewhere."""


class ChangeFeeds:
    """The change feeds by site.

    `home` is the site of the settings; `unready` gives reasons, as `/readyz` has them; `on_read` is called whenever
    somebody asks for a site.
    """

    def __init__(
        self,
        latest: LatestDecisions,
        home: str,
        unready: Callable[[], dict[str, str]],
        reader: TopicReader,
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        self._home, self._unready, self._reader, self._on_read = home, unready, reader, on_read
        self._feeds: dict[str, ChangeFeed] = {}
        self._activity = ActivityLogs(self._told)
        self._begun = asyncio.Event()
        # One thread works the rows of all sites out: they never change while one reads them.
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="page")
        for site in latest.sites():
            self._decided(site, latest.of(site))
        self._stop_listening = latest.listen(self._decided)

    def get(self, site: str) -> ChangeFeed | None:
        """The feed of a site; None where nothing is decided for it here now."""
        self._on_read()
        return self._feeds.get(site)

    def activity_log(self, site: str) -> ActivityLog:
        """What happened in a site."""
        return self._activity.of(site)

    def names(self) -> list[str]:
        """The sites, sorted; the one of the settings is there from the start."""
        self._on_read()
        return sorted({self._home, *self._feeds})

    def default(self) -> str:
        """The site that is meant where none is named."""
        return self._home if self._home in self._feeds or len(self._feeds) != 1 else next(iter(self._feeds))

    def reason(self, site: str) -> str:
        """Why nothing is decided for a site now; "" where all is well."""
        reasons = self._unready()
        if f"site {site}" in reasons:
            return reasons[f"site {site}"]
        elsewhere = ("site ",) if site == self._home else ("site ", *OF_HOME)
        return "; ".join(f"{what}: {why}" for what, why in sorted(reasons.items()) if not what.startswith(elsewhere))

    def known(self, site: str) -> str:
        """The name, where there is such a site here: whoever asks may name any. Raises RequestRefused."""
        names = self.names()
        if site not in names:
            raise RequestRefused(404, f"no site {site!r} here; there is: {', '.join(names)}")
        return site

    def wanted(self, site: str) -> ChangeFeed:
        """The feed of a site. Raises RequestRefused, which says why there is none."""
        feed = self.get(self.known(site))
        if feed is None:
            raise RequestRefused(503, f"site {site}: {self.summary(site).reason}")
        return feed

    def summary(self, site: str) -> SiteSummary:
        """A site in a few figures."""
        feed, reason = self._feeds.get(site), self.reason(site)
        if feed is None:
            return SiteSummary(site, False, reason or "nothing is decided for it by this worker", 0, 0, 0, {})
        snapshot, findings = feed.decisions.snapshot, feed.decisions.findings
        severities = Counter(event.severity for event in findings.open.values()) if findings is not None else {}
        return SiteSummary(
            site, True, reason, len(snapshot.hosts), len(snapshot.nodes), len(snapshot.pods), dict(severities)
        )

    def _decided(self, site: str, decisions: Decisions | None) -> None:
        if decisions is None:
            feed = self._feeds.pop(site, None)
            if feed is not None:
                feed.end()
            return
        if site in self._feeds:
            self._feeds[site].put(decisions)
        else:
            self._feeds[site] = ChangeFeed(site, decisions, self.pool, epoch=f"{time.time_ns():x}")
        self._begun.set()

    def _told(self, site: str, entry: HistoryEntry) -> None:
        if site in self._feeds:
            self._feeds[site].tell(entry)

    # ------------------------------------------------------------------------------------------------------- its life
    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """Follows the topics while the server listens."""
        following = asyncio.ensure_future(self._follow())
        following.add_done_callback(_say_ended)
        yield
        self._stop_listening()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        self.pool.shutdown(wait=False, cancel_futures=True)

    async def end(self, app: web.Application) -> None:
        """The server is about to close: whoever follows is let go."""
        for feed in self._feeds.values():
            feed.end()

    async def _follow(self) -> None:
        await self._begun.wait()  # by then the pipeline holds the topics: an embedded log is opened once
        while True:
            try:
                async with aclosing(self._reader.follow(TOPICS, from_beginning=True)) as records:
                    async for record in records:
                        self._activity.apply(record)
            except UnderhostError as error:
                log.warning("the history of the page is not up to date: %s", error)
            await asyncio.sleep(AGAIN)


def _say_ended(following: "asyncio.Future[None]") -> None:
    error = None if following.cancelled() else following.exception()
    if error is not None:
        log.error("the history of the page stands still: %s: %s", type(error).__name__, error, exc_info=error)
