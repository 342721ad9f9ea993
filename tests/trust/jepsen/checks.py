"""Jepsen's checks on topics, as pure functions: what was acknowledged, what the topics hold, and what became of it.

In: journals of acknowledged records, the history of topics, tables, the API server's objects and its audit log. Out: a
line for each thing that is wrong; nothing where all is well. How these are gathered: `rig.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from underhost.streams.ports import Record

Tables = dict[str, dict[bytes, bytes]]
"""By full name of a topic, value by key."""
MARKER = b"/listed/"


class Sent(NamedTuple):
    """A record that a worker was told is in its topic. `event` is its CloudEvents id."""

    worker: str
    topic: str
    key: str
    event: str


class Write(NamedTuple):
    """A successful write in the API server's audit log.

    Attributes:
        user: who wrote. what: `pods/binding`, `leases`, … name: of the object, `namespace/name`.
        received, answered: RFC 3339, when the server got the request and when it was done.
        holder: for a lease, whom it names now, "" for nobody.
    """

    user: str
    what: str
    name: str
    received: str
    answered: str
    holder: str = ""


def lost(acknowledged: Iterable[Sent], history: Iterable[Record]) -> list[str]:
    """Acknowledged records that their topic does not hold."""
    told = Counter((one.topic, one.key, one.event) for one in acknowledged)
    there = Counter((one.topic, _key(one), event_of(one)) for one in history)
    return [f"lost: {topic} {key} {event}" for topic, key, event in sorted((told - there).keys())]


def out_of_order(acknowledged: Iterable[Sent], history: Iterable[Record]) -> list[str]:
    """Records of one key that lie in the topic in another order than one worker has sent them in.

    A record that was sent twice counts where it lies first after the one before it.
    """
    offsets: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for one in history:
        offsets[one.topic, _key(one), event_of(one)].append(one.offset)
    reached: dict[tuple[str, str, str], int] = {}
    wrong = []
    for sent in acknowledged:
        run = (sent.worker, sent.topic, sent.key)
        later = [at for at in offsets.get((sent.topic, sent.key, sent.event), ()) if at > reached.get(run, -1)]
        if later:
            reached[run] = min(later)
        elif (sent.topic, sent.key, sent.event) in offsets:
            wrong.append(f"out of order: {sent.topic} {sent.key} {sent.event} of {sent.worker}")
    return wrong


def diverging(earlier: Iterable[Record], later: Iterable[Record]) -> list[str]:
    """Records that were read once and are not there, or are others, when they are read again."""
    now = {(one.topic, one.partition, one.offset): (one.key, one.value) for one in later}
    return [
        f"diverging: {one.topic}[{one.partition}] offset {one.offset}"
        for one in earlier
        if now.get((one.topic, one.partition, one.offset)) != (one.key, one.value)
    ]


def replayed(history: Iterable[Record]) -> Tables:
    """What one thread makes of the records, in the order of each partition: the newest value of each key.

    Records that come late are left out, as docs/safety.md has it: of an older term than one before it in the topic (in
    a changelog: of an older generation of the group), of an older resourceVersion than the row's, and tombstones of
    another uid than the row's.
    """
    tables: Tables = defaultdict(dict)
    terms: dict[tuple[str, bytes], int] = {}
    for one in history:
        key, rows = one.key or b"", tables[one.topic]
        site = (one.topic, key.partition(b"/")[0])
        term = _header(one, "ce_term") or _header(one, "generation")
        if term.isdecimal():
            if int(term) < terms.get(site, 0):
                continue
            terms[site] = int(term)
        held = rows.get(key)
        if MARKER not in key and held is not None and _is_late(one, held):
            continue
        if one.value is None:
            rows.pop(key, None)
        else:
            rows[key] = one.value
    return tables


def _is_late(one: Record, held: bytes) -> bool:
    uid, version = identity(held)
    if one.value is None:
        deleted, _, rest = event_of(one).partition("/")
        return rest == "deleted" and bool(uid) and deleted != uid
    _, new = identity(one.value)
    return new is not None and version is not None and new < version


def not_committed(history: Iterable[Record], topic: str, committed: Mapping[str, int]) -> set[bytes]:
    """Keys of a topic with a record at or behind the committed offset of its partition (by `topic/partition`).

    Raises:
        KeyError: nothing at all is committed of a partition that has records: its reader never worked.
    """
    return {
        one.key or b""
        for one in history
        if one.topic == topic and one.offset >= committed[f"{one.topic}/{one.partition}"]
    }


def differences(what: str, one: Mapping[bytes, bytes], other: Mapping[bytes, bytes]) -> list[str]:
    """Keys whose bytes are not the same in both."""
    return [
        f"{what}: {key.decode(errors='replace')}"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def repeated(writes: Iterable[Write]) -> list[str]:
    """Side effects that took place twice: a pod of one name is bound once, as long as nobody deletes it.

    Of two writes that were under way at a time nobody knows which came first: a deletion counts where it may lie
    between two bindings.
    """
    bindings, deletions = defaultdict[str, list[Write]](list), defaultdict[str, list[Write]](list)
    for write in sorted(writes, key=lambda one: one.answered):
        if write.what == "pods" and write.holder == "deleted":
            deletions[write.name].append(write)
        elif write.what == "pods/binding":
            bindings[write.name].append(write)
    wrong = []
    for name, bound in bindings.items():
        for first, second in pairwise(bound):
            between = [
                one for one in deletions[name] if first.received <= one.answered and one.received <= second.answered
            ]
            if between:
                deletions[name].remove(between[0])
            else:
                wrong.append(f"twice: {second.what} {name} by {second.user}")
    return wrong


def by_former_owners(writes: Sequence[Write], roles: Mapping[str, str]) -> list[str]:
    """Writes by somebody whose lease another one had by the time they came. `roles`: what is written, the lease's name.

    A write that came before the takeover was answered is not a former owner's.
    """
    wrong = []
    for what, lease in roles.items():
        holder, since = "", ""
        for write in sorted(writes, key=lambda one: one.answered):
            if (write.what, write.name.rpartition("/")[2]) == ("leases", lease):
                if write.holder != holder:
                    holder, since = write.holder, write.answered
            elif write.what == what and holder and write.user != holder and write.received > since:
                wrong.append(
                    f"former owner: {write.user} wrote {what} {write.name}, {holder} held {lease} since {since}"
                )
    return wrong


# ----------------------------------------------------------------------------------------------------- parts of records
def event_of(record: Record) -> str:
    """The CloudEvents id."""
    return _header(record, "ce_id")


def _header(record: Record, name: str) -> str:
    return next((value.decode() for key, value in record.headers if key == name), "")


def _key(record: Record) -> str:
    return (record.key or b"").decode()


class _Identity(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity | None = None


def identity(value: bytes) -> tuple[str, int | None]:
    """(uid, resourceVersion) of a Kubernetes object's record; ("", None) of others."""
    found: Any = msgspec.json.decode(value, type=_Identified).metadata or _Identity()
    return found.uid, int(found.resource_version) if found.resource_version.isdecimal() else None
