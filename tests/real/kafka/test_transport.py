"""The same checks as for the embedded log, over a real Kafka broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

import pytest
from support.processes.kafka import KafkaProcess
from support.transport_contract import TransportContract, pod, take
from support.workers.embedded import running
from support.workers.fleet import until

from underhost.schemas.topics import PODS, TOPICS
from underhost.streams.admin import ensure_topics
from underhost.streams.faust.app import build_app, declare
from underhost.streams.kafka import connect as clients
from underhost.streams.partition import partition_of
from underhost.streams.ports import Publisher
from underhost.streams.publish import FaustPublisher, KafkaPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

pytestmark = pytest.mark.real


@pytest.fixture
async def kafka(lasting_broker: KafkaProcess) -> AsyncIterator[KafkaSettings]:
    """Settings of a broker without our topics."""
    settings = KafkaSettings(bootstrap_servers=lasting_broker.address, partitions=4)
    yield settings
    async with clients.admin(settings) as admin:
        names = {topic.name for topic in TOPICS} & set(await clients.partition_counts(admin))
        await admin.delete_topics(sorted(names))
        while names & set(await clients.partition_counts(admin)):
            continue


class TestKafka(TransportContract):
    """See TransportContract."""

    def publisher(self, kafka: KafkaSettings) -> AbstractAsyncContextManager[Publisher]:
        """Straight to the broker."""
        return KafkaPublisher(kafka, kafka.partitions)


async def test_an_app_publishes_over_kafka_as_over_the_embedded_log(kafka: KafkaSettings) -> None:
    await ensure_topics(kafka)
    app = build_app(Settings(kafka=kafka), app_id="publisher")
    try:
        await FaustPublisher(app).publish(*(pod("a", b"%d" % number) for number in range(1000)), pod("b", None))
    finally:
        await app.producer.stop()
    async with aclosing(open_reader(kafka).history([PODS])) as history:
        records = [record async for record in history]
    assert [record.value for record in records] == [*(b"%d" % number for number in range(1000)), None]
    assert {record.partition for record in records} == {partition_of("prod-a", 4)}
    assert dict(records[-1].headers)["ce_id"] == b"uid-b/1"


async def test_an_agent_that_falls_behind_gets_every_record_once_it_goes_on(kafka: KafkaSettings) -> None:
    await ensure_topics(kafka)
    app, read, may_go_on = build_app(Settings(kafka=kafka), app_id="slow"), list[bytes](), asyncio.Event()
    app.conf.stream_buffer_maxsize = 50
    records = [b"%d" % number for number in range(2000)]

    async def agent(stream: Any) -> None:
        async for event in stream.noack().events():
            read.append(event.value)
            await may_go_on.wait()

    app.agent(declare(app, PODS), name="slow")(agent)
    async with KafkaPublisher(kafka, kafka.partitions) as publisher, running(app), asyncio.timeout(60):
        await publisher.publish(*(pod("a", value) for value in records))
        await until(lambda: bool(app.consumer._buffered_partitions))
        may_go_on.set()
        await until(lambda: len(read) >= len(records))
    assert read == records


async def test_a_broker_that_was_killed_and_came_back_lost_nothing_that_was_acknowledged(
    lasting_broker: KafkaProcess, kafka: KafkaSettings
) -> None:
    await ensure_topics(kafka)
    acknowledged = []
    async with (
        KafkaPublisher(kafka, kafka.partitions) as publisher,
        aclosing(open_reader(kafka).follow([PODS], from_beginning=True)) as records,
    ):
        for number in range(100):
            await publisher.publish(pod("a", b"%d" % number))
            acknowledged.append(b"%d" % number)
        assert len(await take(records, 100)) == 100
        lasting_broker.kill()
        during = asyncio.ensure_future(publisher.publish(pod("a", b"while it was away")))
        await asyncio.to_thread(lasting_broker.start)
        await during
        await publisher.publish(pod("a", b"after"))
        followed = [record.value for record in await take(records, 2)]
    assert followed == [b"while it was away", b"after"], "the follower goes on by itself"
    async with aclosing(open_reader(kafka).history([PODS])) as history:
        assert [record.value async for record in history] == [*acknowledged, b"while it was away", b"after"]


async def test_a_broker_that_hangs_for_a_while_is_waited_for(
    lasting_broker: KafkaProcess, kafka: KafkaSettings
) -> None:
    await ensure_topics(kafka)
    async with KafkaPublisher(kafka, kafka.partitions) as publisher:
        await publisher.publish(pod("a", b"before"))
        lasting_broker.pause()
        during = asyncio.ensure_future(publisher.publish(pod("a", b"while it hung"), pod("a", b"and in order")))
        await asyncio.wait([during], timeout=1)
        assert not during.done(), "nothing is acknowledged by a broker that stands still"
        lasting_broker.resume()
        await during
    async with aclosing(open_reader(kafka).history([PODS])) as history:
        assert [record.value async for record in history] == [b"before", b"while it hung", b"and in order"]
