"""The decoded objects of one site, kept in step with the tables: what a snapshot is taken from.

In: rows, one after another, from `pipeline/tables/agents.py` (live events, and all rows again after a recovery). Out:
`snapshot()`, cheap because nothing is copied but a mapping of references, and only where something changed. Which sites
are ours, and whether the picture is complete, is `pipeline/tables/sites.py`'s; what to decide from it is
`pipeline/decide/cycle.py`'s.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from underhost.agents.site.changes import Tracked
from underhost.agents.site.snapshot import BY_VM, Joining, Snapshot
from underhost.schemas import topics
from underhost.schemas.errors import BadEvent, LateRecord
from underhost.schemas.keys import LISTED, Key, key_of
from underhost.schemas.kubernetes import Pod, decode, is_older
from underhost.schemas.pods.sharing import SharedParts
from underhost.schemas.records import Listed
from underhost.schemas.topics import Topic
from underhost.schemas.vsphere import Cluster, DrsRule

WORKLOAD_KINDS = {
    kind.lower(): kind
    for kind in (
        "ReplicaSet",
        "StatefulSet",
        "Deployment",
        "Job",
        "ReplicationController",
        "VirtualMachineInstanceReplicaSet",
    )
}

RUNS = 8
"""Runs of a source that are remembered."""


def read_key(key: bytes | None) -> Key:
    """The parsed key of a state record. Raises BadEvent where it is none of ours."""
    if key is None:
        raise BadEvent("the record has no key")
    try:
        return key_of(key)
    except ValueError as error:
        raise BadEvent(f"bad key: {error}") from error


def read_record(topic: Topic, key: Key, value: bytes | None) -> Struct | None:
    """The object or marker of a state record, None for a tombstone.

    Raises BadEvent where the kind does not belong to the topic, or the value is not one of its records.
    """
    record = Listed if key.kind == LISTED else topic.kinds.get(key.kind)
    if record is None:
        raise BadEvent(f"kind {key.kind!r} does not belong to {topic.name}")
    return _decode(value, record)


def decode_record(topic: Topic, value: bytes | None) -> Struct | None:
    """The record of a derived topic, None for a tombstone. Raises BadEvent."""
    if topic.record is None:
        raise BadEvent(f"{topic.name} holds no records")
    return _decode(value, topic.record)


def _decode(value: bytes | None, record: type[Struct]) -> Struct | None:
    if value is None:
        return None
    try:
        decoded: Struct = decode(value, record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"not a {record.__name__}: {error}") from error
    return decoded


class Changes:
    """What has changed in a site since somebody looked: names by topic, until they take them.

    `topics` are those that are followed; `wake` is called at each change. `whole` is set where more than single rows
    changed: then only a new look at everything helps. `listed` are the topics whose source has listed anew.
    """

    def __init__(self, topics: Iterable[Topic], wake: Callable[[], None] = lambda: None) -> None:
        self._names: dict[str, dict[Any, None]] = {topic.short: {} for topic in topics}
        self._wake = wake
        self.whole = False
        self.listed: set[str] = set()

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def note(self, short: str, name: Any) -> None:
        """One row came, changed or went."""
        if short in self._names:
            self._names[short][name] = None
            self._wake()

    def note_all(self, short: str) -> None:
        """A topic was replaced by what its table holds."""
        self.whole = self.whole or short in self._names
        self._wake()

    def note_listed(self, short: str) -> None:
        """A source has listed the topic."""
        if short in self._names:
            self.listed.add(short)
            self._wake()

    def take(self, topic: Topic, most: int | None = None) -> list[Any]:
        """The names that changed, in that order, no more than `most` of them; they count as seen."""
        names = self._names[topic.short]
        taken = list(names)[:most]
        for name in taken:
            del names[name]
        return taken


class SiteState:
    """One site's objects by topic, and the markers of the sources that have listed it.

    Attributes:
        site: the name.
        as_of: newest record time in the picture, seconds since 1970; 0.0 while unknown.
    """

    def __init__(self, site: str, read: Iterable[Topic]) -> None:
        self.site = site
        self.as_of = 0.0
        self._rows: dict[str, dict[Any, Struct]] = {topic.short: {} for topic in read}
        self._parts = shared_parts()
        self._markers: dict[str, dict[str, Listed]] = {short: {} for short in self._rows}
        self._doubts: dict[str, str] | None = None
        self._seen: dict[str, int] = {}
        self._runs: dict[tuple[str, str], dict[int, None]] = {}
        self._doubters: dict[tuple[str, str], int] = {}
        """By topic and source: the epochs of the runs that were heard of, and of the one whose doubt stands."""
        self._views: dict[str, Tracked[Any, Any]] = {}
        self._changed: dict[str, dict[Any, None]] = {}
        self._followers: list[Changes] = []

    def follow(self, changes: Changes) -> None:
        """Note every change from now on there."""
        self._followers.append(changes)

    def unfollow(self, changes: Changes) -> None:
        """Note nothing more there."""
        self._followers.remove(changes)

    def rows(self, topic: Topic) -> Mapping[Any, Any]:
        """The rows of a topic as they are now and will be: not a copy."""
        return self._rows[topic.short]

    def put(self, topic: Topic, key: Key, value: Struct | None, deleted_uid: str = "") -> bool:
        """Set or remove (None) one row; whether that changed anything.

        `deleted_uid` is the uid of the object that a tombstone deletes, "" where it does not say. Raises LateRecord for
        an older state than the row's, and for the tombstone of another object than the row's.
        """
        if key.kind == LISTED:
            return self._mark(topic.short, key.name, value)
        rows, name = self._rows[topic.short], _NAMES.get(topic.short, _qualified)(key)
        held = rows.get(name)
        if held is not None:
            refuse_late(held, value, deleted_uid)
        if value is None:
            changed = rows.pop(name, None) is not None
            if isinstance(held, Pod):
                self._parts.remove(held)
        else:
            changed = held != value
            rows[name] = value = self._shared(held, value)
        if changed:
            self._changed.setdefault(topic.short, {})[name] = None
            for follower in self._followers:
                follower.note(topic.short, name)
        return changed

    def _shared(self, held: Struct | None, value: Struct) -> Struct:
        """The object; what is equal of a pod and others of its owner is one object from now on."""
        return self._parts.put(value, held if isinstance(held, Pod) else None) if isinstance(value, Pod) else value

    def _mark(self, short: str, source: str, value: Struct | None) -> bool:
        before, self._doubts = self._markers[short].pop(source, None), None
        self._seen.pop(source, None)
        if not isinstance(value, Listed):
            return before is not None
        self._markers[short][source] = value = self._doubted(short, source, before, value)
        # A mere sign of life is no change: nothing follows from it.
        if before is not None and msgspec.structs.replace(before, seen=value.seen) == value:
            return False
        for follower in self._followers:
            follower.note_listed(short)
        return True

    def _doubted(self, short: str, source: str, before: Listed | None, now: Listed) -> Listed:
        """The marker, with the doubt that it does not lift.

        Only the run that has said a doubt lifts it, or one that begins after it: that one has read it. The word of any
        other, which was there before and sees all that the doubter misses, or comes late, is no answer to it.
        """
        place, epoch = (short, source), now.epoch
        runs, doubter = self._runs.setdefault(place, {}), self._doubters.get(place)
        if now.doubt:
            self._doubters[place] = epoch
        elif before is not None and doubter is not None and epoch != doubter and epoch in runs:
            now = msgspec.structs.replace(now, doubt=before.doubt)
        else:
            self._doubters.pop(place, None)
        runs[epoch] = None
        while len(runs) > RUNS:
            del runs[next(iter(runs))]
        return now

    def replace(self, topic: Topic, rows: Iterable[tuple[Key, Struct]], parts: SharedParts) -> None:
        """Start the topic anew from these rows: after a recovery the tables are the truth, whatever was here.

        `parts` are what their pods, if it is these, have in common.
        """
        self._rows[topic.short], self._markers[topic.short], self._doubts = {}, {}, None
        self._seen.clear()
        self._views.pop(topic.short, None)
        self._changed.pop(topic.short, None)
        if topic is topics.PODS:
            self._parts = parts
        named, name_of = self._rows[topic.short], _NAMES.get(topic.short, _qualified)
        for key, value in rows:
            if key.kind == LISTED:
                self._mark(topic.short, key.name, value)
            else:
                named[name_of(key)] = value
        for follower in self._followers:
            follower.note_all(topic.short)

    def epoch(self, topic: Topic, source: str) -> int | None:
        """The epoch of the source's marker in the topic, None where it has not listed."""
        marker = self._markers[topic.short].get(source)
        return marker.epoch if marker is not None else None

    def has_marker(self, source: str) -> bool:
        """Whether the source has ever listed any topic of this site."""
        return any(source in markers for markers in self._markers.values())

    def doubts(self) -> dict[str, str]:
        """What each source says it does not believe, of any of its topics."""
        if self._doubts is None:  # asked before and after each command waits, and hardly ever another
            self._doubts = {
                source: marker.doubt
                for _, markers in sorted(self._markers.items())
                for source, marker in markers.items()
                if marker.doubt
            }
        return dict(self._doubts)

    def seen(self, source: str) -> int:
        """When the source last heard from its server, milliseconds since 1970; 0 where it does not say."""
        seen = self._seen.get(source)
        if seen is None:  # asked before each write
            of_topics = (markers[source].seen for markers in self._markers.values() if source in markers)
            seen = self._seen[source] = max(of_topics, default=0)
        return seen

    def has(self, topic: Topic, name: str) -> bool:
        """Whether the object is in the picture; `name` is how a snapshot names it."""
        return name in self._rows.get(topic.short, ())

    def counts(self) -> dict[str, int]:
        """Objects by topic."""
        return {short: len(rows) for short, rows in self._rows.items()}

    def snapshot(self, *, vsphere: bool, offsets: Mapping[str, int], joining: Joining = BY_VM) -> Snapshot:
        """The picture as of now; `node_hosts` is left empty.

        `vsphere` says whether the site has a vSphere side; `offsets` is the last offset of each topic, by short name.
        """
        rules = self._view(topics.DRS_RULES).values()
        return Snapshot(
            site=self.site,
            nodes=self._view(topics.NODES),
            pods=self._view(topics.PODS),
            namespaces=self._view(topics.NAMESPACES),
            services=self._view(topics.SERVICES),
            workloads=self._view(topics.WORKLOADS),
            budgets=self._view(topics.BUDGETS),
            vms=self._view(topics.VMS),
            hosts=self._view(topics.HOSTS),
            clusters={row.name: row for row in rules if isinstance(row, Cluster)},
            rules={(row.cluster, row.name): row for row in rules if isinstance(row, DrsRule)},
            vsphere=vsphere,
            joining=joining,
            offsets=offsets,
        )

    def _view(self, topic: Topic) -> Tracked[Any, Any]:
        # A view handed out is never touched again: a change makes the next snapshot copy the references once.
        view, changed = self._views.get(topic.short), self._changed.pop(topic.short, {})
        if view is None or changed:
            view = self._views[topic.short] = Tracked(self._rows.get(topic.short, {}), view, changed)
        return view


