"""What is wrong with topics that are there: refused where it cannot work, said where it can be lost."""

import pytest

from underhost.schemas.topics import ACTIONS, NODES, PODS, SOURCE_TOPICS, Topic
from underhost.streams.kafka.topics import ExistingTopic, faults, judge, new_topic
from underhost.streams.settings.kafka import KafkaSettings

DAY = 86_400_000
GOOD = ExistingTopic(8, 3, "compact", DAY, 2)


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
        (NODES, ExistingTopic(8, 1, "compact", 0, 1), 3, ["one-replica", "compacted-early"]),
    ],
    ids=[
        "as we make it", "the only broker", "no right to read", "one replica of three brokers", "one acknowledges",
        "all acknowledge", "history is lost", "nothing to compact", "two of them",
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


def test_what_many_topics_have_in_common_is_one_line() -> None:
    there = {topic.name: ExistingTopic(8, 1, "compact", DAY, 1) for topic in SOURCE_TOPICS}
    [remark] = judge("Kafka at k:9092", there, SOURCE_TOPICS, 3)
    assert remark.line == (
        "Kafka at k:9092: underhost.nodes, underhost.pods, underhost.namespaces and 6 more topics: one replica on a"
        " cluster of 3 brokers: all is lost, or nothing goes on, with the broker that has it"
        " (kafka.replicationFactor counts for new topics only)"
    )
