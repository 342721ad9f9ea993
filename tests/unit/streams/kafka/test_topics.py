"""What is wrong with topics that are there: refused where it cannot work, said where it can be lost."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from trust.simulation.clock import FIRST_MOMENT, VirtualClock
from trust.simulation.loop import SeededLoop

from underhost.agents.pipeline.roles import changelog_topics
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import ACTIONS, NODES, PODS, SOURCE_TOPICS, Topic
from underhost.streams.kafka.topics import ExistingTopic, ensure, faults, judge, new_topic
from underhost.streams.settings.kafka import KafkaSettings

DAY = 86_400_000
GOOD = ExistingTopic(8, 3, "compact", DAY, 2)
[CHANGELOG] = [topic for topic in changelog_topics({"evaluator"}, "prod") if "-pods-" in topic.name]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (GOOD, []),
        (ExistingTopic(8, 1), []),
        (
            ExistingTopic(4, 3, "compact", DAY, 2),
            ["K: topic underhost.nodes has 4 partitions, 8 are configured (kafka.partitions)"],
        ),
        (
            ExistingTopic(8, 3, "delete", DAY, 2),
            ["K: topic underhost.nodes has cleanup.policy delete, it must be compact"],
        ),
        (
            ExistingTopic(8, 1, "compact", DAY, 2),
            ["K: topic underhost.nodes has min.insync.replicas 2 and 1 replicas: nothing can ever be published to it"],
        ),
    ],
    ids=["as we make it", "no right to read its configuration", "partitions", "clean-up", "never enough replicas"],
)
def test_a_topic_that_cannot_work_is_refused(found: ExistingTopic, lines: list[str]) -> None:
    assert faults("K", {NODES.name: found}, [NODES, PODS], 8) == lines


@pytest.mark.parametrize(
    ("topic", "found", "brokers", "why"),
    [
        (NODES, GOOD, 3, []),
        (NODES, ExistingTopic(8, 1, "compact", DAY, 1), 1, []),
        (NODES, ExistingTopic(8, 3), 3, []),
        (NODES, ExistingTopic(8, 1, "compact", DAY, 1), 3, ["one-replica"]),
        (NODES, ExistingTopic(8, 3, "compact", DAY, 1), 3, ["acknowledged-by-one"]),
        (NODES, ExistingTopic(8, 2, "compact", DAY, 2), 3, ["needs-every-replica"]),
        (NODES, ExistingTopic(8, 3, "compact", 0, 2), 3, ["compacted-early"]),
        (ACTIONS, ExistingTopic(8, 3, "delete", 0, 2), 3, []),
        (CHANGELOG, ExistingTopic(8, 3, "compact", 0, 2, 600_000), 3, []),
        (CHANGELOG, ExistingTopic(8, 3, "compact", 0, 2), 3, []),
        (CHANGELOG, ExistingTopic(8, 3, "compact", 0, 2, DAY // 4), 3, ["compacted-late"]),
        (NODES, ExistingTopic(8, 3, "compact", DAY, 2, 7 * DAY), 3, []),
        (NODES, ExistingTopic(8, 1, "compact", 0, 1), 3, ["one-replica", "compacted-early"]),
    ],
    ids=[
        "as we make it", "the only broker", "no right to read", "one replica of three brokers", "one acknowledges",
        "all acknowledge", "history is lost", "nothing to compact",
        "a changelog as we make it", "its file: no right to read", "its file is open for hours", "a day is kept anyway",
        "two of them",
    ],
)  # fmt: skip
def test_a_topic_that_can_be_lost_or_stopped_is_said(
    topic: Topic, found: ExistingTopic, brokers: int, why: list[str]
) -> None:
    remarks = judge("K", {topic.name: found}, [topic], brokers)
    assert [remark.why for remark in remarks] == why


@pytest.mark.parametrize(
    ("asked", "brokers", "replicas", "in_sync"),
    [(None, 1, 1, None), (None, 2, 2, None), (None, 5, 3, "2"), (1, 3, 1, None), (5, 5, 5, "2")],
    ids=["one broker", "two", "many", "one replica is asked for", "five are"],
)
def test_a_new_topic_outlives_a_broker_and_is_compacted_after_a_day(
    asked: int | None, brokers: int, replicas: int, in_sync: str | None
) -> None:
    made = new_topic(NODES, KafkaSettings(replication_factor=asked), brokers)
    assert (made.num_partitions, made.replication_factor) == (8, replicas)
    assert made.topic_configs.get("min.insync.replicas") == in_sync
    assert made.topic_configs["min.compaction.lag.ms"] == str(DAY)
    assert made.topic_configs["segment.ms"] == str(DAY // 4), "Kafka compacts no open file"


def test_a_new_changelog_is_compacted_while_its_worker_runs() -> None:
    made = new_topic(CHANGELOG, KafkaSettings(), 1)
    assert made.topic_configs == CHANGELOG.config


def test_what_many_topics_have_in_common_is_one_line() -> None:
    there = {topic.name: ExistingTopic(8, 1, "compact", DAY, 1) for topic in SOURCE_TOPICS}
    [remark] = judge("Kafka at k:9092", there, SOURCE_TOPICS, 3)
    assert remark.line == (
        "Kafka at k:9092: underhost.nodes, underhost.pods, underhost.namespaces and 6 more topics: one replica on a"
        " cluster of 3 brokers: all is lost, or nothing goes on, with the broker that has it"
        " (kafka.replicationFactor counts for new topics only)"
    )


def test_a_changelog_that_is_compacted_late_is_said_with_what_to_set() -> None:
    [remark] = judge("Kafka at k:9092", {CHANGELOG.name: ExistingTopic(8, 3, "compact", 0, 2, DAY)}, [CHANGELOG], 3)
    assert remark.line == (
        f"Kafka at k:9092: {CHANGELOG.name}: segment.ms is too long: a start reads hours of changes, not one row of"
        " each object (kafka-configs --alter --add-config cleanup.policy=compact,segment.ms=600000,"
        "segment.bytes=67108864,min.cleanable.dirty.ratio=0.2,max.compaction.lag.ms=21600000)"
    )


class SlowKafka:
    """A broker that answers, and shows a topic so many seconds after it was asked to make it; it is its own client.

    `closing`: seconds that it takes to let go of a connection.
    """

    def __init__(self, seconds: float, whole: bool, closing: float = 0.0) -> None:
        self._seconds, self._whole, self._asked, self._closing = seconds, whole, dict[str, float](), closing
        self.cluster, self._client = SimpleNamespace(brokers=lambda: ["the only one"]), self

    @asynccontextmanager
    async def admin(self, settings: KafkaSettings) -> AsyncIterator["SlowKafka"]:
        """See `connect.admin`."""
        yield self
        await asyncio.sleep(self._closing)

    async def all_there(self, count: int) -> bool:
        """See `PatientClient`."""
        return self._whole

    async def create_topics(self, asked: Sequence[Any]) -> SimpleNamespace:
        """aiokafka's."""
        self._asked = {topic.name: asyncio.get_running_loop().time() for topic in asked}
        return SimpleNamespace(topic_errors=[(name, 0, None) for name in self._asked])

    async def describe_topics(self) -> list[dict[str, Any]]:
        """aiokafka's."""
        now = asyncio.get_running_loop().time()
        shown = [name for name, since in self._asked.items() if now >= since + self._seconds]
        return [{"topic": name, "partitions": [{"replicas": [1]}] * 8} for name in shown]

    async def describe_configs(self, wanted: object) -> list[Any]:
        """aiokafka's."""
        return []


