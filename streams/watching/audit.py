"""What a topic holds compared with what a watcher knows of it: lost records, late ones, and rows of what is gone.

In: the records of a topic, by key, and what the watcher holds. Out: where they differ. A record of a former owner that
came late, or one that Kafka lost, is seen by nothing else: a new list, too, is compared with the memory of the watcher.
Pure; reading the topic, and listing again where it differs, is left to the watcher.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from underhost.schemas.keys import parse_key
from underhost.schemas.kubernetes import decode
from underhost.streams.watching.records import fingerprint
from underhost.streams.watching.reflector import Held

UNREADABLE = Held("", b"unreadable")
"""What the topic holds is no such object, and equals none: it is replaced, or deleted."""


def differing(rows: Mapping[str, bytes], held: Mapping[str, Held], kind: str, record: type[Struct]) -> dict[str, Held]:
    """What the topic holds of the objects of this kind that the watcher knows otherwise, or does not know, by key.

    Of an object that the topic lacks it is `Held("", b"")`, of one whose record cannot be read `UNREADABLE`.
    """
    of_kind = {key: data for key, data in rows.items() if _kind(key) == kind}
    found = {key: Held("", b"") for key in held.keys() - of_kind.keys()}
    for key, data in of_kind.items():
        there = _held(data, record)
        known = held.get(key)
        if known is None or known.digest != there.digest:
            found[key] = there
    return found


def _kind(key: str) -> str:
    try:
        return parse_key(key).kind
    except ValueError:
        return ""


def _held(data: bytes, record: type[Struct]) -> Held:
    try:
        value = decode(data, record)
    except msgspec.MsgspecError:
        return UNREADABLE
    metadata = getattr(value, "metadata", None)
    return Held(metadata.uid if metadata is not None else "", fingerprint(value))
