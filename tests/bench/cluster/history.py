"""What a broker holds of the past of a site: a day of changes that its killed worker had read, or nothing.

In: the topics as a first start has left them. Out: so many records more of pods, in the topic and in the changelog of
the worker's table, with the offset of its group behind them. They are copies of what is there, so that the last state
stays that of the API server. A day passes in minutes here: files of the changelog are closed by their size, not by
their age, and the broker compacts them meanwhile.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from underhost.agents.pipeline.roles import ALL, app_id, changelog_topics
from underhost.schemas.topics import PODS
from underhost.streams.faust.table import GENERATION
from underhost.streams.partition import partition_of

AT_ONCE, FULL = 500, 0.05
"""Records in one poll; seconds until a producer whose queue was full is tried again."""
PATIENCE, LOOK = 60.0, 0.5
"""Seconds until a killed worker has left its group, and between two looks."""
CLEANER = 20.0
"""Seconds within which the broker looks at a topic again: `log.cleaner.backoff.ms` is 15 s."""


class History(NamedTuple):
    """How many changes the topic has more, and how many records the changelog has in the end."""

    changes: int
    changelog: int


def add_history(server: str, site: str, partitions: int, changes: int) -> History:
    """Add at least so many changes, in whole rounds over all pods."""
    [changelog] = [topic.name for topic in changelog_topics(ALL, site) if topic.name.endswith("-pods-changelog")]
    topic, table = (TopicPartition(name, partition_of(site, partitions)) for name in (PODS.name, changelog))
    pods = len({message.key() for message in _messages(server, topic)})
    rounds = -(-changes // pods)
    for place in (topic, table):
        _repeat(server, place, rounds)
    _commit(server, app_id(ALL, site), TopicPartition(topic.topic, topic.partition, _end(server, topic)))
    _, changelog_then = _settled(server, topic, table)
    return History(rounds * pods, changelog_then)


def forget(server: str, site: str) -> None:
    """Leave no topic and no offset of the site's worker: it was killed, and its next start is the first one."""
    admin, group = AdminClient({"bootstrap.servers": server}), app_id(ALL, site)
    _wait(lambda: _done(admin.delete_consumer_groups([group])), KafkaError.GROUP_ID_NOT_FOUND)
    topics = [name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")]
    if topics:
        _done(admin.delete_topics(topics))
    until = time.monotonic() + PATIENCE
    while left := {*topics}.intersection(admin.list_topics(timeout=30).topics):
        if time.monotonic() > until:
            raise TimeoutError(f"{len(left)} topics are still there: the next start would not be a first one")
        time.sleep(LOOK)


def _repeat(server: str, place: TopicPartition, rounds: int) -> None:
    """Write the newest record of each key again, so many times, as of the newest generation.

    A recovery leaves out what an older generation has written behind a newer one.
    """
    newest = {message.key(): message for message in _messages(server, place)}
    generation = max((_generation(message) for message in newest.values()), key=int)
    producer = Producer({"bootstrap.servers": server, "linger.ms": 50, "batch.size": 262_144})
    for _ in range(rounds):
        for key, message in newest.items():
            headers = [(name, generation if name == GENERATION else value) for name, value in message.headers() or ()]
            while True:
                try:
                    producer.produce(place.topic, message.value(), key, place.partition, headers=headers)
                    break
                except BufferError:
                    producer.poll(FULL)
    producer.flush()


def _generation(message: Message) -> bytes:
    return dict(message.headers() or ()).get(GENERATION, b"0")


def _settled(server: str, *places: TopicPartition) -> list[int]:
    """How many records are there once the broker has compacted what it compacts.

    That takes it a processor for minutes here, and goes on all day elsewhere: a restart beside it is slower.
    """
    before, now = list[int](), _counts(server, places)
    while now != before:
        time.sleep(CLEANER)
        before, now = now, _counts(server, places)
    return now


def _counts(server: str, places: Iterable[TopicPartition]) -> list[int]:
    return [sum(1 for _ in _messages(server, place)) for place in places]


def _messages(server: str, place: TopicPartition) -> Iterator[Message]:
    """What is there now."""
    consumer, end = _consumer(server), _end(server, place)
    consumer.assign([TopicPartition(place.topic, place.partition, OFFSET_BEGINNING)])
    at = 0
    while at < end:
        for message in consumer.consume(AT_ONCE, timeout=1):
            at = (message.offset() or 0) + 1
            yield message
    consumer.close()


def _end(server: str, place: TopicPartition) -> int:
    """The offset of the next record."""
    consumer = _consumer(server)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.close()
    return int(end)


def _consumer(server: str) -> Consumer:
    return Consumer({"bootstrap.servers": server, "group.id": "history", "enable.auto.commit": False})


def _commit(server: str, group: str, place: TopicPartition) -> None:
    """The group has read as far as that; waits until its killed worker is no member any more."""
    admin = AdminClient({"bootstrap.servers": server})
    _wait(lambda: _done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])))


def _wait(ask: Callable[[], None], done: int | None = None) -> None:
    """Ask until the broker says yes, or that there is nothing to do: it refuses while a group has a member."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() == done:
                return
            if time.monotonic() > until:
                raise
            time.sleep(LOOK)


def _done(answers: Mapping[Any, "Future[Any]"]) -> None:
    """Raises KafkaException for what was refused."""
    for answer in answers.values():
        answer.result()
