"""Three real Kafka brokers with replication 3, one of them gone: what was acknowledged is there."""

import pytest
from support.processes.brokers import Brokers

from underhost.schemas.topics import NODES
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.reader import KafkaReader
from underhost.streams.settings.kafka import KafkaSettings

pytestmark = pytest.mark.real


async def test_what_was_acknowledged_is_there_when_a_broker_is_gone(brokers: Brokers) -> None:
    kafka = KafkaSettings(bootstrap_servers=brokers.address, partitions=3)
    await ensure_topics(kafka)
    keys = {f"site-{number}/node//n1" for number in range(9)}
    async with KafkaPublisher(kafka, kafka.partitions) as publisher:
        await publisher.publish(*(Outgoing(NODES, key, b"{}", "1") for key in sorted(keys)))
    brokers[0].kill()
    assert {(record.key or b"").decode() async for record in KafkaReader(kafka).history([NODES])} == keys
