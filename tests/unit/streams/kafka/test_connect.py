"""A question to Kafka is answered by any broker that is there."""

import pytest
from aiokafka.errors import KafkaError, NodeNotReadyError, UnsupportedVersionError

from underhost.schemas.errors import Unreachable
from underhost.streams.kafka.connect import answered


class Cluster:
    """Brokers that give an answer each, in turn; an error stands for one that does not."""

    def __init__(self, *brokers: int | KafkaError) -> None:
        self._brokers = iter(brokers)

    async def ask(self) -> int:
        """What the next broker says."""
        answer = next(self._brokers)
        if isinstance(answer, KafkaError):
            raise answer
        return answer


async def test_another_broker_is_asked_where_one_is_gone() -> None:
    assert await answered("k:9092", Cluster(NodeNotReadyError("node id 1"), NodeNotReadyError("node id 1"), 7).ask) == 7


async def test_what_no_other_broker_will_answer_either_is_said_at_once() -> None:
    with pytest.raises(Unreachable, match=r"Kafka at k:9092: .*UnsupportedVersionError"):
        await answered("k:9092", Cluster(UnsupportedVersionError(), 7).ask)
