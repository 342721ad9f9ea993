"""Faust's transport of Apache Kafka with our consumer, and an idempotent producer that sends nothing after its stop.

In: Faust's app. Out: its transport. Everything else is left to Faust's driver for aiokafka.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, cast

from aiokafka.errors import KafkaError, ProducerClosed
from aiokafka.structs import TopicPartition
from faust.transport.drivers import aiokafka as driver

from underhost.streams.faust.table import GENERATION
from underhost.streams.kafka.changes import put
from underhost.streams.kafka.client import make_patient, patience
from underhost.streams.kafka.consumer import KafkaConsumer, within
from underhost.streams.kafka.holding import drop, hold_back
from underhost.streams.kafka.identity import make_persistent
from underhost.streams.kafka.sending import send_together
from underhost.streams.kafka.topics import IN_SYNC, REPLICAS
from underhost.streams.ports import ProducerRecord

log = logging.getLogger(__name__)

SEND_WITHIN = 1.5
"""Seconds that a stop waits for acknowledgements."""


class KafkaProducer(driver.Producer):  # type: ignore[misc]
    """Faust's producer of Kafka, with what the embedded log's has, too."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting = 0
        self.buffer.wait_until_ebb = self._wait_for_few

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        make_patient(producer.client, patience(self.app.conf.broker_session_timeout))
        make_persistent(producer)
        hold_back(producer, lambda: self.app.doubt())
        return producer

    async def on_start(self) -> None:
        """Faust's, and an end of what sends is the pipeline's: nothing would be sent any more."""
        await super().on_start()
        self._producer._sender.sender_task.add_done_callback(self._sender_ended)

    def _sender_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.app.fail(error)

    def drop(self) -> None:
        """Give up what waits to be sent: the site may be another worker's by now."""
        if self._producer is not None:
            drop(self._producer)

    async def send_together(self, records: Iterable[ProducerRecord]) -> None:
        """Send records; return once all are acknowledged."""

        async def send(record: ProducerRecord) -> asyncio.Future[Any]:
            topic, key, value, partition, headers, _ = record
            return cast("asyncio.Future[Any]", await self.send(topic, key, value, partition, None, headers))

        await send_together(send, records)

    def put_change(self, topic: str, partition: int, key: bytes, value: bytes | None) -> bool:
        """Take a table's change, with the generation of the group in which it was made; always True.

        No offset is committed before Kafka has it.
        """
        producer, headers = self._producer, [(GENERATION, str(self.app.consumer_generation_id).encode())]
        try:
            if producer is None:
                raise ProducerClosed
            batch = put(producer, TopicPartition(topic, partition), key, value, headers)
        except KafkaError as error:  # the pipeline ends: whoever has the partition next reads the record again
            self.app.changes.add(error)
            return True
        self._waiting += 1
        if batch is not None:
            self.app.changes.add(batch)
            batch.future.add_done_callback(lambda _: self._has_ended(producer, batch))
        return True

    def _has_ended(self, producer: Any, batch: Any) -> None:
        """Kafka has the changes of a batch, or refuses them, or will never be asked."""
        self._waiting -= batch.record_count
        accumulator, error = producer._message_accumulator, batch.future.exception()
        if error is not None and (accumulator._closed or accumulator._exception is not None):
            return  # nothing is committed any more
        if error is not None:
            log.error("Kafka refuses %d changes of %s: %s", batch.record_count, batch.tp.topic, error)
        self.app.changes.discard(batch)

    @property
    def has_room(self) -> bool:
        """Whether few changes wait: records are read no faster than what they change is taken."""
        return bool(self._waiting <= self.buffer.max_messages)

    async def _wait_for_few(self) -> None:
        """Wait until there is room."""
        while not self.has_room:
            await self.app.changes.fewer()

    async def unpublishable(self, partition: int) -> str:
        """Why this partition of the topics that were published to takes no records; "" where it does."""
        producer = self._producer
        if producer is None or not producer.client._topics:  # aiokafka would ask for every topic
            return ""
        if not await producer.client.force_metadata_update():
            return "no broker of Kafka answers"
        shown = producer.client.cluster._partitions
        for topic in sorted(producer.client._topics):
            found = shown.get(topic, {}).get(partition)
            if found is not None and found.leader == -1:
                return f"{topic} has no leader"
            if found is not None and len(found.replicas) >= REPLICAS and len(found.isr) < IN_SYNC:
                return f"{topic} has {len(found.isr)} of {len(found.replicas)} replicas in sync"
        return ""

    async def on_stop(self) -> None:
        """Faust's, which sends what still waits; what Kafka has not taken by then is dropped.

        aiokafka would send it as soon as Kafka is back: old state, after records of the next pipeline. Whoever has the
        partitions next reads what the dropped changes came from again: it is not committed.
        """
        producer = self._producer
        if not await within(SEND_WITHIN, super().on_stop()) and producer is not None:
            await producer._sender.close()
            await producer.client.close()


class KafkaTransport(driver.Transport):  # type: ignore[misc]
    """Faust's transport of Kafka."""

    Consumer = KafkaConsumer
    Producer = KafkaProducer
