"""What a server shows of one kind of object: its list, and the changes of its watch."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class Seen(NamedTuple):
    """An object as it is now; `value` is None where it was deleted."""

    key: str
    uid: str
    value: Struct | None


class Unreadable(NamedTuple):
    """An object that could not be decoded; its `key` as far as that could be read."""

    key: str
    data: bytes
    error: str


class Listing(NamedTuple):
    """All objects of a kind at one moment; a watch continues from `position`."""

    objects: Mapping[str, Seen]
    unreadable: Sequence[Unreadable]
    position: str


class WatchBatch(NamedTuple):
    """Changes that arrived together, in order; `position` is after them."""

    changes: Sequence[Seen | Unreadable]
    position: str


class ListWatch(Protocol):
    """Lists and watches one kind of object of one server."""

    name: str

    async def list(self) -> Listing:
        """All objects. Raises Gone (the kind is not served), Refused, Retry or Unreachable."""

    def watch(self, position: str) -> AsyncGenerator[WatchBatch, None]:
        """Changes after the position, until the server ends the stream.

        Raises Gone (the position is too old: list again), Refused, Retry or Unreachable.
        """
