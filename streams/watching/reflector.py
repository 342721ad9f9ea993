"""Keeping published what a feed shows: watch, resume, relist, back off.

In: a feed of one kind of object (list it, watch it from a position) and what its last list held. Out: records of what
really changed, tombstones of what went, dead letters of what cannot be read.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import structlog
from msgspec import Struct

from underhost.schemas.errors import Gone, Refused, Retry, Unreachable
from underhost.schemas.kubernetes import encode
from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing, Record
from underhost.streams.publish import dead_letter
from underhost.streams.timing import Backoff, Timing
from underhost.streams.watching.changes import ListWatch, Seen, Unreadable
from underhost.streams.watching.deletions import Deletions
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import is_collapse, outgoing_of

log = structlog.get_logger("underhost.watch")

STAGE = "watch"
AT_ONCE = 1000
"""Records in one publish."""
LARGEST = 900_000
"""Bytes of a value that Kafka's default limit of 1 MiB a record lets through with room for key and headers."""


class Held(NamedTuple):
    """What is remembered of a published object."""

    uid: str
    digest: bytes


@dataclass
class Counters:
    """What happened, for metrics."""

    relists: int = 0
    resumes: int = 0
    published: int = 0
    suppressed: int = 0
    unreadable: int = 0


def held_of(seen: Seen) -> Held:
    """What to remember of an object: equal digests mean equal but for the resourceVersion."""
    assert seen.value is not None
    return Held(seen.uid, fingerprint(seen.value))


def fingerprint(value: Struct) -> bytes:
    """A digest of a Kubernetes record without its resourceVersion."""
    metadata = msgspec.structs.replace(value.metadata, resource_version="")  # type: ignore[attr-defined]
    return hashlib.blake2b(encode(msgspec.structs.replace(value, metadata=metadata)), digest_size=16).digest()


def unreadable(topic: Topic, item: Unreadable) -> Outgoing:
    """The dead letter of an object that never got into the topic, hence without partition and offset."""
    nowhere = Record(topic.name, -1, -1, 0, item.key.encode(), item.data[:LARGEST], ())
    digest = hashlib.sha256(item.data).hexdigest()[:16]
    return dead_letter(nowhere, STAGE, item.error)._replace(event_id=f"{item.key}/{digest}")


def deliverable(record: Outgoing) -> Outgoing:
    """The record, or the dead letter of one that no broker takes: it would hold up everything behind it."""
    if record.value is None or len(record.value) <= LARGEST:
        return record
    error = f"{len(record.value)} bytes are more than a record holds; the value is cut"
    log.error("object is too large", key=record.key, size=len(record.value))
    return unreadable(record.topic, Unreadable(record.key, record.value, error))


