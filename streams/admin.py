"""Creating, checking and describing the topics.

In: `KafkaSettings` and the table of topics. Out: topics that exist with the configured count of partitions, or a
description of those that do.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, for_code

from underhost.schemas.errors import InputError, Refused
from underhost.schemas.topics import TOPICS, Topic
from underhost.streams.embedded import registry
from underhost.streams.embedded.view import open_view
from underhost.streams.kafka import connect as kafka
from underhost.streams.settings.kafka import KafkaSettings

CLEANUP = "cleanup.policy"
POLL_SECONDS = 0.1
APPEAR_SECONDS = 60.0
"""Seconds that a broker may need to show topics that it has created. It answers meanwhile, so it is only busy."""


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


async def ensure_topics(settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> None:
    """Create the topics that are missing.

    Raises InputError naming every topic that is there with another count of partitions or another clean-up (a state
    topic that is not compacted loses its site after some days); Unreachable when Kafka does not answer; Refused when it
    answers and will not create them, or when another process has the embedded log.
    """
    if settings.bootstrap_servers:
        await _ensure_kafka(settings.bootstrap_servers, settings, topics)
    else:
        await _ensure_embedded(settings, topics)


@dataclass(frozen=True)
class _There:
    """An existing topic. `cleanup` is None where we have no right to read it."""

    partitions: int
    cleanup: str | None


def _check(where: str, there: Mapping[str, _There], topics: Sequence[Topic], wanted: int) -> None:
    faults = []
    for topic in topics:
        found = there.get(topic.name)
        if found is None:
            continue
        if found.partitions != wanted:
            faults.append(
                f"{where}: topic {topic.name} has {found.partitions} partitions, {wanted} are configured"
                " (kafka.partitions)"
            )
        if found.cleanup not in (None, topic.cleanup):
            faults.append(f"{where}: topic {topic.name} has cleanup.policy {found.cleanup}, it must be {topic.cleanup}")
    if faults:
        raise InputError(*faults)


async def _ensure_embedded(settings: KafkaSettings, topics: Sequence[Topic]) -> None:
    log = await registry.acquire(settings.embedded)
    try:
        there = {
            name: _There(log.partition_count(name) or 0, config.get(CLEANUP, "delete"))
            for name, config in log.topics.items()
        }
        _check(str(settings.embedded), there, topics, settings.partitions)
        for topic in topics:
            await log.create_topic(topic.name, settings.partitions, topic.config)
    finally:
        await registry.release(log)


async def _ensure_kafka(servers: str, settings: KafkaSettings, topics: Sequence[Topic]) -> None:
    async with kafka.admin(settings) as admin:
        there = await kafka.answered(servers, lambda: _on_kafka(admin, topics))
        _check(f"Kafka at {servers}", there, topics, settings.partitions)
        missing = [
            NewTopic(topic.name, settings.partitions, settings.replication_factor, topic_configs=topic.config)
            for topic in topics
            if topic.name not in there
        ]
        if not missing:
            return
        with kafka.answering(servers):
            response = await admin.create_topics(missing)
        for name, code, *message in response.topic_errors:
            if code not in (0, TopicAlreadyExistsError.errno):
                why = message[0] if message and message[0] else for_code(code).__name__
                raise Refused(f"Kafka at {servers} does not create topic {name}: {why}")
        with kafka.answering(servers):
            there = await _all_on_kafka(servers, admin, topics)
        _check(f"Kafka at {servers}", there, topics, settings.partitions)  # another worker may have been first


async def _all_on_kafka(servers: str, admin: AIOKafkaAdminClient, topics: Sequence[Topic]) -> dict[str, _There]:
    """The topics once the broker shows all of them: the controller answers before the brokers know.

    Raises TimeoutError after `APPEAR_SECONDS`.
    """
    async with asyncio.timeout(APPEAR_SECONDS):
        while True:
            there = await kafka.answered(servers, lambda: _on_kafka(admin, topics))
            if len(there) == len(topics):
                return there
            await asyncio.sleep(POLL_SECONDS)


async def _on_kafka(admin: AIOKafkaAdminClient, topics: Sequence[Topic]) -> dict[str, _There]:
    """Those of the topics that exist."""
    counts = await kafka.partition_counts(admin)
    names = [topic.name for topic in topics if topic.name in counts]
    wanted = [ConfigResource(ConfigResourceType.TOPIC, name, configs={CLEANUP: ""}) for name in names]
    cleanups = {}
    for answer in await admin.describe_configs(wanted) if wanted else ():
        for code, _, _, name, configs in answer.resources:
            if code == 0:
                cleanups[name] = next((value for key, value, *_ in configs if key == CLEANUP), None)
    return {name: _There(counts[name], cleanups.get(name)) for name in names}


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
