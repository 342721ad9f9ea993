"""A table's changes go into the producer's batches, and no offset is committed before Kafka has them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, ProducerClosed
from aiokafka.structs import TopicPartition

from underhost.streams.faust.app import UnderhostApp, build_app
from underhost.streams.kafka.changes import put
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

NOWHERE = "127.0.0.1:1"
PLACE = TopicPartition("underhost-pods-changelog", 0)
BYTES = 1000


@pytest.fixture
async def producer() -> AsyncIterator[AIOKafkaProducer]:
    """One that is not started: what waits in it is not sent."""
    producer = AIOKafkaProducer(bootstrap_servers=NOWHERE, enable_idempotence=True, max_batch_size=BYTES)
    yield producer
    producer._closed = True  # else it warns that nobody has stopped it


def change(producer: AIOKafkaProducer, key: str, size: int = 10, place: TopicPartition = PLACE) -> Any:
    return put(producer, place, key.encode(), b"x" * size, [("generation", b"7")])


async def test_changes_of_a_partition_share_a_batch(producer: AIOKafkaProducer) -> None:
    batch = change(producer, "a")
    assert [change(producer, "b"), change(producer, "c")] == [None, None]
    assert (batch.tp, batch.record_count) == (PLACE, 3)
    assert list(producer._message_accumulator._batches[PLACE]) == [batch]


async def test_a_change_for_which_there_is_no_room_begins_the_next_batch(producer: AIOKafkaProducer) -> None:
    batches = [change(producer, key, 600) for key in "abc"]
    assert [batch.record_count for batch in batches] == [1, 1, 1]
    assert list(producer._message_accumulator._batches[PLACE]) == batches


async def test_one_that_is_larger_than_a_batch_is_a_batch_of_its_own(producer: AIOKafkaProducer) -> None:
    large, small = change(producer, "a", 5 * BYTES), change(producer, "b")
    assert (large.record_count, small.record_count) == (1, 1)


async def test_a_batch_that_is_sent_again_takes_no_more(producer: AIOKafkaProducer) -> None:
    sent = change(producer, "a")
    sent.get_data_buffer()
    assert change(producer, "b") is not None


async def test_the_client_is_told_every_topic_so_that_it_keeps_its_leader(producer: AIOKafkaProducer) -> None:
    change(producer, "a")
    change(producer, "b", place=TopicPartition("underhost-nodes-changelog", 3))
    assert producer.client._topics == {"underhost-pods-changelog", "underhost-nodes-changelog"}


async def test_after_the_end_a_change_is_refused(producer: AIOKafkaProducer) -> None:
    producer._message_accumulator._closed = True
    with pytest.raises(ProducerClosed):
        change(producer, "a")


# ------------------------------------------------------------------------------------------- the producer of an app
@pytest.fixture
async def app(producer: AIOKafkaProducer) -> UnderhostApp:
    """An app whose producer sends nothing."""
    app = build_app(Settings(kafka=KafkaSettings(bootstrap_servers=NOWHERE)), app_id="t")
    app.producer._producer = producer
    app.consumer_generation_id = 7
    return app


def changed(app: UnderhostApp, key: str) -> None:
    assert app.producer.put_change(PLACE.topic, PLACE.partition, key.encode(), b"new") is True


def batch_of(app: UnderhostApp) -> Any:
    [batch] = app.producer._producer._message_accumulator._batches[PLACE]
    return batch


async def is_over(task: "asyncio.Task[Any]") -> bool:
    """Whether it ends without anything else happening."""
    for _ in range(5):
        await asyncio.sleep(0)
    return task.done()


async def test_nothing_is_committed_until_kafka_has_the_batch(app: UnderhostApp) -> None:
    changed(app, "a")
    changed(app, "b")
    committing = asyncio.create_task(app.changes.written())
    assert not await is_over(committing)
    batch_of(app).done(base_offset=0)
    assert await committing is True


async def test_what_kafka_refuses_is_told_and_holds_up_nothing(
    app: UnderhostApp, caplog: pytest.LogCaptureFixture
) -> None:
    changed(app, "a")
    batch_of(app).failure(MessageSizeTooLargeError())
    with caplog.at_level(logging.ERROR):
        assert await app.changes.written() is True
    assert caplog.messages == [f"Kafka refuses 1 changes of {PLACE.topic}: [Error 10] MessageSizeTooLargeError"]


@pytest.mark.parametrize("end", ["sender", "stop"])
async def test_what_was_never_sent_is_never_committed(app: UnderhostApp, end: str) -> None:
    changed(app, "a")
    accumulator, batch = app.producer._producer._message_accumulator, batch_of(app)
    if end == "sender":
        accumulator.fail_all(OSError("out of order"))
    else:
        accumulator._closed = True
        batch.failure(ProducerClosed())
    assert not await is_over(asyncio.create_task(app.changes.written()))


@pytest.mark.parametrize("producer_is", ["closed", "gone"])
async def test_a_change_that_comes_too_late_is_never_committed(app: UnderhostApp, producer_is: str) -> None:
    if producer_is == "gone":
        app.producer._producer = None
    else:
        app.producer._producer._message_accumulator._closed = True
    changed(app, "a")
    assert not await is_over(asyncio.create_task(app.changes.written()))


async def test_records_wait_while_too_many_changes_do(app: UnderhostApp) -> None:
    app.producer.buffer.max_messages = 2
    waits = app.producer.buffer.wait_until_ebb
    changed(app, "a")
    changed(app, "b")
    await waits()
    changed(app, "c")
    waiting = asyncio.create_task(waits())
    assert not await is_over(waiting)
    batch_of(app).done(base_offset=0)
    await waiting
