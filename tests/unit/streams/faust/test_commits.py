"""What is committed of records that are done in another order than that in which they came."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
import pytest
from support.workers.embedded import a_topic, an_app, committed, running

from underhost.streams.embedded import registry
from underhost.streams.faust.commits import ChangesUnderWay

RECORDS = 5


class Slow:
    """An agent's records, each of which is done when the test says so."""

    def __init__(self, path: Path) -> None:
        self.app = an_app(path, broker_commit_interval=60)
        self.read: list[Any] = []
        self._arrived = asyncio.Condition()
        self.app.agent(a_topic(self.app, "orders"), name="slow")(self._take)

    async def _take(self, stream: faust.StreamT) -> None:
        async for event in stream.noack().events():
            self.read.append(event)
            async with self._arrived:
                self._arrived.notify_all()

    async def until(self, true: Callable[[], bool]) -> None:
        """Until the records that were read make it true."""
        async with asyncio.timeout(60), self._arrived:
            await self._arrived.wait_for(true)

    @property
    def offsets(self) -> list[int]:
        """Of the records that were read, in that order."""
        return [event.message.offset for event in self.read]


@pytest.mark.parametrize(
    ("done", "next_one"),
    [
        pytest.param([0, 1, 2], 3, id="in order"),
        pytest.param([1, 2, 3, 4], None, id="all but the first"),
        pytest.param([0, 2, 3, 4], 1, id="all but the second"),
        pytest.param([4, 3, 1, 0], 2, id="backwards, all but the third"),
        pytest.param([3, 2, 4, 0, 1], 5, id="all, in any order"),
    ],
)
async def test_a_record_that_is_not_done_is_read_again_though_later_ones_are_done(
    tmp_path: Path, done: list[int], next_one: int | None
) -> None:
    path = tmp_path / "log.db"
    slow = Slow(path)
    async with running(slow.app):
        for number in range(RECORDS):
            await slow.app.producer.send_and_wait("orders", b"k", b"%d" % number, 0, None, None)
        await slow.until(lambda: len(slow.read) == RECORDS)
        for offset in done:
            slow.read[offset].ack()
            await slow.app.consumer.commit()
    assert await committed(path) == next_one
    again = Slow(path)
    async with running(again.app):
        await again.app.producer.send_and_wait("orders", b"k", b"last", 0, None, None)
        await again.until(lambda: RECORDS in again.offsets)
        assert again.offsets == list(range(next_one or 0, RECORDS + 1))


async def read_again_after_a_rebalance(slow: Slow) -> None:
    """Three records are read, the partitions move, and as none is done they are read once more."""
    for number in range(3):
        await slow.app.producer.send_and_wait("orders", b"k", b"%d" % number, 0, None, None)
    await slow.until(lambda: len(slow.read) == 3)
    await slow.app.consumer.subscribe({tp.topic for tp in slow.app.consumer.assignment()} | {"another"})
    await slow.until(lambda: len(slow.read) == 6)
    assert slow.offsets == [0, 1, 2, 0, 1, 2]


async def test_what_was_read_before_a_rebalance_does_not_count_after_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    slow = Slow(path)
    async with running(slow.app):
        await read_again_after_a_rebalance(slow)
        slow.read[2].ack()
        await slow.app.consumer.commit()
        assert await committed(path) is None
        slow.read[3].ack()
    assert await committed(path) == 1


async def test_what_is_done_while_partitions_move_does_not_count_after_that(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    slow = Slow(path)

    async def end(sender: Any, partitions: Any, **options: Any) -> None:
        for event in slow.read[2:]:
            event.ack()

    async def commit(sender: Any, **options: Any) -> None:
        await slow.app.consumer.commit()

    slow.app.on_partitions_revoked.connect(end, weak=False)
    slow.app.on_rebalance_complete.connect(commit, weak=False)
    async with running(slow.app):
        await read_again_after_a_rebalance(slow)
        assert await committed(path) is None


async def test_what_is_done_after_a_gap_of_compaction_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await registry.acquire(path)
    await log.create_topic("orders", 4, {"cleanup.policy": "compact"})
    for number in range(RECORDS):
        await log.append(("orders", 0), b"k", b"%d" % number, 0)
    await log.commit("t", {("orders", 0): 1})
    assert await log.compact(force=True) == RECORDS - 1
    slow = Slow(path)
    async with running(slow.app):
        await slow.until(lambda: slow.offsets == [RECORDS - 1])
        slow.read[0].ack()
    assert log.committed("t", ("orders", 0)) == RECORDS
    await registry.release(log)


class AskedChanges(ChangesUnderWay):
    """It tells when a commit begins to wait for them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def written(self) -> bool:
        self.asked.set()
        return await super().written()


async def one_done_while_a_change_is_under_way(slow: Slow) -> tuple[AskedChanges, asyncio.Task[bool]]:
    """The changes, and the commit that waits for them."""
    changes = slow.app.changes = AskedChanges()
    changes.add("of the first")
    await slow.app.producer.send_and_wait("orders", b"k", b"0", 0, None, None)
    await slow.until(lambda: slow.offsets == [0])
    slow.read[0].ack()
    committing = asyncio.create_task(slow.app.consumer.commit())
    await changes.asked.wait()
    return changes, committing


async def test_nothing_is_committed_before_the_changelog_has_what_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    slow = Slow(path)
    async with running(slow.app):
        changes, committing = await one_done_while_a_change_is_under_way(slow)
        changes.add("of a later one")
        assert await committed(path) is None
        changes.discard("of the first")
        await committing
        assert await committed(path) == 1


async def test_what_was_not_in_the_changelog_as_partitions_moved_is_not_committed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    slow = Slow(path)
    async with running(slow.app):
        _, committing = await one_done_while_a_change_is_under_way(slow)
        await slow.app.consumer.subscribe({tp.topic for tp in slow.app.consumer.assignment()} | {"another"})
        await committing
        assert await committed(path) is None