def shared_parts() -> SharedParts:
    """Of pods whose bytes are the rows of a table."""
    return SharedParts(keeps_bytes=True)


def refuse_late(held: Struct, value: Struct | None, deleted_uid: str) -> None:
    """Raises LateRecord where the row is newer than what comes; `deleted_uid` is as in `SiteState.put`."""
    if value is None:
        uid = getattr(getattr(held, "metadata", None), "uid", "")
        if deleted_uid and uid and uid != deleted_uid:
            raise LateRecord("uid", f"a tombstone of uid {deleted_uid}, and the object is {uid}")
    elif is_older(value, held):
        raise LateRecord("version", "an older resourceVersion than the object's")


def _plain(key: Key) -> str:
    return key.name


def _qualified(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def _workload(key: Key) -> str:
    return f"{WORKLOAD_KINDS[key.kind]}/{key.namespace}/{key.name}"


def _whole(key: Key) -> Key:
    return key


# How a snapshot names the rows of a topic; `namespace/name` unless said otherwise.
_NAMES: dict[str, Callable[[Key], Any]] = {
    topics.NODES.short: _plain,
    topics.NAMESPACES.short: _plain,
    topics.WORKLOADS.short: _workload,
    topics.VMS.short: _plain,
    topics.HOSTS.short: _plain,
    topics.DRS_RULES.short: _whole,
}