class Reflector:
    """Publishes the changes of one feed, from a position on, until it is cancelled.

    `held` is what the first list showed, by key. `protected`: an empty list is not believed while objects are held.
    `guarded`: nor is one that has lost over 40 %, nor so many deletions within a minute. `doubted` is called when a
    doubt comes.
    """

    def __init__(
        self,
        feed: ListWatch,
        topic: Topic,
        publish: Callable[[Sequence[Outgoing]], Awaitable[None]],
        held: dict[str, Held],
        timing: Timing,
        *,
        protected: bool = False,
        guarded: bool = False,
        optional: bool = False,
        doubted: Callable[[], None] = lambda: None,
    ) -> None:
        self._feed, self._topic, self._publish, self._held, self._timing = feed, topic, publish, held, timing
        self._protected, self._optional = protected, optional
        self._doubts, self._doubted = Doubts(kind=feed.name), doubted
        self._accepted = asyncio.Event()
        clock = asyncio.get_running_loop().time
        self._deletions = Deletions(feed.name, self._doubts, clock) if guarded else None
        self.counters = Counters()
        self.contact: float | None = None
        """When the server was last heard of this kind (the event loop's seconds): a list, a change or a bookmark."""

    @property
    def shrunk(self) -> str:
        """What is not believed of what the server shows, "" when all is well."""
        return str(self._doubts)

    def accept(self) -> list[str]:
        """A person says that what is missing is gone: it is deleted. The lines that this settles."""
        settled = self._doubts.accept()
        self._accepted.set()
        return settled

    async def run(self, position: str | None) -> None:
        """Follow from the position; None when the kind was not served when it was first asked for."""
        backoff = Backoff(self._timing)
        delay = 0.0 if position is not None else self._timing.absent
        clock = asyncio.get_running_loop().time
        while True:
            await self._pause(delay)
            begun = clock()
            try:
                if position is None:
                    position = await self._relist()
                    begun = self.contact = clock()
                async with aclosing(self._feed.watch(position)) as batches:
                    async for batch in batches:
                        self.contact = clock()
                        await self._take(self._believed(batch.changes))
                        position = batch.position
                        backoff.reset()
                if clock() - begun >= self._timing.steady:
                    backoff.reset()
                delay = backoff.next()
            except Gone as error:
                delay = self._timing.absent if position is None and self._optional else backoff.next()
                log.info("list again", kind=self._feed.name, reason=str(error), delay=round(delay, 1))
                position = None
            except Retry as error:
                delay = max(error.after, backoff.next())
                log.warning("told to wait", kind=self._feed.name, reason=str(error), delay=round(delay, 1))
            except (Refused, Unreachable) as error:
                if clock() - begun >= self._timing.steady:
                    backoff.reset()
                refused = isinstance(error, Refused) and position is None and self._optional
                delay = self._timing.absent if refused else backoff.next()
                # Connections break every day; only one that does not come back at once is worth a line.
                tell = log.warning if delay else log.info
                tell("watch interrupted", kind=self._feed.name, reason=str(error), delay=round(delay, 1))
            self.counters.resumes += 1

    async def _pause(self, delay: float) -> None:
        """So many seconds, or while a list is not believed until a person accepts it."""
        if not self._doubts:
            await self._timing.sleep(delay)
        else:
            await self._timing.pause(delay, self._accepted)

    async def _relist(self) -> str:
        """List, and publish the difference. Raises Unreachable for a list that cannot be true."""
        listing = await self._feed.list()
        self.counters.relists += 1
        unreadable = {item.key for item in listing.unreadable}
        vanished = sorted(self._held.keys() - listing.objects.keys() - unreadable)
        accepted = self._doubts.accepted
        missing = [key for key in vanished if key not in accepted] if self._protected else []
        of = len(self._held) - len(vanished) + len(missing)
        collapsed = self._deletions is not None and is_collapse(len(missing), of)
        if missing and (self._doubts or not listing.objects or collapsed):
            line = f"{self._feed.name}: {len(missing)} of {of} objects are missing in the new list; none is deleted"
            self._doubts.see([line], missing)
            self._doubted()
            raise Unreachable(line)
        self._doubts.see([])
        changes: list[Seen | Unreadable] = [*listing.objects.values(), *listing.unreadable]
        changes.extend(Seen(key, self._held[key].uid, None) for key in vanished)
        for begin in range(0, len(changes), AT_ONCE):
            await self._take(changes[begin : begin + AT_ONCE])
            await asyncio.sleep(0)  # a hundred thousand objects are no reason to hold up the event loop
        if self._deletions is not None:
            self._deletions.forget()
        self._doubts.settle(accepted)
        return listing.position

    def _believed(self, changes: Sequence[Seen | Unreadable]) -> Sequence[Seen | Unreadable]:
        """The changes without the deletions that are too many at once."""
        if self._deletions is None:
            return changes
        before = str(self._doubts)
        believed = self._deletions.believed(changes, self._held)
        if str(self._doubts) != before:
            self._doubted()
        return believed

    async def delete_accepted(self) -> None:
        """Delete what the server said to be deleted and a person has accepted; a list is read anew instead."""
        if self._deletions is not None:
            await self._take(self._deletions.take_accepted())

    async def _take(self, changes: Sequence[Seen | Unreadable]) -> None:
        """Publish what differs from what is held, in order."""
        records: list[Outgoing] = []
        for change in changes:
            if isinstance(change, Unreadable):
                self.counters.unreadable += 1
                log.error("object cannot be read", key=change.key, reason=change.error)
                records.append(unreadable(self._topic, change))
            elif change.value is None:
                self._held.pop(change.key, None)
                records.append(outgoing_of(self._topic, change.key, None, change.uid))
            else:
                now = held_of(change)
                if self._held.get(change.key) == now:
                    self.counters.suppressed += 1
                    continue
                self._held[change.key] = now
                records.append(deliverable(outgoing_of(self._topic, change.key, change.value)))
        if records:
            self.counters.published += len(records)
            await self._publish(records)
