"""A site as it was: its state topics folded up to a moment, or up to the offsets that a decision was made from.

In: the records of a site, as any consumer reads them. Out: snapshots, and the findings that were published by then.
State topics are compacted only after a day, so the last day can be told exactly; before that, superseded records are
gone. Not for many threads at a time.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import cast

from msgspec import Struct

from underhost.agents.site.join import join
from underhost.agents.site.objects import SiteState, decode_record, read_key, read_record
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.errors import BadEvent, InputError
from underhost.schemas.keys import LISTED, Key, site_of
from underhost.schemas.records import RESOLVED, FindingEvent
from underhost.schemas.topics import BY_NAME, DAY_MS, SOURCE_TOPICS, VIOLATIONS, VSPHERE_TOPICS, Topic
from underhost.streams.derived import rfc3339
from underhost.streams.ports import TopicReader

_UNREAD = object()


@dataclass(slots=True)
class _Change:
    """One record: `at` is its time in milliseconds since 1970, `row` what it holds, decoded at the first use."""

    at: int
    topic: Topic
    offset: int
    key: Key
    value: bytes | None
    row: object = _UNREAD

    def read(self) -> Struct | None:
        if self.row is _UNREAD:
            self.row = read_record(self.topic, self.key, self.value)
        return cast("Struct | None", self.row)


class SiteHistory:
    """The records of one site, in the order of their times.

    Attributes:
        site: its name. begins, ends: milliseconds since 1970 between which every moment can be told.
    """

    def __init__(self, site: str, changes: list[_Change], events: list[tuple[int, str, FindingEvent | None]]) -> None:
        self.site = site
        self._changes = sorted(changes, key=lambda each: each.at)
        self._times = [each.at for each in self._changes]
        self._events = events
        self._folded: tuple[int, SiteState] | None = None
        self.begins = self._complete()
        self.ends = self._times[-1] if self._times else 0

    @classmethod
    async def read(cls, reader: TopicReader, site: str, heard: Callable[[], None] = lambda: None) -> "SiteHistory":
        """Everything that the topics hold of the site now; `heard` is called for every record.

        Raises Unreachable, and InputError where that is nothing."""
        changes: list[_Change] = []
        events: list[tuple[int, str, FindingEvent | None]] = []
        latest: dict[tuple[str, int], int] = {}
        async with aclosing(reader.history((*SOURCE_TOPICS, VIOLATIONS))) as records:  # type: ignore[type-var]
            async for record in records:
                heard()
                text = (record.key or b"").decode("utf-8", "replace")
                if site_of(text) != site:
                    continue
                place = (record.topic, record.partition)
                at = latest[place] = max(latest.get(place, 0), record.timestamp)  # the order of a topic is its offsets'
                if record.topic == VIOLATIONS.name:
                    events.append((at, text, _finding(record.value)))
                    continue
                try:
                    key = read_key(record.key)
                except BadEvent:
                    continue  # it is a dead letter
                changes.append(_Change(at, BY_NAME[record.topic], record.offset, key, record.value))
        if not changes:
            raise InputError(f"site {site}: the topics hold nothing of it")
        return cls(site, changes, events)

    def at(self, moment: int) -> Snapshot:
        """The picture at a moment, milliseconds since 1970, with `node_hosts`. Raises InputError before it begins."""
        if moment < self.begins:
            raise InputError(f"site {self.site}: its history begins at {rfc3339(self.begins / 1000)}")
        count = bisect_right(self._times, moment)
        if self._folded is None or self._folded[0] > count:
            self._folded = 0, SiteState(self.site, SOURCE_TOPICS)
        done, state = self._folded
        for change in self._changes[done:count]:
            _apply(state, change)
        self._folded = count, state
        return self._picture(state, {change.topic.short: change.offset for change in self._changes[:count]})

    def of(self, offsets: Mapping[str, int]) -> Snapshot:
        """The picture that a decision was made from: `snapshot` of a placement or a finding."""
        state = SiteState(self.site, SOURCE_TOPICS)
        for change in self._changes:
            if change.offset <= offsets.get(change.topic.short, -1):
                _apply(state, change)
        return self._picture(state, offsets)

    def published(self, moment: int) -> dict[str, FindingEvent]:
        """The findings that were open at a moment, as the pipeline had published them, by id."""
        open_: dict[str, FindingEvent] = {}
        for at, key, event in self._events:
            if at > moment:
                continue
            id_ = key.partition("/")[2]
            if event is None or event.state == RESOLVED:
                open_.pop(id_, None)
            else:
                open_[id_] = event
        return open_

    def _complete(self) -> int:
        """The first moment at which every topic of every source had been listed, but not before the last day."""
        first: dict[str, int] = {}
        for change in self._changes:
            if change.key.kind == LISTED:
                first.setdefault(change.topic.short, change.at)
        vsphere = any(topic.short in first for topic in VSPHERE_TOPICS)
        wanted = [topic.short for topic in SOURCE_TOPICS if topic.source == "kubernetes" or vsphere]
        if not all(short in first for short in wanted):
            raise InputError(f"site {self.site}: its first list is not complete yet")
        complete = max(first[short] for short in wanted)
        compacted = int(time.time() * 1000) - DAY_MS
        return max(complete, compacted) if self._times[0] < compacted else complete

    @staticmethod
    def _picture(state: SiteState, offsets: Mapping[str, int]) -> Snapshot:
        snapshot = state.snapshot(vsphere=state.has_marker("vsphere"), offsets=dict(offsets))
        located = join(snapshot.nodes.values(), snapshot.vms.values(), snapshot.hosts.values())
        return replace(snapshot, node_hosts=located)


def _apply(state: SiteState, change: _Change) -> None:
    try:
        state.put(change.topic, change.key, change.read())
    except BadEvent:
        return  # it was a dead letter then, too: what was held before stays


def _finding(value: bytes | None) -> FindingEvent | None:
    try:
        event = decode_record(VIOLATIONS, value)
    except BadEvent:
        return None
    return event if isinstance(event, FindingEvent) else None
