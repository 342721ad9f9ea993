"""What waits in a producer is not sent while another worker may own the site, and given up when it moves."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import ProducerClosed
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.structs import TopicPartition

from underhost.streams.kafka.holding import drop, hold_back

OURS, CHANGELOG = TopicPartition("underhost.pods", 0), TopicPartition("underhost-default-pods-changelog", 0)


class Waiting:
    """A producer's records, all for the leader 1, and a doubt that the test sets."""

    def __init__(self) -> None:
        self.doubt: str | None = None
        self.manager = TransactionManager(None, 0)
        self.manager.set_pid_and_epoch(7, 0)
        leader: Any = SimpleNamespace(leader_for_partition=lambda place: 1)
        self.records = MessageAccumulator(leader, 1 << 14, 0, math.inf, txn_manager=self.manager)
        self.producer: Any = SimpleNamespace(_message_accumulator=self.records, _txn_manager=self.manager)
        hold_back(self.producer, lambda: self.doubt)

    async def add(self, place: TopicPartition) -> "asyncio.Future[Any]":
        """A record that waits."""
        added: asyncio.Future[Any] = await self.records.add_message(place, b"k", b"v", 1)
        return added

    def sent(self) -> set[TopicPartition]:
        """What would be sent now."""
        batches, _ = self.records.drain_by_nodes(ignore_nodes=set())
        return {place for of_node in batches.values() for place in of_node}


@pytest.fixture
async def waiting() -> Waiting:
    return Waiting()


async def test_our_records_wait_until_the_doubt_is_over_and_changes_of_tables_do_not(waiting: Waiting) -> None:
    for place in (OURS, CHANGELOG):
        await waiting.add(place)
    waiting.doubt = "its consumer group has not answered"
    assert waiting.sent() == {CHANGELOG}
    woken = waiting.records.waiter()
    waiting.doubt = None
    await asyncio.wait_for(asyncio.shield(woken), 30)
    assert waiting.sent() == {OURS}


async def test_records_that_are_given_up_are_not_sent_and_their_publishers_know(waiting: Waiting) -> None:
    waiting.doubt = "its consumer group has gone on without it"
    ours, changelog = await waiting.add(OURS), await waiting.add(CHANGELOG)
    drop(waiting.producer)
    assert isinstance(ours.exception(), ProducerClosed)
    assert not changelog.done()
    waiting.doubt = None
    assert waiting.sent() == {CHANGELOG}


async def test_what_follows_a_record_that_was_sent_and_given_up_has_a_new_identity(waiting: Waiting) -> None:
    ours = await waiting.add(OURS)
    batches, _ = waiting.records.drain_by_nodes(ignore_nodes=set())
    waiting.records.reenqueue(batches[1][OURS])  # no answer came
    waiting.doubt = "its consumer group has gone on without it"
    drop(waiting.producer)
    await asyncio.sleep(0)
    assert isinstance(ours.exception(), ProducerClosed)
    assert not waiting.manager.has_pid(), "the broker would refuse the next number of the old one"
    assert waiting.records._pending_batches == set()
