"""Another program that reads the topics: plain aiokafka on Kafka; the reader, in a second process, on a file."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.partitioner import murmur2

from underhost.schemas.topics import BY_NAME
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings

Raw = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]


class Heard(NamedTuple):
    """A record as it lies in a topic; a tombstone's value is None."""

    key: str
    value: Any
    headers: dict[str, str]


class Listener:
    """Reads whole topics, from the first record to the last that is there."""

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._kafka = kafka

    def raw(self, topic: str) -> list[Raw]:
        """Every record of the topic as bytes, in order per partition."""
        if "bootstrapServers" in self._kafka:
            return asyncio.run(_from_kafka(self._kafka["bootstrapServers"], topic))
        return asyncio.run(_from_file(Path(self._kafka["embedded"]), topic))

    def publish(self, topic: str, key: str, value: bytes, site: str) -> None:
        """Send a record to the partition of a site (Kafka only)."""
        asyncio.run(_to_kafka(self._kafka["bootstrapServers"], topic, key, value, site))

    def records(self, topic: str) -> list[Heard]:
        """Every record of the topic, in order per partition."""
        return [
            Heard(
                (key or b"").decode(),
                None if value is None else json.loads(value),
                {name: content.decode() for name, content in headers},
            )
            for key, value, headers in self.raw(topic)
        ]

    def open_findings(self) -> dict[str, Any]:
        """The findings that are open now, by id: what is left of the compacted topic."""
        left: dict[str, Any] = {}
        for record in self.records("underhost.violations"):
            if record.value is None or record.value["state"] == "resolved":
                left.pop(record.key, None)
            else:
                left[record.key] = record.value
        return {finding["id"]: finding for finding in left.values()}


async def _from_kafka(servers: str, topic: str) -> list[Raw]:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        [described] = await admin.describe_topics([topic])
    finally:
        await admin.close()
    partitions = [TopicPartition(topic, number["partition"]) for number in described["partitions"]]
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[Raw] = []
        for partition, end in ends.items():
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(partition, timeout_ms=500)).values():
                    found += [(record.key, record.value, tuple(record.headers)) for record in records]
        return found
    finally:
        await consumer.stop()


async def _to_kafka(servers: str, topic: str, key: str, value: bytes, site: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        count = len(await producer.partitions_for(topic))
        await producer.send_and_wait(
            topic, value, key.encode(), partition=(murmur2(site.encode()) & 0x7FFFFFFF) % count
        )
    finally:
        await producer.stop()


async def _from_file(path: Path, topic: str) -> list[Raw]:
    reader = open_reader(KafkaSettings(embedded=path))
    try:
        return [(record.key, record.value, record.headers) async for record in reader.history([BY_NAME[topic]])]
    finally:
        await reader.close()
