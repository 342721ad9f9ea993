"""The reflector of one kind of object: watch, resume, list again, back off.

In: the kind's `ListWatch`, and what its first list showed. Out: records of what really changed, tombstones of what was
deleted, dead letters of what cannot be read. Doubted deletions are held back (`deletions.py`); the watch goes on beside
them. The first list itself is left to `listing.py`.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from underhost.schemas.errors import Gone, Refused, Retry, Unreachable
from underhost.schemas.numbers import number
from underhost.schemas.topics import Topic
from underhost.streams.log import structlog
from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.publish import publish_until_taken
from underhost.streams.timing import Backoff, Timing
from underhost.streams.watching.changes import Listing, ListWatch, Seen, Unreadable
from underhost.streams.watching.deletions import Deletions
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import is_collapse
from underhost.streams.watching.records import AT_ONCE, deliverable, fingerprint, letter_of, outgoing_of

log = structlog.get_logger("underhost.watch")

PAST = 10.0
"""Seconds for which a list that is older than what was seen is not believed: a server that shows the past for longer
was restored from a backup."""


class Held(NamedTuple):
    """What is kept of a published object, to recognise changes."""

    uid: str
    digest: bytes


def held_of(seen: Seen) -> Held:
    """What to keep of an object: equal digests mean equal but for the resourceVersion."""
    assert seen.value is not None
    return Held(seen.uid, fingerprint(seen.value))


class Reflector:
    """Publishes the changes of one kind, from a position on, until it is cancelled.

    Args:
        held: what the first list showed, by key. missing: keys that it lacked and that are not believed to be gone.
        protected: an empty list is not believed while objects are held.
        guarded: nor is one that has lost over 40 %, nor so many deletions within a minute.
        optional: a kind that is not served, or may not be read, is asked for again at long intervals.
        doubted: set when a doubt comes.

    Attributes:
        name: of the kind. relists: how often everything was listed again. doubts: what is not believed of it.
    """

    def __init__(
        self,
        source: ListWatch,
        topic: Topic,
        publisher: Publisher,
        held: dict[str, Held],
        timing: Timing,
        *,
        doubted: asyncio.Event,
        missing: Collection[str] = (),
        protected: bool = False,
        guarded: bool = False,
        optional: bool = False,
    ) -> None:
        self._source, self._topic, self._publisher, self._held, self._timing = source, topic, publisher, held, timing
        self._protected, self._optional = protected, optional
        self.doubts, self._doubted = Doubts(kind=source.name), doubted
        self._guarded, self._publishing = guarded, asyncio.Lock()
        self._listing = asyncio.Lock()
        """One list after another, to its last record: what an older one shows may be gone in the newer one."""
        clock = asyncio.get_running_loop().time
        self._deletions = Deletions(source.name, self.doubts, clock, guarded=guarded)
        self._deletions.hold(Seen(key, "", None) for key in missing)
        self._reached, self._past_since = 0, float("inf")
        self._again = False
        self.name, self.relists = source.name, 0

    @property
    def shrunk(self) -> str:
        """What is not believed of this kind, "" without a doubt."""
        return str(self.doubts)

    @property
    def held(self) -> dict[str, Held]:
        """What is kept of each object that was published, by key, as it is now."""
        return dict(self._held)

    def recall(self, there: Mapping[str, Held]) -> None:
        """The topic holds these objects, and not what is kept of them: list again, and publish what differs.

        An empty digest is that of an object which the topic lacks.
        """
        self._held |= there
        for key in [key for key, held in there.items() if not held.digest]:
            del self._held[key]
        self._again = True

    def accept(self) -> list[str]:
        """See `Source.accept`."""
        return self.doubts.accept()

    async def run(self, position: str | None) -> None:
        """Watch from the position; None where the first list found the kind not served."""
        backoff = Backoff(self._timing)
        served = position is not None
        delay = 0.0 if served else self._timing.absent
        clock = asyncio.get_running_loop().time
        self._reached = number(position or "") or 0
        while True:
            await self._timing.sleep(delay)
            begun = clock()
            try:
                if self._again:
                    position = None
                if position is None:
                    async with self._listing:
                        position = await self._relist()
                    served = True
                    begun = clock()
                async with aclosing(self._source.watch(position)) as batches:
                    async for batch in batches:
                        await self._take(self._believed(batch.changes))
                        position = batch.position
                        self._reached = max(self._reached, number(position) or 0)
                        backoff.reset()
                        if self._again:
                            break
                if clock() - begun >= self._timing.steady:
                    backoff.reset()
                delay = backoff.next()
            except Gone as error:
                served = position is not None
                delay = self._timing.absent if self._optional and not served else backoff.next()
                log.info("list again", kind=self._source.name, reason=str(error), delay=round(delay, 1))
                position = None
            except Retry as error:
                delay = max(error.after, backoff.next())
                log.warning("told to wait", kind=self._source.name, reason=str(error), delay=round(delay, 1))
            except (Refused, Unreachable) as error:
                if clock() - begun >= self._timing.steady:
                    backoff.reset()
                # What was served once is refused for a moment: the server starts, or has new credentials.
                refused = isinstance(error, Refused) and self._optional and not served
                delay = self._timing.absent if refused else backoff.next()
                # Connections break every day; only one that does not come back at once is worth a line.
                tell = log.warning if delay else log.info
                tell("watch interrupted", kind=self._source.name, reason=str(error), delay=round(delay, 1))

    async def _relist(self) -> str:
        """List, and publish the difference; what is missing and not believed to be gone is held back.

        Raises Retry where the server shows the past, and has not done so for long.
        """
        self._again = False
        listing = await self._source.list()
        self.relists += 1
        if self._is_of_the_past(listing.position):
            raise Retry(f"the list of {listing.position} is older than what was seen, {self._reached}", 0.0)
        unreadable, kept = {item.key for item in listing.unreadable}, self._deletions.kept
        for key in kept.keys() & (listing.objects.keys() | unreadable):
            self._deletions.release(key)
        vanished = self._held.keys() - listing.objects.keys() - unreadable - kept.keys()
        accepted = self.doubts.accepted
        missing = vanished - accepted if self._protected else set()
        of = len(self._held) - len(vanished) + len(missing)
        collapsed = self._guarded and is_collapse(len(missing), of)
        if missing and (self.doubts or kept or not listing.objects or collapsed):
            line = f"{self._source.name}: {len(missing)} of {of} objects are missing in the new list; none is deleted"
            self._deletions.hold((Seen(key, self._held[key].uid, None) for key in missing), [line])
            self._doubted.set()
        changes: list[Seen | Unreadable] = [*listing.objects.values(), *listing.unreadable]
        changes.extend(Seen(key, self._held[key].uid, None) for key in sorted(vanished - kept.keys()))
        reached, self._reached = self._reached, number(listing.position) or 0
        went_back = self._reached < reached
        if went_back:  # etcd was restored: lists are consistent, so what was published is no more
            log.warning("the server has gone back in its history", kind=self._source.name, position=listing.position)
            self._held.clear()
        await self._take_many(changes, anew=went_back)
        self.doubts.settle(accepted - kept.keys())  # what is still held back is `delete_accepted`'s to delete
        return listing.position

    def _is_of_the_past(self, position: str) -> bool:
        now = asyncio.get_running_loop().time()
        self._past_since = min(self._past_since, now) if 0 < (number(position) or 0) < self._reached else float("inf")
        return now < self._past_since + PAST < float("inf")

    def _believed(self, changes: Sequence[Seen | Unreadable]) -> Sequence[Seen | Unreadable]:
        """The changes without the deletions that are too many at once."""
        before = str(self.doubts)
        believed = self._deletions.believed(changes, self._held)
        if str(self.doubts) != before:
            self._doubted.set()
        return believed

    async def delete_accepted(self) -> None:
        """Publish the deletions that were held back and that a person has accepted, unless a new list shows the object.

        Raises Gone, Refused, Retry (also where the list does not fit the watch) or Unreachable: then nothing is deleted
        yet.
        """
        accepted = self.doubts.accepted
        if not accepted:
            return
        async with self._listing:
            reached, listing = self._reached, await self._source.list()
            self._fit(listing, reached, accepted)
            unreadable, changes = {item.key for item in listing.unreadable}, list[Seen | Unreadable]()
            for key in sorted(accepted):
                deletion = self._deletions.release(key)  # None: the watch has shown the object meanwhile
                if deletion is not None and key not in unreadable:
                    changes.append(listing.objects.get(key, deletion))
            await self._take_many(changes)
        self.doubts.settle(accepted)

    def _fit(self, listing: Listing, reached: int, accepted: frozenset[str]) -> None:
        """Raises Retry where the watch goes on from before, or long after, what a list beside it shows of the accepted.

        What the list shows in a newer version the watch shows soon, and older versions before it: they would come after
        it. What an older list shows may be gone, and the watch would not say so again.
        """
        if 0 < (number(listing.position) or 0) < reached:
            raise Retry(f"the list of {listing.position} is older than what was seen, {reached}", 0.0)
        for key in self._deletions.kept.keys() & listing.objects.keys() & accepted:
            metadata = getattr(listing.objects[key].value, "metadata", None)
            if metadata is not None and 0 < self._reached < (number(metadata.resource_version) or 0):
                raise Retry(f"the watch of {self.name} is not at {listing.position} yet", 0.0)

    async def _take_many(self, changes: Sequence[Seen | Unreadable], *, anew: bool = False) -> None:
        async with self._publishing:  # to the end: the watch may show a newer version of what has not had its turn
            for begin in range(0, len(changes), AT_ONCE):
                await self._publish(changes[begin : begin + AT_ONCE], anew=anew)
                await asyncio.sleep(0)  # a hundred thousand objects are no reason to hold up the event loop

    async def _take(self, changes: Sequence[Seen | Unreadable]) -> None:
        async with self._publishing:
            await self._publish(changes)

    async def _publish(self, changes: Sequence[Seen | Unreadable], *, anew: bool = False) -> None:
        """Publish what differs from what is held, in order; `anew`: in place of whatever readers hold."""
        records: list[Outgoing] = []
        for change in changes:
            if isinstance(change, Unreadable):
                log.error("object cannot be read", key=change.key, reason=change.error)
                records.append(letter_of(self._topic, change))
            elif change.value is None:
                self._held.pop(change.key, None)
                records.append(outgoing_of(self._topic, change.key, None, change.uid))
            else:
                now = held_of(change)
                if self._held.get(change.key) != now:
                    self._held[change.key] = now
                    if anew:  # readers refuse an older version than they hold
                        records.append(outgoing_of(self._topic, change.key, None))
                    records.append(deliverable(outgoing_of(self._topic, change.key, change.value)))
        if records:
            await publish_until_taken(self._publisher, records, f"changes of {self._source.name}", self._timing)
