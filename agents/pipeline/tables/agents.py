"""Change topics into Faust tables: one agent and one table a topic, raw bytes, durable through the changelog.

In: records of the topics. Out: table rows, the decoded objects in `sites.py`, and what cannot be read in dead-letters
(stage `tables`); the stream goes on. A row is state, set again as often as the record comes again, never a counter:
that is what makes at-least-once delivery enough. Rows are kept under the record's key in the record's partition. A late
record, of a publisher that another one has followed or older than the object's row, changes nothing: `streams/terms.py`
and `agents/site/objects.py` say which those are.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import faust
import msgspec
from msgspec import Struct

from underhost.agents.pipeline.tables.orphans import Orphans, is_target, target_of
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.orders import DONE, forged
from underhost.agents.sinks.registry import COMMANDS
from underhost.agents.site.objects import decode_record, read_key, read_record
from underhost.schemas import topics
from underhost.schemas.errors import BackendError, BadEvent, LateRecord
from underhost.schemas.keys import LISTED, Key, site_of
from underhost.schemas.records import Action, Listed, Outcome
from underhost.schemas.topics import Topic
from underhost.streams import terms
from underhost.streams.cloudevents import TERM
from underhost.streams.derived import FLEETING
from underhost.streams.faust.app import declare
from underhost.streams.terms import deleted_uid, header_of

log = logging.getLogger(__name__)

STAGE = "tables"
R = TypeVar("R", bound=Struct)

DeadLetter = Callable[[Any, str, BadEvent], Awaitable[None]]
"""Takes (Faust message, stage, error): publishes a digest with the origin in headers."""

Watcher = Callable[[str, Struct], None]
"""Is told of (site, record) for every live record of a derived topic."""

Refused = Callable[[str, str], None]
"""Is told of (topic, why) for every late record; `why` as in LateRecord."""

Live = Callable[[Topic, str], Awaitable[Collection[str]]]
"""The keys that are live in a topic of a site, as of now."""

OF_TARGETS = (topics.PLACEMENTS, topics.ACTIONS, topics.OUTCOMES)
"""Topics whose rows are kept under the key of the object that they are about, and end with it."""

FORGET_EVERY = 600.0
"""Seconds between two looks for commands of one kind that nobody needs any more: each reads all rows of commands."""
SEVERAL = (topics.ACTIONS, topics.OUTCOMES)
"""Topics of several publishers, each with terms of its own lease: there a term tells nothing of another's."""


