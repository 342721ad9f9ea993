"""A record that Kafka refuses does not make it refuse all that follow."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from underhost.streams.kafka.identity import make_persistent


@pytest.mark.parametrize(
    ("error", "anew"), [(None, False), (MessageSizeTooLargeError(), True)], ids=["acknowledged", "refused"]
)
async def test_after_a_refused_batch_the_sequence_begins_anew(error: Exception | None, anew: bool) -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:9", enable_idempotence=True)
    manager, batch = producer._txn_manager, SimpleNamespace(future=asyncio.get_running_loop().create_future())

    async def answered(node_id: int, batches: dict[str, Any]) -> None:
        if error is None:
            batch.future.set_result(None)
        else:
            batch.future.set_exception(error)

    producer._sender._send_produce_req = answered
    make_persistent(producer)
    manager.set_pid_and_epoch(7, 0)
    manager.increment_sequence_number("place", 5)
    await producer._sender._send_produce_req(1, {"place": batch})
    assert manager.has_pid() is not anew
    assert manager.sequence_number("place") == (0 if anew else 5)
    await producer.stop()


async def test_who_has_nothing_to_send_asks_for_no_identity() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:9", enable_idempotence=True)
    asked: list[str] = []

    async def ask() -> None:
        asked.append("asked")

    producer._sender._maybe_wait_for_pid = ask
    make_persistent(producer)
    await producer._sender._maybe_wait_for_pid()
    assert asked == []
    producer._message_accumulator._batches["place"].append("a batch")
    await producer._sender._maybe_wait_for_pid()
    assert asked == ["asked"]
    producer._message_accumulator._batches.clear()
    await producer.stop()
