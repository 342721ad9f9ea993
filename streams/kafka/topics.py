"""Our topics on Apache Kafka: made where they are missing, and checked in full where they are there.

In: the settings and the table of topics. Out: topics that exist, and a remark for each way in which they are other than
we would have made them. What would go wrong for certain is refused: a count of partitions that is not the configured
one, another clean-up, and more replicas to acknowledge a record than there are. `describe` and `judge` are apart, so
that the judgement needs no broker.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from underhost.schemas.errors import InputError, KafkaAway, Refused
from underhost.schemas.topics import Topic
from underhost.streams.kafka import connect as kafka
from underhost.streams.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)

CLEANUP, LAG, MIN_IN_SYNC = "cleanup.policy", "min.compaction.lag.ms", "min.insync.replicas"
SEGMENT = "segment.ms"
SEGMENT_MS = 6 * 3_600_000
"""Milliseconds after which a file of a compacted topic is closed. Kafka compacts no open one, and leaves it open for a
week: a worker that starts would read that week, instead of the last day and one record of each object."""
REPLICAS, IN_SYNC = 3, 2
"""Replicas of a new topic, unless configured, where there are as many brokers; and how many acknowledge a record."""
NO_RIGHT = (TopicAuthorizationFailedError.errno, ClusterAuthorizationFailedError.errno)
POLL_SECONDS = 0.1
START_SECONDS = 12.0
"""Seconds for all of it, so that a start says within 15 s that its topics are not there."""
AWAY_SECONDS = 60.0
"""The same while a broker is away: if it was the controller, the others go on asking it for half a minute. And while
other workers, which may make a topic, have not made it yet."""


@dataclass(frozen=True)
class ExistingTopic:
    """A topic as it is. What is configured is None where we have no right to read it.

    `lag` (min.compaction.lag.ms) and `segment` (segment.ms) are in milliseconds.
    """

    partitions: int
    replicas: int
    cleanup: str | None = None
    lag: int | None = None
    min_in_sync: int | None = None
    segment: int | None = None


@dataclass(frozen=True)
class Remark:
    """One way in which topics are other than we would have made them.

    Attributes:
        why: the kind, for the metric. topics: their full names. line: the whole in one line, for a person.
    """

    why: str
    topics: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class _Deviation:
    """`of` tells whether a topic deviates, from (topic, what it is, count of brokers).

    The text may name `{brokers}`, their count, and `{config}`, that of the first such topic as we make it.
    """

    why: str
    of: Callable[[Topic, ExistingTopic, int], bool]
    text: str


DEVIATIONS = (
    _Deviation(
        "one-replica",
        lambda topic, found, brokers: brokers > 1 and found.replicas == 1,
        "one replica on a cluster of {brokers} brokers: all is lost, or nothing goes on, with the broker that has it"
        " (kafka.replicationFactor counts for new topics only)",
    ),
    _Deviation(
        "acknowledged-by-one",
        lambda topic, found, brokers: found.replicas >= REPLICAS and found.min_in_sync == 1,
        "min.insync.replicas 1: a record that was acknowledged can be lost with one broker; 2 is right",
    ),
    _Deviation(
        "needs-every-replica",
        lambda topic, found, brokers: found.replicas > 1 and found.min_in_sync == found.replicas,
        "as many min.insync.replicas as replicas: nothing can be published while one broker is away",
    ),
    _Deviation(
        "compacted-early",
        lambda topic, found, brokers: found.lag is not None and found.lag < int(topic.config.get(LAG, 0)),
        "min.compaction.lag.ms below a day: the last day cannot be shown as it was",
    ),
    _Deviation(
        "compacted-late",
        lambda topic, found, brokers: SEGMENT in topic.config and (found.segment or 0) > int(topic.config[SEGMENT]),
        "segment.ms is too long: a start reads hours of changes, not one row of each object (kafka-configs --alter"
        " --add-config {config})",
    ),
)


def faults(where: str, there: Mapping[str, ExistingTopic], topics: Sequence[Topic], partitions: int) -> list[str]:
    """What cannot work, one line each."""
    lines = []
    for topic in topics:
        if (found := there.get(topic.name)) is None:
            continue
        if found.partitions != partitions:
            configured = f"{partitions} are configured (kafka.partitions)"
            lines.append(f"{where}: topic {topic.name} has {found.partitions} partitions, {configured}")
        if found.cleanup not in (None, topic.cleanup):
            lines.append(f"{where}: topic {topic.name} has cleanup.policy {found.cleanup}, it must be {topic.cleanup}")
        if found.min_in_sync is not None and found.min_in_sync > found.replicas:
            too_many = f"min.insync.replicas {found.min_in_sync} and {found.replicas} replicas"
            lines.append(f"{where}: topic {topic.name} has {too_many}: nothing can ever be published to it")
    return lines


def judge(where: str, there: Mapping[str, ExistingTopic], topics: Sequence[Topic], brokers: int) -> list[Remark]:
    """What deviates, one remark for each kind of deviation."""
    remarks = []
    for deviation in DEVIATIONS:
        names = tuple(
            topic.name for topic in topics if topic.name in there and deviation.of(topic, there[topic.name], brokers)
        )
        if names:
            asked = next(topic.config for topic in topics if topic.name == names[0])
            config = ",".join(f"{key}={value}" for key, value in asked.items())
            text = deviation.text.format(brokers=brokers, config=config)
            remarks.append(Remark(deviation.why, names, f"{where}: {_listed(names)}: {text}"))
    return remarks


def _listed(names: Sequence[str]) -> str:
    """The names, or the first three of many and how many more there are."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more topics"


