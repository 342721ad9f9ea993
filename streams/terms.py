"""Whether a record comes from an owner that another one has followed: the terms of the publishers' leases.

In: the term that a record carries, its time, and the newest term that its reader knows of the site. Out: what is to be
known from now on, or LateRecord; from headers, what a record says of itself. Pure; the tables keep a row of it
(`agents/pipeline/tables/agents.py`), other readers remember it. Terms are compared within one topic, whose order is the
order of sending: in another topic an older owner's records may rightly be read later.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from underhost.schemas.errors import LateRecord
from underhost.schemas.numbers import number

BEGUN_ANEW = 600.0
"""Seconds after the first record of a term from which on an older one is no late one. The fence lets nobody publish for
so long after a successor: the leases have begun anew then (a Lease was deleted, etcd was restored from a backup)."""


class KnownTerm(Struct, frozen=True):
    """The newest term, and the time of its first record in seconds since 1970."""

    term: int
    since: float


@lru_cache(64)  # asked with each record
def row_key(site: str) -> bytes:
    """The key of the row in which a table keeps the newest term of the site; no record has such a key."""
    return f"{site}/term".encode()


def is_term(key: bytes) -> bool:
    """Whether a row is such a one."""
    return key.endswith(b"/term") and key.count(b"/") == 1


def header_of(headers: Mapping[str, bytes] | Iterable[tuple[str, bytes]] | None, name: str) -> str:
    """A header of a `Record`, or of a Faust message, whose headers have one of several forms; "" where it is absent."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    for known, value in pairs:
        if known == name:
            return bytes(value or b"").decode("utf-8", "replace")
    return ""


def deleted_uid(headers: Mapping[str, bytes] | Iterable[tuple[str, bytes]] | None) -> str:
    """The uid of the object that a tombstone deletes (`ce_id` is `UID/deleted`), "" where it names none."""
    uid, slash, rest = header_of(headers, "ce_id").partition("/")
    return uid if slash and "/" not in rest else ""


@lru_cache(64)  # asked with each record, and the same row until the next term
def stored(row: bytes) -> KnownTerm:
    """What such a row says."""
    return msgspec.json.decode(row, type=KnownTerm)


@lru_cache(64)
def is_newest(row: bytes, said: str) -> bool:
    """Whether a record that says this term is of the term that such a row says: nearly every record is."""
    return number(said) == stored(row).term


def newest(known: KnownTerm | None, said: str, at: float) -> KnownTerm | None:
    """What is known after a record that says this term, at this time. Raises LateRecord for an older term.

    A record that says none (there is no lease) has no part in this.
    """
    term = number(said)
    if term is None:
        return known
    if known is None or term > known.term or (term < known.term and at - known.since > BEGUN_ANEW):
        return KnownTerm(term, at)
    if term < known.term:
        raise LateRecord("term", f"of term {term}, and term {known.term} has begun")
    return known
