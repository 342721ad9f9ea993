"""Faust's transport of Apache Kafka with our consumer, and a producer that sends nothing after its stop.

In: Faust's app. Out: its transport. Everything else is left to Faust's driver for aiokafka.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from faust.transport.drivers import aiokafka as driver

from underhost.streams.kafka.consumer import KafkaConsumer, within
from underhost.streams.kafka.sending import send_together
from underhost.streams.ports import ProducerRecord

SEND_WITHIN = 1.5
"""Seconds that a stop waits for acknowledgements."""


class KafkaProducer(driver.Producer):  # type: ignore[misc]
    """Faust's producer of Kafka, with what the embedded log's has, too."""

    async def send_together(self, records: Iterable[ProducerRecord]) -> None:
        """Send records; return once all are acknowledged."""

        async def send(record: ProducerRecord) -> asyncio.Future[Any]:
            topic, key, value, partition, headers, _ = record
            return cast("asyncio.Future[Any]", await self.send(topic, key, value, partition, None, headers))

        await send_together(send, records)

    def put_change(self, topic: str, partition: int, key: bytes, value: bytes | None) -> bool:
        """False: a table's change goes the way that Faust has for it."""
        return False

    async def on_stop(self) -> None:
        """Faust's; records that Kafka has not acknowledged by then are dropped.

        aiokafka would send them as soon as Kafka is back: old state, after records of the next pipeline.
        """
        producer = self._producer
        if not await within(SEND_WITHIN, super().on_stop()) and producer is not None:
            await producer._sender.close()
            await producer.client.close()


class KafkaTransport(driver.Transport):  # type: ignore[misc]
    """Faust's transport of Kafka."""

    Consumer = KafkaConsumer
    Producer = KafkaProducer