class Tables:
    """The tables of this worker by the short name of their topic.

    Attributes:
        sites: the decoded side of the state topics.
    """

    def __init__(
        self, app: faust.App, sites: Sites, live: Live, refused: Refused, wall: Callable[[], float] = time.time
    ) -> None:
        self.sites, self._live, self._refused, self._wall = sites, live, refused, wall
        self._orphans = Orphans()
        self._late: defaultdict[str, set[bytes]] = defaultdict(set)
        """By topic, the keys whose newest record in the topic is a late one."""
        self._watchers: dict[str, list[Watcher]] = {}
        self._forgot: dict[tuple[str, str], float] = {}
        """When outdated commands were looked for last, by site and kind."""
        self._app = app
        self._tables: dict[str, Any] = {}

    def add(self, topic: Topic, keep: Callable[[Any], Awaitable[None]]) -> None:
        """Keep a table of this topic, fed by the agent `keep`."""
        self._tables[topic.short] = self._app.Table(
            topic.short, key_type=bytes, value_type=bytes, partitions=self._app.conf.topic_partitions
        )
        self._app.agent(declare(self._app, topic), name=f"tables-{topic.short}")(keep)

    def watch(self, topic: Topic, watcher: Watcher) -> None:
        """Tell the watcher of every live record of a derived topic."""
        self._watchers.setdefault(topic.short, []).append(watcher)

    def sizes(self) -> dict[str, int]:
        """How many rows each table holds, by the short name of its topic."""
        return {short: len(table.stored) for short, table in self._tables.items()}

    def rows(self, topic: Topic, site: str | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The rows of the topic's table, of one site if asked; nothing where this worker does not keep that table."""
        table = self._tables.get(topic.short)
        prefix = b"" if site is None else site.encode() + b"/"
        for key, value in list(table.stored.items()) if table is not None else ():
            if key.startswith(prefix) and value is not None and not terms.is_term(key):
                yield key, value

    def in_topic(self, topic: Topic, site: str) -> dict[str, bytes]:
        """What the topic itself holds of a site, by key: the rows; `b""` where a late record came after one.

        The row is not what another reader finds, and the late record not what this one has: none of them will do.
        """
        held = dict(self.rows(topic, site))
        held |= {key: b"" for key in self._late[topic.short] if site_of(key.decode()) == site}
        return {key.decode(): value for key, value in held.items()}

    def records(self, topic: Topic, record: type[R], site: str | None = None) -> Iterator[R]:
        """The decoded rows of a derived topic's table; one that cannot be read is left out, with a warning."""
        for key, value in self.rows(topic, site):
            try:
                row = decode_record(topic, value)
            except BadEvent as error:
                log.warning("row %r of table %s cannot be read: %s", key, topic.short, error)
                continue
            if isinstance(row, record):
                yield row

    def row(self, topic: Topic, key: str) -> bytes | None:
        """One row of the topic's table, None where there is none."""
        table = self._tables.get(topic.short)
        return None if table is None else table.stored.get(key.encode())

    def is_done(self, key: str, action: Action) -> bool:
        """Whether the outcome of its target, under this key, says that this very command is done."""
        row = self.row(topics.OUTCOMES, key)
        last = msgspec.json.decode(row, type=Outcome) if row is not None else None
        return last is not None and last.id == action.id and last.result in DONE

    def purge(self) -> None:
        """Drop the rows of sites that are not held: Faust's memory store forgets only rows that it recovered itself."""
        self._late.clear()
        for table in self._tables.values():
            stored = table.stored
            for key in [key for key in stored if not self.sites.holds(site_of(key.decode()))]:
                # Straight out of the store: a deletion through the table would be a tombstone in the changelog.
                del stored[key]
                table.data._key_partition.pop(key, None)

    def forget(self, key: bytes, *of: Topic) -> None:
        """Delete the row with this key from these topics' tables; only while a record of that key is handled."""
        for topic in of:
            table = self._tables.get(topic.short)
            if table is not None and key in table:
                del table[key]
                table.data._key_partition.pop(key, None)  # the memory store forgets only rows that it recovered itself

    def look_for_orphans(self, now: float) -> None:
        """The tables are recovered: rows whose object is not in the picture are kept a while longer, no more."""
        self._orphans = Orphans()
        for topic in OF_TARGETS:
            for key, _ in self.rows(topic):
                if not self._has_target(key):
                    self._orphans.note(key, now)

    def _has_target(self, key: bytes) -> bool:
        return is_target(self.sites.states, key)

    def _forget_orphans(self, now: float) -> None:
        for key in self._orphans.due(now, self._has_target):
            self.forget(key, topics.PLACEMENTS, topics.OUTCOMES)
            row = COMMANDS.get(self._kind_of(key))
            if row is None or row.outdated is None:
                self.forget(key, topics.ACTIONS)

    def _kind_of(self, key: bytes) -> str:
        """The kind of the newest command under this key, "" where there is none."""
        row = self.row(topics.ACTIONS, key.decode())
        return "" if row is None else msgspec.json.decode(row, type=_Kind).kind

    async def current(self, message: Any) -> bool:
        """Whether the record is ours to handle, once that is beyond doubt.

        One that came before the partitions moved must not overwrite what their owner has written since. It counts as
        never read: whoever has its partition now reads it again.
        """
        if self._app.membership.doubt() is not None:
            await self._app.membership.confirmed()
        if message.generation_id == self._app.consumer_generation_id:
            return True
        message.acked = True
        return False

    def _forget_outdated(self, site: str, kind: str, now: float) -> None:
        """Some commands are kept by targets that do not come again: without this the table would grow for ever."""
        row = COMMANDS.get(kind)
        last = self._forgot.get((site, kind))
        if row is None or row.outdated is None or (last is not None and 0 <= now - last < FORGET_EVERY):
            return
        self._forgot[site, kind] = now
        for key, value in self.rows(topics.ACTIONS, site):
            try:
                action = decode_record(topics.ACTIONS, value)
            except BadEvent:
                continue
            if isinstance(action, Action) and action.kind == kind and row.outdated(action, now):
                self.forget(key, topics.ACTIONS, topics.OUTCOMES)

    async def keep(self, topic: Topic, message: Any) -> None:
        """Bring one record into its table; not a foreign site's, nor a late one. Raises BadEvent."""
        key = _key_of(topic, message)
        if self.sites.partition_of(key.site) != message.partition:
            raise BadEvent(f"a record of site {key.site!r} in partition {message.partition}")
        if not self.sites.wants(key.site):
            return  # not decoded: a fleet of workers on one Kafka reads everybody's records
        record = (
            read_record(topic, key, message.value) if topic.source is not None else decode_record(topic, message.value)
        )
        if isinstance(record, Action) and (why := forged(record)):
            raise BadEvent(f"nobody has ordered this: {why}")
        listed = isinstance(record, Listed) and self.sites.state(key.site).epoch(topic, key.name) != record.epoch
        # A time of the future would keep, or end, what is kept for a while: whoever wrote it had a wrong clock.
        at = min(message.timestamp, self._wall())
        try:
            self._follow_term(topic, key.site, message, at)
            if topic in self.sites.read:
                uid = deleted_uid(message.headers) if record is None else ""
                self.sites.apply(topic, key, record, at, uid)
        except LateRecord as error:
            self._refused(topic.short, error.why)
            log.debug("%s: a late record of %r is left out: %s", topic.short, message.key, error)
            if topic.source is not None and key.kind != LISTED:
                self._late[topic.short].add(message.key)
            return
        if topic.short in self._late:
            self._late[topic.short].discard(message.key)
        self._set_row(topic, key, record, message, at)
        if listed and isinstance(record, Listed) and not record.doubt:
            await self._forget_ghosts(topic, key.site, record.count, message, at)
        if topic not in self.sites.read and record is not None:
            if isinstance(record, Action):
                self._forget_outdated(key.site, record.kind, at)
            for watcher in self._watchers.get(topic.short, ()):
                watcher(key.site, record)

    async def _forget_ghosts(self, topic: Topic, site: str, count: int, message: Any, at: float) -> None:
        """A source has listed anew, and shows another number of objects than there are rows.

        Where a worker was down for longer than tombstones are kept, it never hears of them.
        """
        rows = {key for key, _ in self.rows(topic, site) if read_key(key).kind != LISTED}
        if len(rows) <= count:
            return
        try:
            live = await self._live(topic, site)
        except BackendError as error:
            log.warning("%s of site %s: %d rows, %d listed: %s", topic.short, site, len(rows), count, error)
            return  # the next list compares again
        if not await self.current(message):
            return
        for row in rows - {key.encode() for key in live}:
            self.forget(row, topic)
            self.sites.apply(topic, read_key(row), None, at)
        log.warning(
            "%s of site %s: %d rows, %d listed: what the topic does not hold is gone",
            topic.short,
            site,
            len(rows),
            count,
        )

    def _follow_term(self, topic: Topic, site: str, message: Any, at: float) -> None:
        """Keep the newest term of the topic and site, over restarts, too. Raises LateRecord for an older one."""
        if topic in SEVERAL or not (said := header_of(message.headers, TERM)):
            return
        table, row_key = self._tables[topic.short], terms.row_key(site)
        row = table.stored.get(row_key)
        if row is not None and terms.is_newest(row, said):
            return
        known = None if row is None else terms.stored(row)
        newest = terms.newest(known, said, at)
        if newest is not None and newest != known:
            if known is not None and newest.term < known.term:
                log.warning("%s of site %s: terms begin anew: %d after %d", topic.short, site, newest.term, known.term)
            table[row_key] = msgspec.json.encode(newest)

    def _set_row(self, topic: Topic, key: Key, record: Struct | None, message: Any, at: float) -> None:
        table = self._tables[topic.short]
        fleeting = topic.source is None and key.name.startswith(FLEETING)
        if record is None:
            self.forget(message.key, topic)
            if topic == topics.PODS:
                # Nothing more is ordered of a pod that is gone; without this the tables would grow for ever.
                self.forget(message.key, topics.PLACEMENTS, topics.OUTCOMES)
            if topic in self.sites.read and self._has_rows(target_of(key)):
                self._orphans.note(target_of(key), at)
        elif not fleeting and table.stored.get(message.key) != message.value:
            table[message.key] = message.value
            if topic in OF_TARGETS:
                if self._orphans:
                    self._forget_orphans(at)
                if not self._has_target(message.key):
                    self._orphans.note(message.key, at)

    def _has_rows(self, key: bytes) -> bool:
        return any(key in self._tables[topic.short].stored for topic in OF_TARGETS if topic.short in self._tables)


def attach(
    app: faust.App, sites: Sites, derived: Sequence[Topic], dead_letter: DeadLetter, live: Live, refused: Refused
) -> Tables:
    """An agent and a table for each state topic that the sites read, and for each of the `derived` topics."""
    tables = Tables(app, sites, live, refused)
    for topic in (*sites.read, *derived):
        tables.add(topic, _agent(tables, topic, dead_letter))
    return tables


def _agent(tables: Tables, topic: Topic, dead_letter: DeadLetter) -> Callable[[Any], Awaitable[None]]:
    async def keep(stream: Any) -> None:
        async for event in stream.events():
            await keep_one(event.message)

    async def keep_one(message: Any) -> None:
        if not await tables.current(message):
            return
        try:
            await tables.keep(topic, message)
        except BadEvent as error:
            await dead_letter(message, STAGE, error)
            if not await tables.current(message):
                return  # the partition moved while dead-letters could not be written
        tables.sites.advance(topic, message.partition, message.offset)

    return keep


def _key_of(topic: Topic, message: Any) -> Key:
    if topic.source is not None:
        return read_key(message.key)
    if message.key is None:
        raise BadEvent("the record has no key")
    try:
        site, slash, rest = message.key.decode("utf-8").partition("/")
    except UnicodeDecodeError as error:
        raise BadEvent(f"bad key: {error}") from error
    if not (site and slash and rest):
        raise BadEvent(f"bad key: {message.key!r}")
    return Key(site, topic.short, "", rest)


class _Kind(Struct):
    """A command, as far as its kind."""

    kind: str = ""
