"""Committing nothing that is not done: a mixin in front of each transport's consumer, like `fetching.py`.

Commands of one topic are carried out side by side, so that a later record can be done before an earlier one. Faust
looks at the records that are done, and takes the first of them for the next one: an earlier record that is under way is
committed with it, and a killed worker's command never comes again. Here the records that are under way decide: the
first of them is what is read next.

A record is done when the table has its row. The row is a change in the changelog, which waits in the producer, and
Faust's flush of those gives up after a tenth of a second: while Kafka is away, the offset would be committed without
the change, and no later owner would ever have the row. So a commit waits until its changes are acknowledged.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, MutableSet
from typing import Any


class RecordsUnderWay(MutableSet[Any]):
    """The records that streams have taken and that are not acknowledged, by partition. Faust adds and removes them."""

    def __init__(self) -> None:
        self._records: defaultdict[Any, set[Any]] = defaultdict(set)

    def add(self, value: Any) -> None:
        """A stream has taken the record."""
        self._records[value.tp].add(value)

    def discard(self, value: Any) -> None:
        """The record is acknowledged."""
        self._records[value.tp].discard(value)

    def clear(self) -> None:
        """Partitions were assigned anew: what was under way is read again by whoever has them now."""
        self._records.clear()

    def first(self, partition: Any) -> int | None:
        """The offset of the first record of a partition that is under way; None where none is."""
        return min((record.offset for record in self._records.get(partition, ())), default=None)

    def __contains__(self, value: Any) -> bool:
        return value in self._records.get(value.tp, ())

    def __iter__(self) -> Iterator[Any]:
        return (record for records in self._records.values() for record in records)

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))


class ChangesUnderWay:
    """The changes of tables that were sent and that the changelog has not acknowledged."""

    def __init__(self) -> None:
        self._changes: set[Any] = set()
        self._fewer = asyncio.Event()

    def add(self, change: Any) -> None:
        """A change is sent."""
        self._changes.add(change)

    def discard(self, change: Any) -> None:
        """The change is acknowledged."""
        self._changes.discard(change)
        self._fewer.set()

    def forget(self) -> None:
        """Partitions were assigned anew: none of these changes will be waited for."""
        self._changes = set()
        self._fewer.set()

    async def fewer(self) -> None:
        """Wait until another one is acknowledged, or all are forgotten."""
        self._fewer.clear()
        await self._fewer.wait()

    async def written(self) -> bool:
        """Wait until what is under way now is acknowledged; False if it was forgotten before that."""
        changes, awaited = self._changes, set(self._changes)
        while changes is self._changes and not awaited.isdisjoint(changes):
            await self.fewer()
        return changes is self._changes


class CarefulCommits:
    """Mixin of a Faust consumer; the transport's class comes after it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unacked_messages = self._under_way = RecordsUnderWay()

    def track_message(self, message: Any) -> None:
        """A stream has taken the record. Faust's tells its sensors besides, and there are none."""
        self._under_way.add(message)

    def ack(self, message: Any) -> bool:
        """The record is done; whether that counts. What was read before the last rebalance says nothing of the next.

        Faust's asks besides whether the topic is one to commit, which all are that agents read here, and has a lock.
        """
        this: Any = self
        self._under_way.discard(message)
        if message.acked or message.generation_id != this.app.consumer_generation_id:
            return False
        message.acked = True
        committed, done = this._committed_offset[message.tp], this._acked_index[message.tp]
        if message.offset in done or (committed is not None and message.offset < committed):
            return False
        done.add(message.offset)
        this._acked[message.tp].append(message.offset)
        this._n_acked += 1
        return True

    async def on_partitions_assigned(self, assigned: set[Any], generation_id: int = 0) -> None:
        """Faust's; what is not committed by now is read again, and nothing of it counts.

        Not as they are revoked: records are done until now, and would seem to be of what is read from here on.
        """
        self._acked.clear()  # type: ignore[attr-defined]
        self._acked_index.clear()  # type: ignore[attr-defined]
        self._under_way.clear()
        self.app.changes.forget()  # type: ignore[attr-defined]
        await super().on_partitions_assigned(assigned, generation_id)  # type: ignore[misc]

    async def _commit_offsets(self, offsets: Any, start_new_transaction: bool = True) -> bool:
        """Faust's, once the changelogs have what the records before these offsets have changed."""
        if not await self.app.changes.written():  # type: ignore[attr-defined]
            return False
        return bool(await super()._commit_offsets(offsets, start_new_transaction))  # type: ignore[misc]

    def _new_offset(self, tp: Any) -> int | None:
        """The offset of the next record to read after a restart; None where nothing was done since the last time."""
        acked = self._acked[tp]  # type: ignore[attr-defined]
        if not acked:
            return None
        # What is done stays known until everything before it is: it is what is committed then.
        self._gap.pop(tp, None)  # type: ignore[attr-defined]
        first = self._under_way.first(tp)
        if first is None:
            beyond = int(max(acked)) + 1
            acked.clear()
            self._acked_index[tp].clear()  # type: ignore[attr-defined]
            return beyond
        left = [offset for offset in acked if offset > first]
        if len(left) == len(acked):
            return None
        acked[:] = left
        self._acked_index[tp] = set(left)  # type: ignore[attr-defined]
        return first
