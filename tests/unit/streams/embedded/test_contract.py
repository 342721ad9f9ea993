"""The embedded log as a place for topics, in the process that owns it."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from support.transport_contract import TransportContract
from support.workers.embedded import a_publisher

from underhost.streams.ports import Publisher
from underhost.streams.settings.kafka import KafkaSettings


class TestEmbedded(TransportContract):
    """See TransportContract."""

    @pytest.fixture
    def kafka(self, tmp_path: Path) -> KafkaSettings:
        """An empty log of four partitions."""
        return KafkaSettings(embedded=tmp_path / "topics.db", partitions=4)

    def publisher(self, kafka: KafkaSettings) -> AbstractAsyncContextManager[Publisher]:
        """Through Faust's producer."""
        return a_publisher(kafka.embedded, keep_unreadable=kafka.keep_unreadable)
