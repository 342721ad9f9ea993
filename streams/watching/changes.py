"""What a server shows of one kind of object: its list, and the changes of its watch."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class Seen(NamedTuple):
    """An object as it is now, or (None) the news that it is gone."""

    key: str
    uid: str
    value: Struct | None


class Unreadable(NamedTuple):
    """An object that could not be decoded; `key` as far as it can be told."""

    key: str
    data: bytes
    error: str


class Listing(NamedTuple):
    """All objects of a kind at one moment; `position` is where a watch goes on from."""

    objects: Mapping[str, Seen]
    unreadable: Sequence[Unreadable]
    position: str


class WatchBatch(NamedTuple):
    """What a watch brought at once, in order; `position` is after it."""

    changes: Sequence[Seen | Unreadable]
    position: str


class ListWatch(Protocol):
    """One kind of object of one server."""

    name: str

    async def list(self) -> Listing:
        """Everything there is. Raises Gone (the kind is not served), Refused, Retry or Unreachable."""

    def watch(self, position: str) -> AsyncGenerator[WatchBatch, None]:
        """Changes after the position, until the server ends the stream.

        Raises Gone (the position is too old: list again), Refused, Retry or Unreachable.
        """
