"""The embedded log: a broker in the worker's process, durable in one SQLite file.

In: records to append and offsets to commit. Out: offsets once they are on disk, and records to readers. Threads are
left to `file.py`, SQL to `store.py`, the choice of records to remove to `compaction.py`.

Group commit: everything that arrives while one transaction is being written becomes the next one. A future resolves
only after COMMIT, and only then can its record be read. After a failed write nothing is accepted any more.
"""

import asyncio
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from underhost.schemas.errors import BackendError, InputError, Refused
from underhost.streams.embedded import compaction, store
from underhost.streams.embedded.file import LogFile
from underhost.streams.embedded.memory import Partition, Transaction
from underhost.streams.embedded.store import Entry, Headers, TopicPartition

MAX_PENDING = 10_000
"""Records that wait for a commit before a sender is held back."""
REMOVE_AT_ONCE = 2000
"""Records removed per transaction, so that compaction never holds a commit back for long."""
APART, LEAST_APART, MOST_APART = 0.0003, 0.002, 0.030
"""Seconds from the end of a commit to the next one: so many for each record of it, and at least and at most so many. A
stream of records is written in few commits, while a single change is passed on at once."""
ENOUGH = 400
"""Records that are not kept waiting for others."""
AT_LEISURE = 0.05
"""Seconds that a record for which nobody waits may wait for a commit that is made anyway."""
COMPACT_EVERY = 60.0

T = TypeVar("T")
TP = TypeVar("TP", bound=TopicPartition)
_offset_of = attrgetter("offset")