async def ensure(
    servers: str, settings: KafkaSettings, topics: Sequence[Topic], others: Collection[str] = ()
) -> list[Remark]:
    """Create the missing topics, check all. One of `others` (full names) that we may not make is waited for.

    Raises InputError for `faults`, Refused, and Unreachable after `START_SECONDS`, while a broker is away after
    `AWAY_SECONDS`.
    """
    where, clock = f"Kafka at {servers}", asyncio.get_running_loop().time
    begin = clock()
    async with kafka.admin(settings) as admin:
        there = await kafka.answered(servers, lambda: describe(admin, topics), begin + START_SECONDS - clock())
        _refuse(where, there, topics, settings)
        # Kafka does not show a broker that is away: the topics that are there tell of it.
        brokers = max([len(admin._client.cluster.brokers()), *(found.replicas for found in there.values())])
        if len(there) < len(topics):
            there = await _made(settings, admin, topics, there, brokers, begin, others)
            _refuse(where, there, topics, settings)  # another worker may have been first
        return judge(where, there, topics, brokers)


def _refuse(where: str, there: Mapping[str, ExistingTopic], topics: Sequence[Topic], settings: KafkaSettings) -> None:
    if lines := faults(where, there, topics, settings.partitions):
        raise InputError(*lines)


def new_topic(topic: Topic, settings: KafkaSettings, brokers: int) -> NewTopic:
    """A topic as we make it on a cluster of so many brokers."""
    replicas = settings.replication_factor or max(1, min(REPLICAS, brokers))
    # Two of three acknowledge: none is lost with one broker, and nothing stops.
    in_sync = {MIN_IN_SYNC: str(IN_SYNC)} if replicas >= REPLICAS else {}
    closed = {SEGMENT: str(SEGMENT_MS)} if topic.cleanup == "compact" else {}
    return NewTopic(topic.name, settings.partitions, replicas, topic_configs={**closed, **topic.config, **in_sync})


async def _made(
    settings: KafkaSettings,
    admin: AIOKafkaAdminClient,
    topics: Sequence[Topic],
    there: dict[str, ExistingTopic],
    brokers: int,
    begin: float,
    others: Collection[str],
) -> dict[str, ExistingTopic]:
    """The topics once the brokers show all of them: the controller answers before the brokers know.

    A broker that goes on asking a controller that has frozen makes them half a minute later, and its answer may come
    too late. It answers one question after another on a connection, so whoever looks for them needs one of its own.
    """
    servers = settings.bootstrap_servers or ""
    where = f"Kafka at {servers}"
    awaited: list[str] = []
    missing = [new_topic(topic, settings, brokers) for topic in topics if topic.name not in there]
    try:
        async with asyncio.timeout_at(begin + START_SECONDS) as limit, kafka.admin(settings) as other:
            creating = asyncio.ensure_future(_create(where, servers, other, missing, others))
            try:
                if not await admin._client.all_there(brokers):
                    limit.reschedule(begin + AWAY_SECONDS)
                    log.warning("%s: a broker is away; new topics may take %.0f s", where, AWAY_SECONDS)
                while len(there) < len(topics):
                    if creating.done() and not awaited and (awaited := creating.result()):
                        limit.reschedule(begin + AWAY_SECONDS)
                    await asyncio.sleep(POLL_SECONDS)
                    there = await kafka.answered(servers, lambda: describe(admin, topics))
                return there
            finally:
                creating.cancel()
    except TimeoutError as error:
        names = _listed([topic.name for topic in topics if topic.name not in there])
        if not names:
            return there  # it was late to let go of the connection, and nothing else
        if awaited:
            why = "start the workers that write them; this one's user may not make them"
            raise KafkaAway(f"{where} does not show topics: {names}: {why}") from error
        raise KafkaAway(f"{where} answers, but does not show topics that it was asked to make: {names}") from error


async def _create(
    where: str, servers: str, admin: AIOKafkaAdminClient, missing: Sequence[NewTopic], others: Collection[str]
) -> list[str]:
    """Make them; the names of those of `others` that we may not make. Raises Refused for any other that is not made."""
    response = await kafka.answered(servers, lambda: admin.create_topics(missing), AWAY_SECONDS)
    awaited = []
    for name, code, *message in response.topic_errors:
        if code in NO_RIGHT and name in others:
            log.info("%s: topic %s is waited for: a worker that writes it makes it", where, name)
            awaited.append(name)
        elif code not in (0, TopicAlreadyExistsError.errno):
            why = message[0] if message and message[0] else for_code(code).__name__
            raise Refused(f"{where} does not create topic {name}: {why}")
    return awaited


async def describe(admin: AIOKafkaAdminClient, topics: Sequence[Topic]) -> dict[str, ExistingTopic]:
    """Those of the topics that exist, by full name."""
    shown = {topic["topic"]: topic["partitions"] for topic in await admin.describe_topics()}
    names = [topic.name for topic in topics if shown.get(topic.name)]
    wanted = [
        ConfigResource(ConfigResourceType.TOPIC, name, configs=dict.fromkeys((CLEANUP, LAG, MIN_IN_SYNC, SEGMENT), ""))
        for name in names
    ]
    configured: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(wanted) if wanted else ():
        for code, _, _, name, configs in answer.resources:
            if code == 0:
                configured[name] = {key: value for key, value, *_ in configs}
    return {name: _found(shown[name], configured.get(name, {})) for name in names}


def _found(partitions: Sequence[Mapping[str, Sequence[int]]], configured: Mapping[str, str]) -> ExistingTopic:
    lag, in_sync, segment = (configured.get(key) for key in (LAG, MIN_IN_SYNC, SEGMENT))
    return ExistingTopic(
        len(partitions),
        min(len(partition["replicas"]) for partition in partitions),
        configured.get(CLEANUP),
        None if lag is None else int(lag),
        None if in_sync is None else int(in_sync),
        None if segment is None else int(segment),
    )
