"""Fetches around a rebalance: nothing is taken from where nobody reads it."""

import asyncio
from collections.abc import Mapping

from underhost.streams.faust.fetching import CarefulFetches

RECORDS = {"pods-0": ["a record"]}


class Base:
    """What the mixin needs of Faust's consumer: fetches that wait until the test lets them end, and seeks."""

    def __init__(self) -> None:
        self.flow_active = True
        self.began: asyncio.Queue[set[str] | None] = asyncio.Queue()
        self.go_on = asyncio.Event()
        self.sought: list[Mapping[str, int]] = []
        self.revoked: list[tuple[set[str], bool]] = []

    def stop_flow(self) -> None:
        """Faust's."""
        self.flow_active = False

    async def on_partitions_revoked(self, revoked: set[str]) -> None:
        """Faust's."""
        self.revoked.append((revoked, self.flow_active))

    async def _getmany(self, active_partitions: set[str] | None, timeout: float) -> dict[str, list[str]]:
        self.began.put_nowait(active_partitions)
        await self.go_on.wait()
        return RECORDS

    async def seek_wait(self, partitions: Mapping[str, int]) -> None:
        """Faust's."""
        self.sought.append(partitions)


class Consumer(CarefulFetches, Base):
    """As the transports make theirs."""


async def test_a_fetch_keeps_the_partitions_that_it_began_with() -> None:
    consumer, live = Consumer(), {"changelog"}
    fetching = asyncio.create_task(consumer._getmany(live, 1.0))
    began = await consumer.began.get()
    # As Faust does at the end of a recovery: the changelogs are paused, then the sources resumed.
    live.clear()
    live.add("source")
    assert began == {"changelog"}
    consumer.go_on.set()
    assert await fetching == RECORDS


async def test_a_fetch_overtaken_by_a_stop_of_the_flow_gives_nothing_after_it_resumes() -> None:
    consumer = Consumer()
    fetching = asyncio.create_task(consumer._getmany({"source"}, 1.0))
    await consumer.began.get()
    consumer.stop_flow()
    consumer.flow_active = True
    consumer.go_on.set()
    assert await fetching is None


async def test_nothing_is_fetched_while_the_flow_is_stopped() -> None:
    consumer = Consumer()
    consumer.stop_flow()
    assert await consumer._getmany({"source"}, 1.0) is None
    assert consumer.began.empty()


async def test_positions_are_moved_once_the_fetches_under_way_have_ended() -> None:
    consumer = Consumer()
    fetching = asyncio.create_task(consumer._getmany({"source"}, 1.0))
    await consumer.began.get()
    seeking = asyncio.create_task(consumer.seek_wait({"source": 7}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert consumer.sought == []
    consumer.go_on.set()
    await seeking
    assert fetching.done() and consumer.sought == [{"source": 7}]


async def test_a_fetch_that_fails_does_not_keep_positions_from_being_moved() -> None:
    consumer = Consumer()
    fetching = asyncio.create_task(consumer._getmany({"source"}, 1.0))
    await consumer.began.get()
    fetching.cancel()
    await consumer.seek_wait({"source": 7})
    assert consumer.sought == [{"source": 7}]


async def test_the_flow_is_stopped_when_partitions_may_move_even_if_there_were_none() -> None:
    consumer = Consumer()
    await consumer.on_partitions_revoked(set())
    assert consumer.revoked == [(set(), False)]
