"""The Kubernetes watcher of a site: first list, markers, then every change, until it is cancelled.

In: one API server. Out: the change topics of source `kubernetes`, and signs of life while the server is heard of. It
leaves the HTTP to `list_watch.py`, what to publish after a list to `watching/listing.py`, and staying up to date to one
`watching/reflector.py` for each kind.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from underhost.schemas.errors import BackendError, Gone, Refused, Retry, Unreachable
from underhost.schemas.keys import parse_key
from underhost.schemas.numbers import number
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES, KUBERNETES_TOPICS, NODES
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.contact import Contact
from underhost.streams.kubernetes.kinds import KINDS, Kind
from underhost.streams.kubernetes.list_watch import KindListWatch
from underhost.streams.kubernetes.past import newest_held
from underhost.streams.log import structlog
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader
from underhost.streams.publish import publish_until_taken
from underhost.streams.settings.clusters import KubernetesSettings
from underhost.streams.timing import Backoff, Timing
from underhost.streams.watching.audit import differing
from underhost.streams.watching.changes import Listing
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.listing import publish_list
from underhost.streams.watching.reconcile import doubt_of
from underhost.streams.watching.records import letter_of, marker_of
from underhost.streams.watching.reflector import Held, Reflector, held_of

log = structlog.get_logger("underhost.kubernetes")

FIRST_ANSWER = 10.0
"""Seconds after which the start fails where a server still throttles the first lists."""


class KubernetesSource(Source):
    """The source of a live cluster.

    Attributes:
        ready: set once everything is listed and published, but for the deletions that are not believed.
    """

    name = KUBERNETES

    def __init__(
        self,
        site: str,
        settings: KubernetesSettings,
        publisher: Publisher,
        reader: TopicReader,
        *,
        timing: Timing | None = None,
    ) -> None:
        self.epoch = time.time_ns() // 1_000_000
        self.ready = asyncio.Event()
        self._site, self._settings, self._publisher, self._reader = site, settings, publisher, reader
        self._timing = timing or Timing()
        self._doubts = Doubts(site=site)
        self._doubted = asyncio.Event()
        self._told, self._settling = "", False
        """The doubt in the last markers; whether what it was about is accepted, and not deleted yet."""
        self._counts: dict[str, int] = {}
        self._reflectors: dict[str, Reflector] = {}
        self._contact, self._marking = Contact(), asyncio.Lock()

    @property
    def shrunk(self) -> list[str]:
        """See `Source.shrunk`."""
        return [*self._doubts.lines, *(each.shrunk for each in self._reflectors.values() if each.doubts.lines)]

    @property
    def contact(self) -> float | None:
        """See `Source.contact`: of the kind that has been silent for longest."""
        return self._contact.since

    @property
    def stale(self) -> str:
        """One line when the API, or one kind of it, has been silent for too long (`kubernetes.staleAfter`)."""
        return self._contact.silent(self._settings.stale_after)

    @property
    def relists(self) -> Mapping[str, int]:
        """How often each kind (plural) was listed again."""
        return {name: reflector.relists for name, reflector in self._reflectors.items()}

    async def run(self) -> None:
        """See `Source.run`."""
        try:
            async with await connect(self._settings) as client:
                await self._list_and_follow(client)
        except BaseExceptionGroup as group:  # raise one error: callers expect no group
            raise _first(group) from None

    async def _list_and_follow(self, client: KubernetesClient) -> None:
        list_watches = [KindListWatch(client, kind, self._site, self._timing, self._contact) for kind in KINDS]
        starts = await self._start(client, list_watches)
        reflectors = [self._reflector(each, start) for each, start in zip(list_watches, starts, strict=True)]
        if self._doubts.accepted:  # somebody has said so while it was published
            for reflector in reflectors:
                reflector.accept()
        self.ready.set()
        async with asyncio.TaskGroup() as tasks:
            for reflector, start in zip(reflectors, starts, strict=True):
                tasks.create_task(reflector.run(start.position), name=f"watch {reflector.name}")
            tasks.create_task(self._tell_doubts(), name="doubts")
            tasks.create_task(self._probe(client), name="probe")
            tasks.create_task(self._compare_for_ever(), name="comparison")

    def accept(self) -> list[str]:
        """See `Source.accept`."""
        settled = [*self._doubts.accept(), *(line for each in self._reflectors.values() for line in each.accept())]
        if settled:
            self._settling = True
            self._doubted.set()
        return settled

    async def _tell_doubts(self) -> None:
        """While the watches run, publish markers for every doubt that comes, and that goes when it is accepted."""
        backoff = Backoff(self._timing)
        while True:
            await self._doubted.wait()
            self._doubted.clear()
            try:
                for reflector in self._reflectors.values():
                    await reflector.delete_accepted()
            except (Gone, Refused, Retry, Unreachable) as error:
                log.warning("what was accepted is not deleted yet", site=self._site, reason=str(error))
                self._doubted.set()
            else:
                self._doubts.settle(self._doubts.accepted)
                self._settling = self._doubted.is_set()  # more may have been accepted meanwhile
                backoff.reset()
            await self._mark()
            if self._doubted.is_set():
                await self._timing.sleep(backoff.next())

    async def _probe(self, client: KubernetesClient) -> None:
        """Ask whether the API still answers; now and then publish markers that say that all of it is heard of."""
        interval, marked = self._settings.probe_interval, time.monotonic()
        while True:
            await asyncio.sleep(interval)
            if await client.answers(interval):
                self._contact.answered()
            contact = self._contact.since
            if contact is not None and contact - marked >= self._settings.sign_of_life:
                marked = contact
                await self._mark()

    async def _mark(self) -> None:
        """Publish the markers anew: what is doubted now, and when the server was last heard of."""
        async with self._marking:  # one after another, so that an older one is never the last
            self._told = doubt = "; ".join(self.shrunk) or (self._told if self._settling else "")
            markers = [
                marker_of(self._site, self.name, topic, Listed(self.epoch, self._counts[topic.name], doubt, self._seen))
                for topic in KUBERNETES_TOPICS
            ]
            await publish_until_taken(self._publisher, markers, f"markers of site {self._site}", self._timing)

    async def _compare_for_ever(self) -> None:
        """Now and then compare what the topics hold with what was listed and watched, and list again what differs."""
        mended: dict[str, dict[str, Held]] = {}
        pause = self._timing.compare * (1 if self._reader.at_hand else 6)
        while True:
            await asyncio.sleep(pause)
            try:
                before = await self._differences()
                if any(before.values()):
                    await asyncio.sleep(self._timing.settle)
                    after = await self._differences()
                else:
                    after = before
            except BackendError as error:
                log.warning("not compared with the topics", site=self._site, reason=str(error))
                continue
            for name, there in after.items():
                # What did not come right by a list (a record that is too large) would not by another one.
                lasting = {key: held for key, held in there.items() if before.get(name, {}).get(key) == held}
                wrong = dict(lasting.items() - mended.get(name, {}).items())
                mended[name] = lasting
                if wrong:
                    log.error("the topic does not hold what was listed", kind=name, objects=len(wrong), one=min(wrong))
                    self._reflectors[name].recall(wrong)

    async def _differences(self) -> dict[str, dict[str, Held]]:
        """What the topics hold of each kind that is watched without a doubt otherwise than we know, by key."""
        found = {}
        for topic in KUBERNETES_TOPICS:
            rows = await self._reader.state(topic, self._site)
            for kind in KINDS:
                reflector = self._reflectors[kind.plural]
                if kind.topic is topic and not reflector.shrunk:
                    of, record = kind.kind.lower(), kind.topic.kinds[kind.kind.lower()]
                    found[kind.plural] = await asyncio.to_thread(differing, rows, reflector.held, of, record)
        return found

    @property
    def _seen(self) -> int:
        """When the server was last heard of, for the markers."""
        contact = self._contact.since
        silent = 0.0 if contact is None else time.monotonic() - contact
        return round((time.time() - silent) * 1000)

    async def _start(self, client: KubernetesClient, list_watches: Sequence[KindListWatch]) -> list["_Start"]:
        """List, publish the differences to the topics, then the markers; returns where each watch starts."""
        held = {topic.name: dict(await self._reader.state(topic, self._site)) for topic in KUBERNETES_TOPICS}
        doubts = self._doubts
        doubts.recall(doubt_of(self._site, self.name, held))
        newest = [await asyncio.to_thread(newest_held, held[each.kind.topic.name], each.kind) for each in list_watches]
        listings = await self._first_lists(client, list_watches, newest)
        listed: dict[str, dict[str, Struct]] = {topic.name: {} for topic in KUBERNETES_TOPICS}
        letters: list[Outgoing] = []
        for list_watch, listing in zip(list_watches, listings, strict=True):
            if listing is None:
                continue
            topic = list_watch.kind.topic.name
            listed[topic].update((key, seen.value) for key, seen in listing.objects.items() if seen.value is not None)
            for item in listing.unreadable:
                log.error("object cannot be read", key=item.key, reason=item.error)
                letters.append(letter_of(list_watch.kind.topic, item))
                held[topic].pop(item.key, None)  # the object exists, so its record stays as it is
        missing = await publish_list(
            self._site,
            self.name,
            KUBERNETES_TOPICS,
            held,
            listed,
            self.epoch,
            doubts,
            self._publisher,
            letters,
            seen=self._seen,
            certain=True,
        )
        self._told = str(doubts)
        self._counts = {topic.name: len(listed[topic.name]) for topic in KUBERNETES_TOPICS}
        log.info("listed", site=self._site, objects=sum(self._counts.values()), shrunk=bool(doubts))
        return await asyncio.to_thread(
            lambda: [
                _Start.of(listing, _of_kind(each.kind, missing))
                for each, listing in zip(list_watches, listings, strict=True)
            ]
        )

    async def _first_lists(
        self, client: KubernetesClient, list_watches: Sequence[KindListWatch], newest: Sequence[int]
    ) -> list[Listing | None]:
        """Each kind's first list, all kinds at once; None for an optional kind that is not there."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._first_list(client, list_watch, version))
                for list_watch, version in zip(list_watches, newest, strict=True)
            ]
        return [task.result() for task in running]

    async def _first_list(self, client: KubernetesClient, list_watch: KindListWatch, newest: int) -> Listing | None:
        """The list, once it is not older than `newest`, the resourceVersion that the topics hold of this kind.

        A server that goes on showing the past is believed in the end: etcd was restored from a backup.
        """
        clock = asyncio.get_running_loop().time
        deadline, backoff = clock() + FIRST_ANSWER, Backoff(self._timing)
        while True:
            try:
                listing = await list_watch.list()
                if not 0 < (number(listing.position) or 0) < newest:
                    return listing
                if clock() >= deadline:
                    log.error(
                        "the API shows the past, and is believed", kind=list_watch.name, position=listing.position
                    )
                    return listing
                log.warning("the API shows the past: listed again", kind=list_watch.name, position=listing.position)
                await self._timing.sleep(backoff.next())
            except (Gone, Refused) as error:
                if list_watch.kind.optional:
                    log.info("not watched", kind=list_watch.name, reason=str(error))
                    return None
                if isinstance(error, Gone):
                    raise Refused(
                        f"{client.server}: the API does not serve {list_watch.name} ({list_watch.kind.path})"
                    ) from error
                raise
            except Retry as error:
                delay = max(error.after, backoff.next())
                if clock() + delay > deadline:
                    raise Unreachable(str(error)) from error
                await self._timing.sleep(delay)

    def _reflector(self, source: KindListWatch, start: "_Start") -> Reflector:
        kind = source.kind
        reflector = self._reflectors[source.name] = Reflector(
            source,
            kind.topic,
            self._publisher,
            start.held,
            self._timing,
            doubted=self._doubted,
            missing=start.missing,
            protected=kind.lasting,
            guarded=kind.topic is NODES,
            optional=kind.optional,
        )
        return reflector


class _Start(NamedTuple):
    """Where a kind's watch starts: a digest of each object of the first list, and the position after it.

    `missing` are keys of what the list lacks and is not believed to lack.
    """

    held: dict[str, Held]
    position: str | None
    missing: frozenset[str]

    @classmethod
    def of(cls, listing: Listing | None, missing: frozenset[str]) -> "_Start":
        if listing is None:
            return cls({}, None, missing)
        return cls({key: held_of(seen) for key, seen in listing.objects.items()}, listing.position, missing)


def _of_kind(kind: Kind, keys: Iterable[str]) -> frozenset[str]:
    """Those of the keys that name objects of the kind."""
    return frozenset(key for key in keys if parse_key(key).kind == kind.kind.lower())


def _first(group: BaseExceptionGroup) -> BaseException:
    """The error to report: a refusal explains more than another failure at the same time."""
    errors = [_first(error) if isinstance(error, BaseExceptionGroup) else error for error in group.exceptions]
    return min(errors, key=lambda error: (isinstance(error, BackendError), not isinstance(error, Refused)))