class Log:
    """The log of one file, owned by this process. Not thread-safe: everything is called on one event loop.

    Attributes:
        topics: configuration by name. failed: set with `failure`.
        arrived: set, and replaced, whenever records become readable; take it before you check for records.
    """

    def __init__(self, path: Path, sync: str = "NORMAL", compact_every: float = COMPACT_EVERY) -> None:
        self.path, self.compact_every = path, compact_every
        self._file = LogFile(path, sync, self._failed)
        self.topics: dict[str, dict[str, str]] = {}
        self.arrived, self.failed, self._wake, self._room, self._enough = (asyncio.Event() for _ in range(5))
        self._create_lock = asyncio.Lock()
        self._counts: dict[str, int] = {}
        self._partitions: dict[TopicPartition, Partition] = {}
        self._committed: dict[tuple[str, TopicPartition], int] = {}
        self._batch = Transaction()
        self._later: asyncio.TimerHandle | None = None
        self._closing = False

    # ------------------------------------------------------------------------------------------------ open and close
    async def open(self) -> None:
        """Lock the file and read its topics. Raises Refused (another process has it), Unreachable or InputError."""
        await self._file.open()
        db = self._file.db
        self.topics = store.topics(db)
        numbers: dict[int, TopicPartition] = {}
        for row in store.partitions(db):
            tp = numbers[row.number] = (row.topic, row.partition)
            self._partitions[tp] = Partition(row.number, row.first, row.end)
            self._counts[row.topic] = self._counts.get(row.topic, 0) + 1
        for consumer, number, offset in store.offsets(db):
            self._committed[consumer, numbers[number]] = offset
        self._tasks = [asyncio.create_task(self._flusher()), asyncio.create_task(self._compactor())]

    async def close(self) -> None:
        """Write what is pending, then release the file."""
        self._closing = True
        self._enough.set()
        with suppress(BackendError):
            await self._drain()
        if self._later is not None:
            self._later.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._file.close()
        self.arrived.set()

    @property
    def failure(self) -> BackendError | None:
        """Why nothing is accepted any more, or None."""
        return self._file.failure

    def _failed(self) -> None:
        for event in (self.failed, self._wake, self.arrived):
            event.set()

    # -------------------------------------------------------------------------------------------------------- topics
    async def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Add a topic. One that is there stays as it is; with another count of partitions it raises InputError."""
        async with self._create_lock:
            there = self._counts.get(name)
            if there is not None:
                if there != partitions:
                    raise InputError(f"{self.path}: topic {name} has {there} partitions, {partitions} are configured")
                return
            self._check()
            plain = {key: str(value) for key, value in config.items()}
            numbers = await self._file.write(lambda db: store.create_topic(db, name, partitions, plain))
            for partition, number in enumerate(numbers):
                self._partitions[name, partition] = Partition(number)
            self.topics[name], self._counts[name] = plain, partitions

    def partition_count(self, topic: str) -> int | None:
        """The number of a topic's partitions; None for an unknown topic."""
        return self._counts.get(topic)

    def first(self, tp: TopicPartition) -> int:
        """The oldest offset that is there (`end` when there is none)."""
        return self._partitions[tp].first

    def end(self, tp: TopicPartition) -> int:
        """The next offset to be readable: one more than the last one on disk."""
        return self._partitions[tp].end

    def beyond(self, positions: Mapping[TP, int]) -> list[TP]:
        """The partitions with records at or after these positions. Called often, for hundreds of partitions."""
        partitions = self._partitions
        return [tp for tp, position in positions.items() if position < partitions[tp].end]

    # -------------------------------------------------------------------------------------------------------- writing
    def append(
        self, tp: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> asyncio.Future[int]:
        """Append a record; the future gives its offset once it is on disk. Raises Refused after a failed write."""
        offset = self.put(tp, key, value, timestamp, headers)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._batch.promises.append((future, offset))
        return future

    def put(
        self,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers = (),
        *,
        on_disk: bool = False,
        at_leisure: bool = False,
    ) -> int:
        """Append a record without a future of its own (`flush` waits for all); returns the offset it will have.

        `on_disk` forces it, and all before it, to the disk whatever the durability of the log: a power cut takes only
        the end of a write-ahead log. A record written `at_leisure` asks for no commit of its own: the next one takes
        it. Raises Refused after a failed write.
        """
        if self._closing or self._file.failure is not None:
            self._check()
        partition = self._partitions.get(tp)
        if partition is None:
            raise ValueError(f"{self.path}: no partition {tp[1]} of topic {tp[0]}")
        offset, batch = partition.next, self._batch
        partition.next = offset + 1
        batch.entries.setdefault(tp, []).append(Entry(offset, timestamp, key, value, headers))
        batch.records += 1
        if batch.records == ENOUGH:
            self._enough.set()
        batch.on_disk = batch.on_disk or on_disk
        partition.is_followed = not at_leisure
        if not at_leisure:
            self._wake.set()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(AT_LEISURE, self._wake_for_the_rest)
        return offset

    def _wake_for_the_rest(self) -> None:
        self._later = None
        if self._batch:
            self._wake.set()

    @property
    def has_room(self) -> bool:
        """Whether few records are pending, or none of them will ever be written."""
        return self._batch.records < MAX_PENDING or self.failure is not None

    async def room(self) -> None:
        """Wait until there is room."""
        while not self.has_room:
            self._room.clear()
            await self._room.wait()

    async def commit(self, consumer: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Store a consumer's offsets; returns once they are on disk. Raises Refused after a failed write."""
        for tp, offset in offsets.items():
            self._batch.committed[consumer, tp] = offset
        await self.flush()

    def committed(self, consumer: str, tp: TopicPartition) -> int | None:
        """The next offset that a consumer has to process; None when it never committed."""
        return self._committed.get((consumer, tp))

    async def flush(self) -> None:
        """Return once everything appended so far is on disk. Raises Refused after a failed write."""
        self._check()
        await self._drain()

    async def _drain(self) -> None:
        if self.failure is not None:
            raise self.failure
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._batch.promises.append((waiter, None))
        self._wake.set()
        await waiter

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._closing:
            raise Refused(f"{self.path}: the log is closed")

    async def _flusher(self) -> None:
        clock, following = asyncio.get_running_loop().time, 0.0
        while True:
            await self._wake.wait()
            # A commit costs a turn of two threads whatever its size, so records that follow closely share one.
            if clock() < following:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(following):
                        await self._enough.wait()
            self._wake.clear()
            self._enough.clear()
            if not self._batch:
                continue
            batch, self._batch = self._batch, Transaction()
            self._room.set()
            try:
                await self._file.write(partial(self._write_batch, batch))
            except BackendError as error:
                self._fail_batch(batch, error)
                return
            self._publish(batch)
            following = clock() + min(max(APART * batch.records, LEAST_APART), MOST_APART)

    def _write_batch(self, batch: Transaction, db: sqlite3.Connection) -> None:
        records = [
            (store.rowid(self._partitions[tp].number, entry[0]), entry[1], entry[2], store.pack(entry[4]), entry[3])
            for tp, entries in batch.entries.items()
            for entry in entries
        ]
        committed = {(who, self._partitions[tp].number): offset for (who, tp), offset in batch.committed.items()}
        if records or committed:
            store.append(db, records, committed, on_disk=batch.on_disk)

    def _publish(self, batch: Transaction) -> None:
        for tp, entries in batch.entries.items():
            self._partitions[tp].extend(entries)
        self._committed.update(batch.committed)
        for future, result in batch.promises:
            if not future.done():
                future.set_result(result)
        if batch.entries:
            arrived, self.arrived = self.arrived, asyncio.Event()
            arrived.set()

    def _fail_batch(self, batch: Transaction, error: BackendError) -> None:
        """Fail what was in the transaction that failed, and all that waits behind it."""
        for future, _ in batch.promises + self._batch.promises:
            if not future.done():
                future.set_exception(error)
                future.exception()  # mark it as retrieved: the worker reports the failure
        self._batch = Transaction()
        self._room.set()

    # -------------------------------------------------------------------------------------------------------- reading
    async def read(self, tp: TopicPartition, start: int, limit: int) -> list[Entry]:
        """At most `limit` records from offset `start` on, in order; offsets that were removed are skipped."""
        partition = self._partitions[tp]
        if start >= partition.end:
            return []
        tail = partition.tail
        if tail and tail[0].offset <= start:
            first = bisect_left(tail, start, key=_offset_of)
            return tail[first : first + limit]
        number, end = partition.number, partition.end
        return await self._file.read(lambda db: store.read(db, number, start, end, limit))

    async def wait_beyond(self, positions: Mapping[TopicPartition, int]) -> None:
        """Return once there may be records beyond these positions. Raises Refused after a failed write."""
        arrived = self.arrived  # taken before the check, so that no record is missed between the two
        self._check()
        if not self.beyond(positions):
            await arrived.wait()

    # ----------------------------------------------------------------------------------------------------- compaction
    async def _compactor(self) -> None:
        while self.failure is None:
            await asyncio.sleep(self.compact_every)
            with suppress(BackendError):  # remembered in `failure`
                await self.compact()

    async def compact(self, now: int | None = None, *, force: bool = False) -> int:
        """Remove what the topics' policies no longer keep at `now` (milliseconds since 1970); returns how many records.

        Runs beside reads and writes. `force` compacts partitions in which little is new, too.
        """
        clock = int(time.time() * 1000) if now is None else now
        removed = 0
        for name, config in list(self.topics.items()):
            policy = compaction.Policy.of(config)
            for index in range(self._counts[name]):
                removed += await self._compact_partition(self._partitions[name, index], policy, clock, force)
        if removed:
            await self._file.write(store.shrink)
        return removed

    async def _compact_partition(self, partition: Partition, policy: compaction.Policy, now: int, force: bool) -> int:
        number, end, progress = partition.number, partition.end, partition.progress
        if not end:
            return 0
        gone = await self._file.read(lambda db: compaction.plan(db, number, end, policy, progress, now, force=force))
        for start in range(0, len(gone), REMOVE_AT_ONCE):
            chunk = gone[start : start + REMOVE_AT_ONCE]
            await self._file.write(partial(store.remove, number=number, gone=chunk))
            partition.drop(set(chunk))
        if gone and gone[0] <= partition.first <= gone[-1]:
            left = await self._file.read(lambda db: store.read(db, number, gone[0], partition.end, 1))
            partition.first = left[0].offset if left else partition.end
        return len(gone)
