"""A site as it was: its state topics folded up to a moment, or up to the offsets that a decision was made from.

In: the records of a site, as any consumer reads them. Out: snapshots, and the findings that were published by then.
What the tables left out, being late or no record of ours, is left out, and no record counts as one of the future.
State topics are compacted only after a day, so the last day can be told exactly; before that, superseded records are
gone. Within a budget of memory only the newest part can be told. Not for many threads at a time.
"""

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass

from msgspec import Struct

from underhost.agents.site.join import located
from underhost.agents.site.objects import SiteState, decode_record, read_key, read_record, refuse_late
from underhost.agents.site.snapshot import BY_VM, Joining, Snapshot
from underhost.schemas.errors import BadEvent, InputError
from underhost.schemas.keys import LISTED, Key, site_of
from underhost.schemas.records import RESOLVED, FindingEvent
from underhost.schemas.topics import (
    BY_NAME,
    DAY_MS,
    KUBERNETES_TOPICS,
    NODES,
    SOURCE_TOPICS,
    VIOLATIONS,
    VSPHERE,
    VSPHERE_TOPICS,
    Topic,
)
from underhost.streams.cloudevents import TERM
from underhost.streams.derived import rfc3339
from underhost.streams.ports import Record, TopicReader
from underhost.streams.terms import KnownTerm, deleted_uid, header_of, newest

RECORD = 400
"""About the bytes that a record takes beside its value: its key and the objects around both."""


@dataclass(slots=True)
class _Change:
    """One record: `at` is its time in milliseconds since 1970."""

    at: int
    topic: Topic
    offset: int
    key: Key
    value: bytes | None

    @property
    def size(self) -> int:
        return RECORD + len(self.value or b"")

    def row(self) -> Struct | None:
        """The object, marker or finding, None for a tombstone. Raises BadEvent."""
        if self.topic is VIOLATIONS:
            return decode_record(VIOLATIONS, self.value)
        return read_record(self.topic, self.key, self.value)


