"""Creating, checking and describing the topics, whatever the transport.

In: `KafkaSettings` and the table of topics. Out: topics that exist with the configured count of partitions, or a
description of those that do. Apache Kafka's are in `kafka/topics.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition

from underhost.schemas.errors import InputError
from underhost.schemas.topics import TOPICS, Topic
from underhost.streams.embedded import registry
from underhost.streams.embedded.view import open_view
from underhost.streams.kafka import connect as kafka
from underhost.streams.kafka import topics as kafka_topics
from underhost.streams.settings.kafka import KafkaSettings


@dataclass(frozen=True)
class TopicDescription:
    """A topic as it is now.

    Attributes:
        cleanup: compact or delete, as the table of topics has it. partitions: 0 when the topic does not exist.
        ends: the next offset of each partition. records: how many offsets lie between first and end, which is the
            number of records but for those that compaction removed.
    """

    name: str
    cleanup: str
    partitions: int
    ends: tuple[int, ...]
    records: int


async def ensure_topics(
    settings: KafkaSettings, topics: Sequence[Topic] = TOPICS, others: Collection[str] = ()
) -> list[kafka_topics.Remark]:
    """Create the topics that are missing; what deviates of those that are there, for people.

    `others` are full names of topics that other workers write: where we may not make one, it is waited for.

    Raises InputError naming every topic that is there with another count of partitions or another clean-up (a state
    topic that is not compacted loses its site after some days), or that can never be written; Unreachable when Kafka
    does not answer; Refused when it answers and will not create them, or when another process has the embedded log.
    """
    if settings.bootstrap_servers:
        return await kafka_topics.ensure(settings.bootstrap_servers, settings, topics, others)
    await _ensure_embedded(settings, topics)
    return []


async def _ensure_embedded(settings: KafkaSettings, topics: Sequence[Topic]) -> None:
    log = await registry.acquire(settings.embedded)
    try:
        there = {
            name: kafka_topics.ExistingTopic(
                log.partition_count(name) or 0, 1, config.get(kafka_topics.CLEANUP, "delete")
            )
            for name, config in log.topics.items()
        }
        if faults := kafka_topics.faults(str(settings.embedded), there, topics, settings.partitions):
            raise InputError(*faults)
        for topic in topics:
            await log.create_topic(topic.name, settings.partitions, topic.config)
    finally:
        await registry.release(log)


async def describe_topics(settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> list[TopicDescription]:
    """Every topic of the table as it is now, in the table's order. Raises Unreachable."""
    if settings.bootstrap_servers:
        bounds = await _kafka_bounds(settings.bootstrap_servers, settings, topics)
    else:
        bounds = await _embedded_bounds(settings, topics)
    described = []
    for topic in topics:
        first_end = bounds[topic.name]
        described.append(
            TopicDescription(
                topic.name,
                topic.cleanup,
                len(first_end),
                tuple(end for _, end in first_end),
                sum(end - first for first, end in first_end),
            )
        )
    return described


async def _embedded_bounds(settings: KafkaSettings, topics: Sequence[Topic]) -> dict[str, list[tuple[int, int]]]:
    async with open_view(settings.embedded) as view:
        return {
            topic.name: [
                (view.first((topic.name, part)), view.end((topic.name, part)))
                for part in range(view.partition_count(topic.name) or 0)
            ]
            for topic in topics
        }


async def _kafka_bounds(
    servers: str, settings: KafkaSettings, topics: Sequence[Topic]
) -> dict[str, list[tuple[int, int]]]:
    async with kafka.admin(settings) as admin:
        counts = await kafka.answered(servers, lambda: kafka.partition_counts(admin))
    partitions = [TopicPartition(topic.name, part) for topic in topics for part in range(counts.get(topic.name, 0))]
    if not partitions:
        return {topic.name: [] for topic in topics}
    async with kafka.consumer(settings) as consumer:
        with kafka.answering(servers):
            first, end = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    found: dict[str, list[tuple[int, int]]] = {topic.name: [] for topic in topics}
    for tp in partitions:
        found[tp.topic].append((first[tp], end[tp]))
    return found
