"""What the contract test leaves open of readers: several of them at once, and topics that come later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from support.transport_contract import pod, take
from support.workers.embedded import a_publisher

from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.topics import NODES, PODS
from underhost.streams.admin import ensure_topics
from underhost.streams.embedded import registry
from underhost.streams.kafka.security import client_arguments
from underhost.streams.ports import Outgoing
from underhost.streams.reader import EmbeddedReader, KafkaReader, open_reader
from underhost.streams.settings.kafka import KafkaSettings


def test_bootstrap_servers_choose_kafka_and_nothing_connects_yet() -> None:
    assert isinstance(open_reader(KafkaSettings(bootstrap_servers="127.0.0.1:1")), KafkaReader)
    assert isinstance(open_reader(KafkaSettings(embedded=Path("/nowhere/x.db"))), EmbeddedReader)


async def test_a_follower_gets_a_topic_that_is_created_after_it_began(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings, [PODS])
    async with a_publisher(settings.embedded) as publisher:
        await publisher.publish(pod("a", b"1"))
        async with aclosing(open_reader(settings).follow([PODS, NODES], from_beginning=True)) as records:
            assert [record.value for record in await take(records, 1)] == [b"1"]
            waiting = asyncio.ensure_future(take(records, 1))
            await asyncio.sleep(0)
            await ensure_topics(settings, [NODES])
            await publisher.publish(Outgoing(NODES, "prod-a/node//n1", b"2", "1"))
            assert [(record.topic, record.value) for record in await waiting] == [("underhost.nodes", b"2")]


async def test_followers_do_not_take_records_from_one_another(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings)
    async with a_publisher(settings.embedded) as publisher:
        followers = [
            asyncio.ensure_future(take(open_reader(settings).follow([PODS], from_beginning=True), 20)) for _ in range(3)
        ]
        for number in range(20):
            await publisher.publish(pod("a", b"%d" % number))
        for records in await asyncio.gather(*followers):
            assert [record.value for record in records] == [b"%d" % number for number in range(20)]


async def test_a_follower_that_is_closed_lets_go_of_the_log(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings)
    async with a_publisher(settings.embedded) as publisher:
        await publisher.publish(pod("a", b"1"))
        async with aclosing(open_reader(settings).follow([PODS], from_beginning=True)) as records:
            await take(records, 1)
    assert registry.held(settings.embedded) is None


async def test_the_state_of_a_large_site_is_whole(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings)
    async with a_publisher(settings.embedded) as publisher:
        await publisher.publish(*(pod(f"p{number}", b"x" * 2000) for number in range(1500)))
        await publisher.publish(*(pod(f"p{number}", None) for number in range(0, 1500, 2)))
        in_memory = await open_reader(settings).state(PODS, "prod-a")
    from_file = await open_reader(settings).state(PODS, "prod-a")
    assert set(from_file) == {f"prod-a/pod/shop/p{number}" for number in range(1, 1500, 2)}
    assert in_memory == from_file


async def test_whether_kafka_is_there_is_asked_without_describing_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def answering(settings: KafkaSettings) -> AsyncIterator[object]:
        yield object()  # a client that has started, and can do nothing else

    monkeypatch.setattr("underhost.streams.kafka.connect.admin", answering)
    await KafkaReader(KafkaSettings(bootstrap_servers="k:9092")).check()


async def test_once_it_has_connected_files_that_cannot_be_read_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows in a running worker survives Kafka being away, and an unreadable password was bad input."""

    @asynccontextmanager
    async def started(settings: KafkaSettings) -> AsyncIterator[object]:
        client_arguments(settings)
        yield object()

    monkeypatch.setattr("underhost.streams.kafka.connect.admin", started)
    password = tmp_path / "password"
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "underhost", "passwordFile": str(password)}
    reader = KafkaReader(KafkaSettings.model_validate({"bootstrapServers": "k:9092", "sasl": sasl}))
    with pytest.raises(InputError, match=f"^kafka.sasl.passwordFile: {password}: No such file or directory$"):
        await reader.check()
    password.write_text("secret")
    await reader.check()
    password.write_text("")
    with pytest.raises(Unreachable, match=f"^kafka.sasl.passwordFile: {password}: empty$"):
        await reader.check()
    password.write_text("rotated")
    await reader.check()