class _Gathered:
    """The records of a site as they are read, without those that the tables left out. `budget` is in bytes, None for no
    limit.

    Attributes:
        changes: the records, those of a key in their order.
        size: their bytes.
        begins: milliseconds since 1970; of the records up to then only the newest of each key is kept.
    """

    def __init__(self, budget: int | None) -> None:
        self.changes: list[_Change] = []
        self.begins = 0
        self._budget, self.size = budget, 0
        self._held: dict[tuple[str, Key], _Change] = {}
        self._terms: dict[str, KnownTerm] = {}
        self._latest: dict[str, int] = {}
        self._ahead: defaultdict[str, list[_Change]] = defaultdict(list)
        """By topic: the newest term, the time of the newest record, and the records since whose time was to come."""

    def add(self, record: Record, text: str) -> None:
        """A record of this key. Raises BadEvent, as the tables did, for one that cannot be read or comes late.

        Raises InputError where even one record of each key is too much.
        """
        topic = BY_NAME[record.topic]
        at, ahead = self._time_of(topic, record)
        key = _key_of_finding(text) if topic is VIOLATIONS else read_key(record.key)
        change = _Change(at, topic, record.offset, key, record.value)
        self._refuse_late(change, record)
        if ahead:
            self._ahead[topic.short].append(change)
        self.changes.append(change)
        self.size += change.size
        if self._budget is None or self.size <= self._budget:
            return
        times = sorted(each.at for each in self.changes)
        for begins in (times[len(times) // 2], times[-1]):
            self._thin(begins)
            if self.size <= self._budget // 2:  # else it would be thinned again at once
                return
        if self.size > self._budget:
            raise InputError(f"the site's history takes more than {self._budget >> 20} MiB")

    def _time_of(self, topic: Topic, record: Record) -> tuple[int, bool]:
        """When the record came, and whether that is only known once the next one has come.

        The order of a topic is its offsets'. Who wrote a time that is still to come had a wrong clock: it came no later
        than the next one whose time can be true.
        """
        now = int(time.time() * 1000)
        if record.timestamp > now:
            return now, True
        latest = self._latest[topic.short] = max(self._latest.get(topic.short, 0), record.timestamp)
        for change in self._ahead.pop(topic.short, ()):
            change.at = latest
        return latest, False

    def _refuse_late(self, change: _Change, record: Record) -> None:
        """Raises BadEvent where the tables left the record out."""
        row, short, place = change.row(), change.topic.short, (change.topic.short, change.key)
        since = self._latest.get(short, 0) / 1000
        term = newest(self._terms.get(short), header_of(record.headers, TERM), since)
        if term is not None:
            self._terms[short] = term
        held = self._held.get(place)
        if held is not None and (before := held.row()) is not None:
            refuse_late(before, row, deleted_uid(record.headers))
        if row is None:
            self._held.pop(place, None)
        else:
            self._held[place] = change

    def _thin(self, begins: int) -> None:
        self.begins = max(self.begins, begins)
        base: dict[tuple[str, Key], _Change] = {}
        for change in self.changes:
            if change.at <= self.begins:
                base[change.topic.short, change.key] = change
        kept = [change for change in base.values() if change.value is not None]
        self.changes = kept + [change for change in self.changes if change.at > self.begins]
        self.size = sum(change.size for change in self.changes)


async def sites_of(reader: TopicReader) -> list[str]:
    """The sites that the topics hold anything of, sorted: every source says there when it has listed the nodes."""
    found = set()
    async with aclosing(reader.history((NODES,))) as records:  # type: ignore[type-var]
        async for record in records:
            found.add(site_of((record.key or b"").decode("utf-8", "replace")))
    return sorted(found)


def nothing_of(site: str, there: Collection[str]) -> str:
    """What is said of a site that was named and is none of those that are there."""
    others = f"they have {', '.join(sorted(there))} (--site)" if there else "nor of any other site"
    return f"site {site}: the topics hold nothing of it; {others}"


class SiteHistory:
    """The records of one site, in the order of their times.

    Attributes:
        site: its name. size: the bytes of its records.
        begins, ends: milliseconds since 1970 between which every moment can be told.
    """

    def __init__(self, site: str, gathered: _Gathered, *, joining: Joining = BY_VM) -> None:
        self.site, self._joining = site, joining
        changes = sorted(gathered.changes, key=lambda each: each.at)
        self._changes = [each for each in changes if each.topic is not VIOLATIONS]
        self._events = [each for each in changes if each.topic is VIOLATIONS]
        self._times = [each.at for each in self._changes]
        self._folded: tuple[int, SiteState] | None = None
        self.size = gathered.size
        self.begins = max(gathered.begins, self._complete())
        self.ends = self._times[-1] if self._times else 0

    @classmethod
    async def read(
        cls,
        reader: TopicReader,
        site: str,
        heard: Callable[[], None] = lambda: None,
        *,
        budget: int | None = None,
        joining: Joining = BY_VM,
    ) -> "SiteHistory":
        """What the topics hold of the site now, in about `budget` bytes; `heard` is called for every record.

        Raises Unreachable, and InputError where the topics hold nothing, or one record of each key is too much.
        """
        gathered = _Gathered(budget)
        async with aclosing(reader.history((*SOURCE_TOPICS, VIOLATIONS), site)) as records:  # type: ignore[type-var]
            async for record in records:
                heard()
                text = (record.key or b"").decode("utf-8", "replace")
                if site_of(text) != site:
                    continue
                with suppress(BadEvent):  # it is a dead letter, or late: what was held before stays
                    gathered.add(record, text)
        if all(each.topic is VIOLATIONS for each in gathered.changes):
            raise InputError(nothing_of(site, await sites_of(reader)))
        return cls(site, gathered, joining=joining)

    def at(self, moment: int) -> Snapshot:
        """The picture at a moment, milliseconds since 1970, with `node_hosts`. Raises InputError before it begins."""
        if moment < self.begins:
            raise InputError(f"site {self.site}: its history begins at {rfc3339(self.begins / 1000)}")
        count = bisect_right(self._times, moment)
        if self._folded is None or self._folded[0] > count:
            self._folded = 0, SiteState(self.site, SOURCE_TOPICS)
        done, state = self._folded
        for change in self._changes[done:count]:
            state.put(change.topic, change.key, change.row())
        self._folded = count, state
        return self._picture(state, {change.topic.short: change.offset for change in self._changes[:count]})

    def of(self, offsets: Mapping[str, int]) -> Snapshot:
        """The picture that a decision was made from: `snapshot` of a placement or a finding."""
        state = SiteState(self.site, SOURCE_TOPICS)
        for change in self._changes:
            if change.offset <= offsets.get(change.topic.short, -1):
                state.put(change.topic, change.key, change.row())
        return self._picture(state, offsets)

    def published(self, moment: int) -> dict[str, FindingEvent]:
        """The findings that were open at a moment, as the pipeline had published them, by id."""
        open_: dict[str, FindingEvent] = {}
        for change in self._events:
            if change.at > moment:
                break
            id_, event = change.key.name, change.row()
            if isinstance(event, FindingEvent) and event.state != RESOLVED:
                open_[id_] = event
            else:
                open_.pop(id_, None)
        return open_

    def events(self) -> Iterator[tuple[int, FindingEvent]]:
        """What was published of findings, in the order of time (milliseconds since 1970)."""
        for change in self._events:
            event = change.row()
            if isinstance(event, FindingEvent):
                yield change.at, event

    def _complete(self) -> int:
        """The first moment at which every topic of every source had been listed, but not before the last day."""
        first: dict[str, int] = {}
        for change in self._changes:
            if change.key.kind == LISTED:
                first.setdefault(change.topic.short, change.at)
        vsphere = any(topic.short in first for topic in VSPHERE_TOPICS)
        wanted = [topic.short for topic in (SOURCE_TOPICS if vsphere else KUBERNETES_TOPICS)]
        if not all(short in first for short in wanted):
            raise InputError(f"site {self.site}: its first list is not complete yet")
        complete = max(first[short] for short in wanted)
        compacted = int(time.time() * 1000) - DAY_MS
        return max(complete, compacted) if self._times[0] < compacted else complete

    def _picture(self, state: SiteState, offsets: Mapping[str, int]) -> Snapshot:
        snapshot = state.snapshot(vsphere=state.has_marker(VSPHERE), offsets=dict(offsets), joining=self._joining)
        return located(snapshot)


def _key_of_finding(text: str) -> Key:
    site, _, id_ = text.partition("/")
    return Key(site, "finding", "", id_)
