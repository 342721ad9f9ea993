"""Faust's consumer over the embedded log: positions, commits, and the rebalances of a group of one member.

In: the subscription of the app's agents and tables. Out: their records, in the order of each partition. Faust's own
assignor, recovery and flow control run unchanged; this does what Kafka's group coordinator and aiokafka do for them.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from faust.transport import base
from faust.types import TP, ConsumerMessage
from mode import Service

from underhost.schemas.errors import BackendError, Refused
from underhost.streams.embedded import registry
from underhost.streams.embedded.log import Log
from underhost.streams.embedded.store import Entry
from underhost.streams.faust.commits import CarefulCommits
from underhost.streams.faust.fetching import CarefulFetches
from underhost.streams.faust.handing import QuickHandOver

POLL_RECORDS = 500
"""Most records of one partition in one poll, so that the other partitions do not wait."""
POLL_SECONDS = 0.5
"""Seconds between two checks of a waiting poll whether the flow was stopped."""
MEMBER = "worker"
TIMESTAMP_TYPE = 0


class LogConsumer(base.Consumer):  # type: ignore[misc]
    """The only member of its group; it is assigned every partition of the topics that it subscribes to."""

    _opened: Log | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._assigned: set[TP] = set()
        self._subscribed: set[str] = set()
        self._position: dict[TP, int] = {}
        self._generation = 0
        self._rebalancing = asyncio.Lock()

    @property
    def embedded(self) -> Log:
        """The log. Raises Refused before the start."""
        if self._opened is None:
            raise Refused("the embedded log is not open")
        return self._opened

    async def on_start(self) -> None:
        """Open the log. Raises Refused when another process has it."""
        self._opened = await self.transport.acquire()

    async def on_stop(self) -> None:
        """Commit what was processed, then let go of the log."""
        try:
            await super().on_stop()
        except BackendError as error:
            self.log.error("The last offsets are not committed: %s", error)
        finally:
            if self._opened is not None:
                await registry.release(self._opened)

    @Service.task  # type: ignore[untyped-decorator]
    async def _fail_with_the_log(self) -> None:
        """Stop the worker, with the reason, when its log can no longer be written."""
        await self.wait(self.embedded.failed)
        if self.embedded.failure is not None:
            await self.crash(self.embedded.failure)

    # ----------------------------------------------------------------------------------------------------- assignment
    async def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics only. The rebalance runs in the background, because it waits for the caller."""
        wanted = set(topics)
        if wanted != self._subscribed:
            self._subscribed = wanted
            self.add_future(self._rebalance())

    async def _rebalance(self) -> None:
        """Assign all partitions to this one member by Faust's own assignor, as a group coordinator does."""
        async with self._rebalancing:
            app = self.app
            app.on_rebalance_start()
            self.stop_flow()
            await self.on_partitions_revoked(set(self._assigned))
            for topic in sorted(self._subscribed):
                if self.embedded.partition_count(topic) is None:
                    await self.embedded.create_topic(topic, app.conf.topic_partitions, {})
            assignment = app.assignor.assign(self, {MEMBER: app.assignor.metadata(self._subscribed)})[MEMBER]
            app.assignor.on_assignment(assignment)
            self._generation += 1
            app.consumer_generation_id = self._generation  # streams drop messages of another generation
            self._assigned = {TP(topic, part) for topic, parts in assignment.assignment for part in parts}
            for tp in sorted(self._assigned):  # the order in which they are read
                self._position.setdefault(tp, self._start_of(tp))
            await self.on_partitions_assigned(set(self._assigned), self._generation)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic, as the assignor expects it of a cluster's metadata."""
        count = self.embedded.partition_count(topic)
        return None if count is None else set(range(count))

    def assignment(self) -> set[TP]:
        """The partitions that are read."""
        return set(self._assigned)

    def topic_partitions(self, topic: str) -> int | None:
        """The number of a topic's partitions; None for an unknown topic."""
        return self.embedded.partition_count(topic)

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """The partition a key belongs to; None for an unknown topic."""
        if partition is not None:
            return partition
        count = self.embedded.partition_count(topic)
        return None if count is None else int(self.transport.choose_partition(key, count))

    async def create_topic(self, topic: str, partitions: int, replication: int, **options: Any) -> None:
        """Declare a topic, as the producer does."""
        await self.app.producer.create_topic(topic, partitions, replication, **options)

    # ------------------------------------------------------------------------------------------------------ positions
    def _start_of(self, tp: TP) -> int:
        """Where reading starts: the committed offset, else what `consumer_auto_offset_reset` says."""
        committed = self.embedded.committed(self.app.conf.id, tp)
        if committed is not None:
            return committed
        latest = self.app.conf.consumer_auto_offset_reset == "latest" and not self._is_changelog_tp(tp)
        return self.embedded.end(tp) if latest else self.embedded.first(tp)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Go back to the committed offsets, but for changelogs: their positions belong to the recovery of tables."""
        committed = {}
        for tp in self._assigned:
            if self._is_changelog_tp(tp):
                continue
            self._position[tp] = self._start_of(tp)
            offset = self.embedded.committed(self.app.conf.id, tp)
            if offset is not None:
                committed[tp] = offset
        return committed

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Go to these offsets, and move the base class's `_read_offset`, too: it drops records below that."""
        for tp, offset in partitions.items():
            self._position[tp] = offset
            if offset > 0:
                self._read_offset[tp] = offset
            else:
                self._read_offset.pop(tp, None)

    async def _seek(self, partition: TP, offset: int) -> None:
        self._position[partition] = offset

    async def position(self, tp: TP) -> int | None:
        """The next offset to be read."""
        return self._position.get(tp)

    def highwater(self, tp: TP) -> int:
        """The next offset to be written."""
        return self.embedded.end(tp)

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """The next offsets to be written."""
        return {tp: self.embedded.end(tp) for tp in partitions}

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """The oldest offsets that are there."""
        return {tp: self.embedded.first(tp) for tp in partitions}

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        await self.embedded.commit(self.app.conf.id, offsets)
        return True

    # -------------------------------------------------------------------------------------------------------- records
    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Mapping[TP, list[Entry]]:
        deadline, generation = time.monotonic() + timeout, self._generation
        while True:
            arrived = self.embedded.arrived  # taken before the check, so that no record is missed between the two
            found = await self._read(self._assigned if active_partitions is None else active_partitions, generation)
            left = deadline - time.monotonic()
            if found or left <= 0 or not self.flow_active or self.should_stop:
                return found
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL_SECONDS)):  # without the task that `wait_for` makes
                    await arrived.wait()

    async def _read(self, partitions: set[TP], generation: int) -> dict[TP, list[Entry]]:
        """What comes next in these partitions; nothing of where a rebalance has moved them since the fetch began."""
        found: dict[TP, list[Entry]] = {}
        for tp in self.embedded.beyond(self._position):
            if tp not in partitions or self._generation != generation:
                continue
            start = self._position[tp]
            entries = await self.embedded.read(tp, start, POLL_RECORDS)
            # a seek during the read wins
            if entries and self._position[tp] == start and self._generation == generation:
                found[tp] = entries
                self._position[tp] = entries[-1].offset + 1
        return found

    def _to_message(self, tp: TP, record: Entry) -> ConsumerMessage:
        offset, timestamp, key, value, headers = record
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            offset,
            timestamp / 1000.0,
            TIMESTAMP_TYPE,
            list(headers),
            key,
            value,
            None,
            0 if key is None else len(key),
            0 if value is None else len(value),
            tp,
            generation_id=self._generation,
        )

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)


class Consumer(CarefulFetches, CarefulCommits, QuickHandOver, LogConsumer):
    """The consumer of the embedded log as Faust uses it."""
