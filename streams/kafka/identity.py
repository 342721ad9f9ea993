"""A producer of which a record sent twice is written once, and in its place; no refused record can get it stuck.

In: an aiokafka producer that is idempotent, not started. Out: the same, which waits for a partition without a leader
for as long as it takes, and takes a new identity after a batch that Kafka refused. aiokafka counts that batch in the
partition's sequence, and the broker would refuse every later one as out of order. One request of a partition is under
way at a time, so that order is kept over retries and identities. The identity is asked for with the first record: Kafka
gives none to a user who may write no topic, as that of a page.
"""

import math
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.producer.transaction_manager import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, PidAndEpoch
from aiokafka.util import create_future

FOR_EVER_MS = 1_000_000_000


def make_persistent(producer: AIOKafkaProducer) -> None:
    """Make aiokafka's producer one of ours, before it is started."""
    sender, manager = producer._sender, producer._txn_manager
    assert manager is not None, "the producer is not idempotent"
    # aiokafka fails a batch that has found no leader for this long, though it keeps those that failed otherwise.
    producer._message_accumulator._batch_ttl = math.inf
    # Whoever has to wait for room gives up a part of what is to be sent together: it would be sent again, out of order.
    producer._request_timeout_ms = FOR_EVER_MS
    send = sender._send_produce_req

    async def send_and_see(node_id: Any, batches: dict[Any, Any]) -> None:
        await send(node_id, batches)
        if any(batch.future.done() and batch.future.exception() is not None for batch in batches.values()):
            begin_anew(manager)

    sender._send_produce_req = send_and_see
    ask = sender._maybe_wait_for_pid

    async def ask_with_the_first_record() -> None:
        if any(producer._message_accumulator._batches.values()):
            await ask()

    sender._maybe_wait_for_pid = ask_with_the_first_record


def begin_anew(manager: Any) -> None:
    """Let the sender ask for an identity before its next batch; those under way keep theirs."""
    manager._pid_and_epoch = PidAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    manager._pid_waiter = create_future()
    manager._sequence_numbers.clear()
