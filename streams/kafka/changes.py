"""Changes of tables go straight into the producer's batches; Faust would make a future, a message and a send of each.

In: the changes of a changelog's partition, in their order. Out: batches that the producer sends one after another, each
with one acknowledgement.
"""

import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed
from aiokafka.structs import TopicPartition


def put(
    producer: AIOKafkaProducer,
    place: TopicPartition,
    key: bytes,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes]],
) -> Any | None:
    """Add a change to the last batch of its partition, or to a new one, which is returned; its `future` ends with it.

    Raises ProducerClosed, or what has ended the producer's sender: the change is lost, as all is that waits there.
    """
    accumulator, client = producer._message_accumulator, producer.client
    if accumulator._closed:
        raise ProducerClosed
    if accumulator._exception is not None:
        raise accumulator._exception
    if place.topic not in client._topics:
        # The client asks for the leaders of the topics that it was told, and forgets those of all others.
        client.add_topic(place.topic)
    change: dict[str, Any] = {"timestamp": int(time.time() * 1000), "key": key, "value": value, "headers": headers}
    waiting = accumulator._batches.get(place)
    if waiting and waiting[-1]._builder.append(**change) is not None:
        return None
    builder = accumulator.create_builder()
    builder.append(**change)  # the first one of a batch fits, however large it is
    return accumulator._append_batch(builder, place)
