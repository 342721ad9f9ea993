"""The same checks as for the embedded log, over a real Kafka broker."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from kafka_process import KafkaProcess
from transport_contract import TransportContract

from underhost.schemas.topics import TOPICS
from underhost.streams import kafka as clients
from underhost.streams.ports import Publisher
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings import KafkaSettings

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def broker(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    """A broker of this module's own."""
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"), parts)
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def kafka(broker: KafkaProcess) -> AsyncIterator[KafkaSettings]:
    """Settings of a broker without our topics."""
    yield KafkaSettings(bootstrap_servers=broker.address, partitions=4)
    async with clients.admin(broker.address) as admin:
        names = {topic.name for topic in TOPICS} & set(await clients.partition_counts(admin))
        await admin.delete_topics(sorted(names))
        while names & set(await clients.partition_counts(admin)):
            continue


class TestKafka(TransportContract):
    """See TransportContract."""

    def publisher(self, kafka: KafkaSettings) -> AbstractAsyncContextManager[Publisher]:
        """Straight to the broker."""
        assert kafka.bootstrap_servers is not None
        return KafkaPublisher(kafka.bootstrap_servers, kafka.partitions)
