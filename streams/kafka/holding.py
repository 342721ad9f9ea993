"""Records that wait in a producer are not sent by a worker that may have lost its site meanwhile.

In: an idempotent aiokafka producer, and why this worker may not act as the owner now. Out: the same producer, which
keeps records of our topics back for as long as there is a doubt; `drop` gives them up once the site may be another
one's. Whoever publishes asks before it hands a record over, and the record may wait here for a leader, a broker or a
network for minutes after that. Changes of Faust's tables are left alone: a table is read again from its changelog.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed

from underhost.schemas.topics import PREFIX
from underhost.streams.kafka.identity import begin_anew

LOOK = 0.05
"""Seconds between two looks whether there still is a doubt."""


def hold_back(producer: AIOKafkaProducer, doubt: Callable[[], str | None]) -> None:
    """Let the producer send records of ours only while there is no doubt."""
    waiting = producer._message_accumulator
    drain, loop = waiting.drain_by_nodes, asyncio.get_running_loop()

    def drain_without_ours(ignore_nodes: Any, muted_partitions: Any = frozenset()) -> Any:
        held = {place for place in waiting._batches if _is_ours(place)} if doubt() is not None else set()
        drained = drain(ignore_nodes, muted_partitions | held)
        if held:  # nothing else wakes the sender when the doubt is over
            loop.call_later(LOOK, waiting._wakeup, waiting._waiter_future)
        return drained

    waiting.drain_by_nodes = drain_without_ours


def drop(producer: AIOKafkaProducer) -> None:
    """Give up the records of ours that wait: whoever published them is told that they were not taken."""
    waiting = producer._message_accumulator
    for place in [place for place in waiting._batches if _is_ours(place)]:
        for batch in waiting._batches.pop(place):
            if batch.retry_count:
                # Sent before, and perhaps there: its numbers are used up. aiokafka takes it off this set when it ends.
                waiting._pending_batches.add(batch)
                begin_anew(producer._txn_manager)
            batch.failure(ProducerClosed())


def _is_ours(place: Any) -> bool:
    return str(place.topic).startswith(PREFIX)
