"""Records that the agents derive: their keys, their bytes and the ids of their events.

Equal content gives equal bytes and equal ids, so that a repeated record can be told from a new one.
"""

import hashlib
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from msgspec import Struct

from underhost.schemas.keys import object_key
from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing

_encoder = msgspec.json.Encoder(order="sorted")


def outgoing(topic: Topic, key: str, record: Struct) -> Outgoing:
    """The record to publish: sorted keys, and an event id of its content, so that equal records are equal events."""
    value = _encoder.encode(record)
    return Outgoing(topic, key, value, event_id(key, value))


def tombstone(topic: Topic, key: str) -> Outgoing:
    """The record that deletes the key."""
    return Outgoing(topic, key, None, event_id(key, b""))


def event_id(key: str, value: bytes) -> str:
    """A hash of the key and the value."""
    return hashlib.blake2b(key.encode() + b"\0" + value, digest_size=12).hexdigest()


FLEETING = "event/"
"""Prefix of the targets whose commands no table keeps: they are many, and of no use after a restart."""


def node_key(site: str, node: str) -> str:
    """The key of a node's records."""
    return object_key(site, "node", node)


def pod_key(site: str, pod: str) -> str:
    """The key of a pod's records; `pod` is `namespace/name`."""
    namespace, _, name = pod.partition("/")
    return object_key(site, "pod", name, namespace)


def target_key(site: str, target: str) -> str:
    """The key of an action's or outcome's target: `node/N` is the node's key, `pod/NS/N` the pod's."""
    kind, _, rest = target.partition("/")
    return f"{site}/{target}" if "/" in rest else object_key(site, kind, rest)


@lru_cache(maxsize=256)  # records that were published together have one time
def rfc3339(seconds: float) -> str:
    """The moment in UTC, to the millisecond: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
