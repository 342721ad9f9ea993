"""Faust's transport of Apache Kafka with our consumer, and a producer that sends nothing after its end.

In: Faust's app. Out: its transport. Made by `app.py`. Everything else is Faust's driver for aiokafka.
"""

from faust.transport.drivers import aiokafka as driver

from underhost.streams.kafka.consumer import KafkaConsumer, within

SEND_WITHIN = 1.5
"""Seconds at the end of a producer for what is not acknowledged yet."""


class KafkaProducer(driver.Producer):  # type: ignore[misc]
    """Faust's producer of Kafka."""

    async def on_stop(self) -> None:
        """Faust's; what Kafka has not taken by then is dropped.

        aiokafka would send it as soon as Kafka is back: old state, after what the next pipeline has said.
        """
        producer = self._producer
        if not await within(SEND_WITHIN, super().on_stop()) and producer is not None:
            await producer._sender.close()
            await producer.client.close()


class KafkaTransport(driver.Transport):  # type: ignore[misc]
    """Faust's transport of Kafka."""

    Consumer = KafkaConsumer
    Producer = KafkaProducer
