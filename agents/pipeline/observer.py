"""The picture of every site for a worker that shows it without deciding: read from the topics, like any consumer.

In: the change topics, `node-hosts` and `violations`, from their beginning. Out: the newest snapshot of each site with
its open findings, as the latest decisions that the page is made from. For a worker whose page runs without the
evaluator. It joins no group: every page sees every site, so that there may be as many of them as are wanted. What
cannot be read is left out: the workers that decide put it into dead-letters.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from underhost.agents.pipeline.decisions import Decisions, FindingChange
from underhost.agents.pipeline.gates.guards import Guards
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.tables.sites import sites_of
from underhost.agents.site.host_labels import hosts_of
from underhost.agents.site.objects import decode_record, read_key, read_record
from underhost.schemas.errors import BadEvent, UnderhostError
from underhost.schemas.keys import site_of
from underhost.schemas.records import RESOLVED, FindingEvent, NodeHost
from underhost.schemas.topics import BY_NAME, NODE_HOSTS, SOURCE_TOPICS, VIOLATIONS, Topic
from underhost.streams.cloudevents import TERM
from underhost.streams.ports import Record, TopicReader
from underhost.streams.settings.model import Settings
from underhost.streams.terms import KnownTerm, deleted_uid, header_of, newest

log = logging.getLogger(__name__)

FOLLOWED = (*SOURCE_TOPICS, NODE_HOSTS, VIOLATIONS)
PAUSE = 0.05
"""Seconds after a change before it is shown: what comes together is shown together."""
AGAIN = 5.0
"""Seconds before the topics are read again after a fault, and between two questions whether Kafka is there."""
SLICE = 500
"""Records that are taken in at a time, some 20 ms, before others have their turn."""


@dataclass
class _Derived:
    """What others have decided of one site: where each node runs, and the open findings by key."""

    hosts: dict[str, NodeHost] = field(default_factory=dict)
    findings: dict[str, FindingEvent] = field(default_factory=dict)


class Pictures:
    """The sites as the records so far make them.

    Attributes:
        sites: the objects. changed: the sites that are other than when they were last taken.
    """

    def __init__(self, settings: Settings) -> None:
        self._derived: dict[str, _Derived] = {}
        self._terms: dict[tuple[str, str], KnownTerm] = {}
        """The newest by topic and site."""
        self.changed: set[str] = set()
        self.sites = sites_of(settings, SOURCE_TOPICS, shown_only=True)
        self.sites.resume(range(settings.kafka.partitions), {}, {})
        self.sites.on_change = self.changed.add

    def apply(self, record: Record) -> None:
        """Take in one record."""
        topic = BY_NAME[record.topic]
        try:
            if topic.source is not None:
                key = read_key(record.key)
                if self.sites.partition_of(key.site) == record.partition:
                    row = read_record(topic, key, record.value)
                    self._follow_term(topic, key.site, record)
                    uid = deleted_uid(record.headers) if row is None else ""
                    self.sites.apply(topic, key, row, _time_of(record), uid)
            else:
                self._decided(topic, (record.key or b"").decode(), record)
        except (BadEvent, UnicodeDecodeError):
            pass  # a dead letter of the worker that decides, or a late record that its tables leave out, too
        self.sites.advance(topic, record.partition, record.offset)

    def _decided(self, topic: Topic, key: str, record: Record) -> None:
        site, row = site_of(key), decode_record(topic, record.value)
        if self.sites.partition_of(site) != record.partition:
            return
        self._follow_term(topic, site, record)
        derived = self._derived.setdefault(site, _Derived())
        rows: dict[str, Any] = derived.findings if topic is VIOLATIONS else derived.hosts
        if row is None or (isinstance(row, FindingEvent) and row.state == RESOLVED):
            rows.pop(key, None)
        else:
            rows[key] = row
        self.changed.add(site)

    def _follow_term(self, topic: Topic, site: str, record: Record) -> None:
        """Raises LateRecord for a record of an owner that another one has followed."""
        known = newest(self._terms.get((topic.short, site)), header_of(record.headers, TERM), _time_of(record))
        if known is not None:
            self._terms[topic.short, site] = known

    def decisions(self, site: str) -> Decisions:
        """The newest picture of the site, as a worker that decides has it."""
        derived = self._derived.get(site, _Derived())
        snapshot = self.sites.snapshot(site)
        hosts = {row.node: row for row in derived.hosts.values() if row.node in snapshot.nodes}
        open_ = {event.id: event for event in derived.findings.values()}
        known = snapshot.hosts or hosts_of(hosts.values(), {})
        return Decisions(replace(snapshot, hosts=known, node_hosts=hosts), findings=FindingChange(open_, []))


def _time_of(record: Record) -> float:
    """Seconds since 1970; none of the future, as in the tables."""
    return min(record.timestamp / 1000, time.time())


class TopicObserver:
    """Follows the topics and keeps the latest decisions up to date while the server listens.

    Unless `at_once`, it begins with the first look: a worker that only has the page beside its work, for its probes,
    need not know of everything.
    """

    def __init__(self, settings: Settings, latest: LatestDecisions, reader: TopicReader, *, at_once: bool) -> None:
        self._settings, self._latest, self._reader, self._at_once = settings, latest, reader, at_once
        self._wanted = asyncio.Event()
        self._shown: Pictures | None = None
        self._faults: dict[str, str] = {}
        """Of Kafka, of the topics that are followed and of the page that shows them; each is over on its own."""

    def unready(self) -> dict[str, str]:
        """Why this worker has nothing to show, by what is the matter; empty where it shows a site, or need not."""
        if not self._at_once:
            return {}
        reasons = self.reasons()
        return {} if self._latest.sites() and not self._faults else reasons

    def look(self) -> None:
        """Somebody looks."""
        self._wanted.set()

    def reasons(self) -> dict[str, str]:
        """Why sites are not shown, or not as they are now."""
        if self._faults:
            return dict(self._faults)
        if self._shown is None:
            return {"worker": "it reads what the topics hold"}
        known = list(self._shown.sites.states) or [self._settings.site]
        found = {f"site {site}": self._shown.sites.unready(site) for site in sorted(known)}
        return {what: why for what, why in found.items() if why is not None}

    def stopped(self) -> dict[str, str]:
        """Why nothing is written for a site, as its watchers say, by site."""
        if self._shown is None:
            return {}
        return Guards(self._settings, self._shown.sites).stopped(self._shown.sites.states)

    # ------------------------------------------------------------------------------------------------------- its life
    async def running(self, app: object) -> AsyncIterator[None]:
        """While the server listens."""
        tasks = [
            self._begin(self._follow(), "topics", "they are not followed any more"),
            self._begin(self._listen_for_kafka(), "kafka", "nobody asks any more whether it is there"),
        ]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None], what: str, ended: str) -> "asyncio.Future[None]":
        """The work as a task; where it ends of a bug, `ended` is said of `what` from then on."""

        def hear(task: "asyncio.Future[None]") -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._faults[what] = f"{ended}: {type(error).__name__}: {error}"
                log.error("the page stands still: %s: %s", what, self._faults[what], exc_info=error)

        task = asyncio.ensure_future(work)
        task.add_done_callback(hear)
        return task

    async def _follow(self) -> None:
        if not self._at_once:
            await self._wanted.wait()
        while True:
            try:
                await self._read(Pictures(self._settings))
            except UnderhostError as error:
                self._faults["topics"] = f"they are read from the beginning again after a fault: {error}"
                log.warning("the page is not up to date: %s", error)
            await asyncio.sleep(AGAIN)

    async def _read(self, pictures: Pictures) -> None:
        """Read the topics from their beginning; what was shown before stays until all that is there is read."""
        caught_up, news = asyncio.Event(), asyncio.Event()
        showing = self._begin(self._show(pictures, caught_up, news), "page", "it stands still")
        try:
            count = 0
            async with aclosing(self._reader.follow(FOLLOWED, from_beginning=True, caught_up=caught_up)) as records:
                async for record in records:
                    pictures.apply(record)
                    news.set()
                    count += 1
                    if not count % SLICE:
                        await asyncio.sleep(0)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    async def _show(self, pictures: Pictures, caught_up: asyncio.Event, news: asyncio.Event) -> None:
        await caught_up.wait()
        self._shown = pictures
        self._faults.pop("topics", None)
        self._faults.pop("page", None)
        log.info("showing %s", ", ".join(sorted(pictures.sites.states)) or "no site yet")
        while True:
            changed = {site for site in pictures.changed if pictures.sites.unready(site) is None}
            pictures.changed -= changed
            for site in sorted(changed):
                self._latest.put(site, pictures.decisions(site))
            await news.wait()
            await asyncio.sleep(PAUSE)
            news.clear()

    async def _listen_for_kafka(self) -> None:
        """A broker that is away is waited for by whoever follows; a person is told that the page stands still."""
        if not self._at_once:
            await self._wanted.wait()
        while True:
            await asyncio.sleep(AGAIN)
            try:
                await self._reader.check()
            except UnderhostError as error:
                self._faults["kafka"] = str(error)
            else:
                self._faults.pop("kafka", None)
