"""The Kubernetes watcher of a site: first list, markers, then every change, until it is cancelled.

In: one API server. Out: the change topics of source `kubernetes`. Called by the pipeline (`underhost run`). It leaves
the HTTP to the feed, staying up to date to `streams.watch`, and what to publish after a list to `streams.reconcile`.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog
from msgspec import Struct

from underhost.schemas.errors import BackendError, Gone, Refused, Retry, Unreachable
from underhost.schemas.keys import listed_key
from underhost.schemas.topics import KUBERNETES_TOPICS
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.feed import KindFeed
from underhost.streams.kubernetes.kinds import KINDS, Kind
from underhost.streams.ports import Outgoing, Publisher, TopicReader
from underhost.streams.reconcile import ListingPlan, outgoing_of, plan_listing
from underhost.streams.settings import KubernetesSettings
from underhost.streams.watch import (
    AT_ONCE,
    Backoff,
    Follower,
    Held,
    Listing,
    Pace,
    dead_letter,
    deliverable,
    held_of,
    publish_for_ever,
)

log = structlog.get_logger("underhost.kubernetes")

FIRST_ANSWER = 10.0
"""Seconds in which a throttling server must have let the first lists through, before the start is given up."""
RETRY_SHRUNK = 30.0
"""Seconds after which lists that are not believed are read again."""


class KubernetesSource:
    """Implements `streams.ports.Source` for a live cluster.

    Attributes:
        epoch: the start of this run, in milliseconds since 1970.
        ready: set once everything is listed and published.
        shrunk: one line for each list that is not believed (metrics and readiness show it); empty when all is well.
    """

    name = "kubernetes"

    def __init__(
        self,
        site: str,
        settings: KubernetesSettings,
        publisher: Publisher,
        reader: TopicReader,
        *,
        pace: Pace | None = None,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        self.epoch = time.time_ns() // 1_000_000
        self.ready = asyncio.Event()
        self._site, self._settings, self._publisher, self._reader = site, settings, publisher, reader
        self._pace, self._kinds = pace or Pace(), kinds
        self._first_shrunk: list[str] = []
        self._accepted = asyncio.Event()
        self._followers: dict[str, Follower] = {}

    @property
    def shrunk(self) -> list[str]:
        """Why lists are not believed at present."""
        return [*self._first_shrunk, *(follower.shrunk for follower in self._followers.values() if follower.shrunk)]

    @property
    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """What happened so far, by kind (plural)."""
        return {name: vars(follower.counters) for name, follower in self._followers.items()}

    async def run(self) -> None:
        """Runs until cancelled. Raises InputError, Refused or Unreachable until it has listed once; after, never."""
        async with await connect(self._settings) as client:
            feeds = [KindFeed(client, kind, self._site, self._pace) for kind in self._kinds]
            starts = await self._start(client, feeds)
            while self.shrunk:
                await self._wait_for_better()
                try:
                    starts = await self._start(client, feeds)
                except BackendError as error:
                    log.warning("not listed", site=self._site, reason=str(error))
            self.ready.set()
            async with asyncio.TaskGroup() as tasks:
                for feed, start in zip(feeds, starts, strict=True):
                    tasks.create_task(self._follower(feed, start).run(start.position), name=f"watch {feed.name}")

    def accept(self) -> None:
        """A person says that the shrunken lists are right: what vanished is deleted, and the site goes on."""
        self._accepted.set()

    async def _wait_for_better(self) -> None:
        """Until the lists are worth another look: a while later, or at once when a person accepts them."""
        waiting = [asyncio.ensure_future(self._pace.sleep(RETRY_SHRUNK)), asyncio.ensure_future(self._accepted.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _start(self, client: KubernetesClient, feeds: Sequence[KindFeed]) -> list["_Start"]:
        """List, publish the difference to what the topics hold, then the markers; what to follow from."""
        held = {topic.name: dict(await self._reader.state(topic, self._site)) for topic in KUBERNETES_TOPICS}
        listings = await self._first_lists(client, feeds)
        listed: dict[str, dict[str, Struct]] = {topic.name: {} for topic in KUBERNETES_TOPICS}
        records: list[Outgoing] = []
        for feed, listing in zip(feeds, listings, strict=True):
            if listing is None:
                continue
            topic = feed.kind.topic.name
            listed[topic].update((key, seen.value) for key, seen in listing.objects.items() if seen.value is not None)
            for item in listing.unreadable:
                log.error("object cannot be read", key=item.key, reason=item.error)
                records.append(dead_letter(feed.kind.topic, item))
                held[topic].pop(item.key, None)  # it is there, only unreadable: what is held of it stays
        # Off the event loop: with 100,000 pods this is a second of work.
        plan = await asyncio.to_thread(plan_listing, self._site, self.name, KUBERNETES_TOPICS, held, listed, self.epoch)
        records += map(deliverable, self._believed(plan, held, listed))
        for begin in range(0, len(records), AT_ONCE):
            await self._publisher.publish(*records[begin : begin + AT_ONCE])
        log.info("listed", site=self._site, objects=sum(map(len, listed.values())), shrunk=bool(self.shrunk))
        return await asyncio.to_thread(lambda: [_Start.of(listing) for listing in listings])

    def _believed(
        self,
        plan: ListingPlan,
        held: Mapping[str, Mapping[str, bytes]],
        listed: Mapping[str, Mapping[str, Struct]],
    ) -> list[Outgoing]:
        """The plan's records; without the markers while a list is not believed, so that nothing is decided."""
        marker = listed_key(self._site, self.name)
        self._first_shrunk = list(plan.shrunk)
        if not plan.shrunk:
            return plan.records
        if self._accepted.is_set():
            self._first_shrunk = []
            gone = [
                outgoing_of(topic, key, None)
                for topic in KUBERNETES_TOPICS
                for key in sorted(held[topic.name].keys() - listed[topic.name].keys() - {marker})
            ]
            return [*gone, *(record for record in plan.records if record.value is not None)]
        for line in plan.shrunk:
            log.error("list not believed", site=self._site, reason=line)
        return [record for record in plan.records if record.key != marker]

    async def _first_lists(self, client: KubernetesClient, feeds: Sequence[KindFeed]) -> list[Listing | None]:
        """Each kind's first list, all kinds at once; None for an optional kind that is not there."""
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(self._first_list(client, feed)) for feed in feeds]
        except BaseExceptionGroup as group:
            raise _first(group) from None
        return [task.result() for task in running]

    async def _first_list(self, client: KubernetesClient, feed: KindFeed) -> Listing | None:
        clock = asyncio.get_running_loop().time
        deadline, backoff = clock() + FIRST_ANSWER, Backoff(self._pace)
        while True:
            try:
                return await feed.list()
            except (Gone, Refused) as error:
                if feed.kind.optional:
                    log.info("not watched", kind=feed.name, reason=str(error))
                    return None
                if isinstance(error, Gone):
                    raise Refused(f"{client.server}: the API does not serve {feed.name} ({feed.kind.path})") from error
                raise
            except Retry as error:
                delay = max(error.after, backoff.next())
                if clock() + delay > deadline:
                    raise Unreachable(str(error)) from error
                await self._pace.sleep(delay)

    def _follower(self, feed: KindFeed, start: "_Start") -> Follower:
        kind = feed.kind
        follower = Follower(
            feed, kind.topic, self._publish, start.held, self._pace, protected=kind.lasting, optional=kind.optional
        )
        self._followers[feed.name] = follower
        return follower

    async def _publish(self, records: Sequence[Outgoing]) -> None:
        await publish_for_ever(self._publisher.publish, records, self._pace)


class _Start(NamedTuple):
    """What is left of a kind's first list: a digest an object, not the objects."""

    held: dict[str, Held]
    position: str | None

    @classmethod
    def of(cls, listing: Listing | None) -> "_Start":
        if listing is None:
            return cls({}, None)
        return cls({key: held_of(seen) for key, seen in listing.objects.items()}, listing.position)


def _first(group: BaseExceptionGroup) -> BaseException:
    """The one error to tell of: a refusal says more than a failure that came with it."""
    errors = [_first(error) if isinstance(error, BaseExceptionGroup) else error for error in group.exceptions]
    return min(errors, key=lambda error: (isinstance(error, BackendError), not isinstance(error, Refused)))