NEVER = float("inf")


@pytest.mark.parametrize(
    ("shown_after", "whole", "within"),
    [
        pytest.param(0.0, True, 1, id="at once"),
        pytest.param(8.0, True, 9, id="brokers that are busy"),
        pytest.param(33.0, False, 34, id="the controller was the broker that is away"),
        pytest.param(NEVER, True, 15, id="never"),
        pytest.param(NEVER, False, 60, id="never, and a broker is away"),
    ],
)
def test_a_kafka_that_answers_but_shows_no_topics_is_given_up_within_15_seconds(
    shown_after: float, whole: bool, within: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underhost.streams.kafka.connect.admin", SlowKafka(shown_after, whole).admin)
    clock = VirtualClock()
    loop = SeededLoop(clock, random.Random(0))
    starting = ensure("k:9092", KafkaSettings(bootstrap_servers="k:9092"), [NODES, PODS])
    try:
        if shown_after < NEVER:
            assert loop.run_until_complete(starting) == []
        else:
            with pytest.raises(Unreachable, match=r"Kafka at k:9092 answers, but .*: underhost.nodes, underhost.pods$"):
                loop.run_until_complete(starting)
    finally:
        loop.close()
    assert clock.now - FIRST_MOMENT <= within


def test_topics_that_are_shown_are_there_however_long_it_takes_to_let_go_of_kafka(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("underhost.streams.kafka.connect.admin", SlowKafka(11.0, True, closing=5.0).admin)
    loop = SeededLoop(VirtualClock(), random.Random(0))
    try:
        starting = ensure("k:9092", KafkaSettings(bootstrap_servers="k:9092"), [NODES, PODS])
        assert loop.run_until_complete(starting) == []
    finally:
        loop.close()
