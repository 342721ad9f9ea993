"""What the embedded log keeps in memory: bounds and newest records of each partition, and the next transaction.

In: committed records. Out: the newest of them without reading the disk.
"""

import asyncio
from typing import Any

from underhost.streams.embedded.compaction import Progress
from underhost.streams.embedded.store import Entry, TopicPartition

TAIL_BYTES = 1 << 20
"""Bytes of newest records that a partition keeps in memory; beyond them the older half is only on disk."""


class Partition:
    """A partition in memory: its bounds and its newest records.

    Attributes:
        is_followed: whether somebody reads the records soon after they come; what is not is read from the disk alone.
    """

    __slots__ = ("end", "first", "is_followed", "next", "number", "progress", "size", "tail")

    def __init__(self, number: int, first: int = 0, end: int = 0) -> None:
        self.number = number
        self.first = first
        self.end = self.next = end  # `next` also counts records that wait for their commit
        self.tail: list[Entry] = []
        self.size = 0
        self.progress = Progress()
        self.is_followed = True

    def extend(self, entries: list[Entry]) -> None:
        """Committed records become readable."""
        self.end = entries[-1].offset + 1
        if not self.is_followed:
            self.tail, self.size = [], 0
            return
        self.tail += entries
        self.size += sum(map(_size, entries))
        while self.size > TAIL_BYTES and len(self.tail) > 1:
            half = len(self.tail) // 2
            self.size -= sum(map(_size, self.tail[:half]))
            del self.tail[:half]

    def drop(self, removed: set[int]) -> None:
        """Compaction removed these offsets."""
        self.tail = [entry for entry in self.tail if entry.offset not in removed]
        self.size = sum(map(_size, self.tail))


def _size(entry: Entry) -> int:
    """About the memory that a record takes: its bytes, and 200 for the objects around them."""
    return 200 + len(entry.key or b"") + len(entry.value or b"")


class Transaction:
    """What the next transaction will hold."""

    def __init__(self) -> None:
        self.entries: dict[TopicPartition, list[Entry]] = {}
        self.records = 0
        self.on_disk = False
        self.committed: dict[tuple[str, TopicPartition], int] = {}
        self.promises: list[tuple[asyncio.Future[Any], int | None]] = []
        """What waits for the commit, and its result: an offset, or None of who waits for all."""

    def __bool__(self) -> bool:
        return bool(self.records or self.committed or self.promises)
