"""vCenter's inventory as change topics: list, mark as listed, publish changes.

In: a Collector (a login with a filter) and what the topics hold. Out: records of hosts, vms and drs-rules. A lost
session, a lost collector version and a lost server end alike: log in again, list, publish the differences. It leaves
to others what the records mean.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from underhost.schemas.errors import Gone, Refused, UnderhostError, Unreachable
from underhost.schemas.keys import listed_key, parse_key
from underhost.schemas.records import Listed
from underhost.schemas.topics import HOSTS, Topic
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader
from underhost.streams.publish import publish_until_taken
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.timing import Backoff, Timing
from underhost.streams.vsphere.cache import TOPICS_IN_ORDER, InventoryCache, Records, Touched
from underhost.streams.vsphere.changes import Collector, ObjectChange
from underhost.streams.vsphere.client import SessionLost
from underhost.streams.vsphere.collector import open_collector
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import differs, doubt_of, is_collapse, marker_of, outgoing_of, plan_listing

log = structlog.get_logger("underhost.vsphere")

STEADY = 2.5
"""A session that still answered so many seconds after its list was a good one: after its end we log in at once."""
REFUSED_PAUSE = 50.0
"""Seconds after a refused login: vCenter locks an account after five wrong passwords within three minutes, and a new
password in the file should be found within a minute."""


class VSphereSource(Source):
    """The source of one vCenter.

    Attributes:
        ready: set once everything is listed and published.
    """

    name = "vsphere"
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
        self.site = site
        self.epoch = time.time_ns() // 1_000_000
        self.ready = asyncio.Event()
        self._settings, self._publisher, self._reader = settings, publisher, reader
        self._connect, self._timing, self._clock = connect, timing or Timing(), clock
        self._asked = asyncio.Event()
        self._doubts = Doubts(site=site)
        self._empty_is_right = False
        self._marked: tuple[str, float] | None = None
        self._listed = False
        self._since: float | None = None
        self._held: dict[str, dict[str, bytes]] | None = None
        self._recent: dict[str, tuple[int, int]] = {}
        self._frozen: set[str] = set()

    @property
    def shrunk(self) -> list[str]:
        """One line for each topic whose inventory is empty or has lost over 40 % at once; empty when all is well.

        Nothing of such a topic is deleted until a person accepts it, even if all of it is back.
        """
        return self._doubts.lines

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
        settled = self._doubts.accept()
        self._empty_is_right = bool(settled)
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
                if not self._listed:
                    if isinstance(error, Gone):
                        raise Unreachable(str(error)) from error
                    raise
                if self._answered_after_list() >= STEADY:
                    backoff.reset()
                delay = REFUSED_PAUSE if isinstance(error, Refused) else backoff.next()
                log.warning("session ended", site=self.site, reason=str(error), delay=round(delay, 1))
                await self._timing.sleep(delay)

    def _answered_after_list(self) -> float:
        """For how many seconds the last session went on to answer after its list."""
        return self.contact - self._since if self._since is not None and self.contact is not None else 0.0

    async def _one_session(self) -> None:
        """From login to the end of the session, which is always an exception."""
        if self._settings.insecure:
            log.warning("certificate not checked", site=self.site, url=self._settings.url)
        collector = await self._connect(self._settings)
        try:
            picture = InventoryCache(self.site, self._settings.clusters)
            version = await self._list(collector, picture)
            await self._follow(collector, picture, version)
        finally:
            await collector.close()

    async def _list(self, collector: Collector, picture: InventoryCache) -> str:
        """The first full update set; everything that differs from the topics is published, then the markers."""
        version, changes = await self._update_set(collector, "")
        picture.apply(changes)
        await self._poll(collector, picture)
        if reason := picture.missing_clusters():
            raise Refused(reason)
        if self._held is None:
            self._held = {topic.name: await self._reader.state(topic, self.site) for topic in TOPICS_IN_ORDER}
            self._doubts.recall(doubt_of(self.site, self.name, self._held))
            # No host, and no doubt about it: a person has accepted that in an earlier run.
            self._empty_is_right = list(self._held[HOSTS.name]) == [listed_key(self.site, self.name)]
            for records in self._held.values():
                records.pop(listed_key(self.site, self.name), None)
        await self._reconcile(picture, first=True)
        self._listed = True
        self._since = self._clock()
        counts = {topic.short: len(self._held[topic.name]) for topic in TOPICS_IN_ORDER}
        log.info("listed", site=self.site, shrunk=bool(self.shrunk), **counts)
        return version

    async def _follow(self, collector: Collector, picture: InventoryCache, version: str) -> None:
        """Publish changes as they come, and what has to be asked for at every interval. Ends by an exception."""
        update = asyncio.ensure_future(self._update_set(collector, version))
        due = asyncio.ensure_future(self._poll_due())
        try:
            while True:
                await asyncio.wait({update, due}, return_when=asyncio.FIRST_COMPLETED)
                if update.done():
                    version, changes = update.result()
                    await self._publish_changes(picture, picture.apply(changes))
                    update = asyncio.ensure_future(self._update_set(collector, version))
                if due.done():
                    due = asyncio.ensure_future(self._poll_due())
                    await self._poll(collector, picture)
                    await self._reconcile(picture)
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

    async def _poll(self, collector: Collector, picture: InventoryCache) -> None:
        poll = await collector.poll()
        if picture.host_refs() and not poll.host_changes:
            raise SessionLost("vCenter shows no hosts any more: the session may have ended")
        picture.apply_poll(poll)
        self.contact = self._clock()

    async def _reconcile(self, picture: InventoryCache, *, first: bool = False) -> None:
        """Publish every difference between picture and topics; markers after a list, and when their message changes."""
        held, protected, doubts = self._known(), picture.protected(), self._doubts
        deletable = {
            topic: {key: value for key, value in records.items() if key not in protected}
            for topic, records in held.items()
        }
        accepted, listed = doubts.accepted, picture.records()
        plan = plan_listing(
            self.site,
            self.name,
            TOPICS_IN_ORDER,
            deletable,
            listed,
            self.epoch,
            accepted=accepted,
            doubt=str(doubts),
        )
        lines = plan.shrunk
        if not listed[HOSTS.name] and not held[HOSTS.name] and not self._empty_is_right:
            lines = [*lines, f"hosts: vCenter shows none to site {self.site}; a right may be missing"]
        doubts.see(lines, plan.missing)
        records = plan.records[: -len(TOPICS_IN_ORDER)]
        await self._publish(records + self._markers(listed, first))
        doubts.settle(accepted)
        self._recent = {topic.name: (len(held[topic.name]), 0) for topic in TOPICS_IN_ORDER}
        self._frozen = plan.frozen
        self.ready.set()

    def _markers(self, listed: Records, first: bool) -> list[Outgoing]:
        """The markers, if they are due: after a list, when a doubt comes or goes, and as a sign of life."""
        doubt, now, sign_of_life = str(self._doubts), self._clock(), self._settings.sign_of_life
        before = self._marked
        # A little early rather than a whole poll late.
        if not first and before is not None and before[0] == doubt and now - before[1] < 0.9 * sign_of_life:
            return []
        self._marked = doubt, now
        seen = time.time_ns() // 1_000_000
        return [
            marker_of(self.site, self.name, topic, Listed(self.epoch, len(listed[topic.name]), doubt, seen))
            for topic in TOPICS_IN_ORDER
        ]

    async def _publish_changes(self, picture: InventoryCache, touched: Touched) -> None:
        """Publish what changed of the touched objects; equal values that vCenter sends again are dropped."""
        if touched.everything:
            await self._reconcile(picture)
            return
        held, protected = self._known(), picture.protected()
        outgoing, vanished = [], []
        for topic, key, record in picture.changed(touched):
            if topic.name in self._frozen:
                continue
            before = held[topic.name].get(key)
            if record is not None and differs(topic, key, record, before):
                outgoing.append(outgoing_of(topic, key, record))
            elif record is None and before is not None and key not in protected:
                vanished.append((topic, key))
        for topic in TOPICS_IN_ORDER:
            keys = [key for at, key in vanished if at is topic]
            if keys and self._believed(topic, keys):
                outgoing.extend(tombstone(topic, key) for key in keys)
        if self._marked is not None and self._marked[0] != str(self._doubts):
            outgoing.extend(self._markers(picture.records(), first=False))
        await self._publish(outgoing)

    def _believed(self, topic: Topic, vanished: list[str]) -> bool:
        """Whether these may be deleted, counted since the last poll: a slow collapse is one, too."""
        total, before = self._recent[topic.name]
        total, gone = max(total, len(self._known()[topic.name])), before + len(vanished)
        self._recent[topic.name] = (total, gone)
        if not self._doubts and not is_collapse(gone, total) and gone < total:
            return True
        lines = list(self._doubts.lines)
        if not any(line.startswith(f"{topic.short}: ") for line in lines):
            lines.append(f"{topic.short}: {gone} of {total} objects of site {self.site} vanished at once; not believed")
        self._doubts.see(lines, self._doubts.missing.union(vanished))
        self._frozen.add(topic.name)
        return False

    async def _publish(self, records: list[Outgoing]) -> None:
        if not records:
            return
        if self._listed:
            await publish_until_taken(self._publisher, records, f"changes of site {self.site}", self._timing)
        else:
            await self._publisher.publish(*records)
        held, marker = self._known(), listed_key(self.site, self.name)
        for record in records:
            if record.key == marker:
                continue
            if record.value is None:
                held[record.topic.name].pop(record.key, None)
            else:
                held[record.topic.name][record.key] = record.value

    def _known(self) -> dict[str, dict[str, bytes]]:
        assert self._held is not None, "read before the first list"
        return self._held


def tombstone(topic: Topic, key: str) -> Outgoing:
    """The record that deletes an object; the last part of a key is a VM's or host's moref, which is its uid."""
    return outgoing_of(topic, key, None, parse_key(key).name)
