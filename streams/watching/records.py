"""Objects of a server as records of the topics: their keys, bytes and event ids, and what is too large or unreadable.

In: an object as it is now. Out: the record to publish. When that is needed is decided by `reconcile.py` for lists and
by `reflector.py` for watches.
"""

import hashlib

import msgspec
from msgspec import Struct

from underhost.schemas.keys import listed_key
from underhost.schemas.kubernetes import decode, encode, is_older
from underhost.schemas.records import Listed
from underhost.schemas.topics import Topic
from underhost.streams.log import structlog
from underhost.streams.ports import Outgoing, Record
from underhost.streams.publish import dead_letter
from underhost.streams.watching.changes import Unreadable

log = structlog.get_logger("underhost.watch")

STAGE = "watch"
AT_ONCE = 1000
"""Records in one publish."""
LARGEST = 900_000
"""Bytes of a value that Kafka's default limit of 1 MiB a record lets through with room for key and headers."""


def outgoing_of(topic: Topic, key: str, value: Struct | None, deleted_uid: str = "") -> Outgoing:
    """The record of one object as it is now, or (None) its tombstone, for which `deleted_uid` gives the uid.

    The event id is `UID/resourceVersion`, so that equal input gives equal ids; where a file has no uid the key stands
    in for it, and a digest of the value for a missing resourceVersion. A tombstone's is `UID/deleted`, and deletes no
    other object of the name; without a uid it is `KEY/deleted`, and deletes whatever has the name.
    """
    if value is None:
        return Outgoing(topic, key, None, f"{deleted_uid or key}/deleted")
    data = encode(value)
    uid, version = _identity(value)
    return Outgoing(topic, key, data, f"{uid or key}/{version or hashlib.sha256(data).hexdigest()[:16]}")


def marker_of(site: str, source: str, topic: Topic, listed: Listed) -> Outgoing:
    """The `listed` marker: the source has listed everything that belongs into this topic."""
    key, data = listed_key(site, source), encode(listed)
    said = f"/{hashlib.sha256(data).hexdigest()[:16]}" if listed.doubt or listed.seen else ""
    return Outgoing(topic, key, data, f"{key}/{topic.short}/{listed.epoch}{said}")


def went_back(value: Struct, held: bytes | None) -> bool:
    """Whether a list shows an older version than the topic holds: the server has gone back in its history.

    Lists are consistent, so etcd was restored, or it is another cluster. Readers refuse an older resourceVersion as a
    late record: what they hold has to be deleted first.
    """
    if held is None:
        return False
    try:
        return is_older(value, decode(held, type(value)))
    except msgspec.MsgspecError:
        return False


def differs(value: Struct, held: bytes | None) -> bool:
    """Whether an object must be published: it is new, or differs from the held bytes in more than its version."""
    if held is None:
        return True
    try:
        before = decode(held, type(value))
    except msgspec.MsgspecError:
        return True  # an unreadable record in the topic is replaced
    return encode(_unversioned(before)) != encode(_unversioned(value))


def fingerprint(value: Struct) -> bytes:
    """A digest of an object: equal digests mean equal but for the resourceVersion."""
    return hashlib.blake2b(encode(_unversioned(value)), digest_size=16).digest()


def letter_of(topic: Topic, item: Unreadable, stage: str = STAGE) -> Outgoing:
    """The dead letter of a record that never got into the topic, hence without partition and offset."""
    nowhere = Record(topic.name, -1, -1, 0, item.key.encode(), item.data[:LARGEST], ())
    digest = hashlib.sha256(item.data).hexdigest()[:16]
    return dead_letter(nowhere, stage, item.error)._replace(event_id=f"{item.key}/{digest}")


def deliverable(record: Outgoing, stage: str = STAGE) -> Outgoing:
    """The record, or a dead letter where it is too large for a broker and would block every record after it."""
    if record.value is None or len(record.value) <= LARGEST:
        return record
    error = f"{len(record.value)} bytes are more than a record holds; the value is cut"
    log.error("object is too large", key=record.key, size=len(record.value))
    return letter_of(record.topic, Unreadable(record.key, record.value, error), stage)


def _identity(value: Struct) -> tuple[str, str]:
    """(uid, resourceVersion) of a Kubernetes object (in its metadata) or of a vSphere object."""
    holder = getattr(value, "metadata", value)
    return getattr(holder, "uid", ""), getattr(holder, "resource_version", "")


def _unversioned(value: Struct) -> Struct:
    metadata = getattr(value, "metadata", None)
    if metadata is not None:
        return msgspec.structs.replace(value, metadata=msgspec.structs.replace(metadata, resource_version=""))
    if hasattr(value, "resource_version"):
        return msgspec.structs.replace(value, resource_version="")
    return value
