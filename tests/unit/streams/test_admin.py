"""Topics are made and checked before a worker starts; a Kafka that does not answer is one line, soon."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.topics import NODES, PODS, TOPICS
from underhost.streams.admin import describe_topics, ensure_topics
from underhost.streams.embedded import registry
from underhost.streams.faust.app import build_app
from underhost.streams.kafka import connect as kafka
from underhost.streams.ports import Outgoing
from underhost.streams.publish import FaustPublisher, KafkaPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

Action = Callable[[KafkaSettings], Awaitable[object]]


async def read_state(settings: KafkaSettings) -> object:
    """Ask for a state."""
    return await open_reader(settings).state(PODS, "default")


async def follow(settings: KafkaSettings) -> object:
    """Begin to follow."""
    return await anext(open_reader(settings).follow([PODS]))


async def publish(settings: KafkaSettings) -> object:
    """Open a publisher."""
    assert settings.bootstrap_servers is not None
    async with KafkaPublisher(settings, 8):
        return None


EVERY_WAY = [
    pytest.param(ensure_topics, id="ensure_topics"),
    pytest.param(describe_topics, id="describe_topics"),
    pytest.param(read_state, id="state"),
    pytest.param(follow, id="follow"),
    pytest.param(publish, id="publish"),
]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else takes it, and refuses connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
async def silent_port() -> AsyncIterator[int]:
    """A server that accepts connections and never says a word."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.mark.parametrize("action", EVERY_WAY)
async def test_kafka_that_refuses_connections_is_unreachable_in_one_line(action: Action, closed_port: int) -> None:
    with pytest.raises(Unreachable) as error:
        await action(KafkaSettings(bootstrap_servers=f"127.0.0.1:{closed_port}"))
    assert str(error.value) == f"Kafka at 127.0.0.1:{closed_port} does not answer"


@pytest.mark.parametrize("action", EVERY_WAY)
async def test_kafka_that_says_nothing_is_unreachable_after_a_deadline(
    action: Action, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kafka.CONNECT_SECONDS <= 15, "the contract's deadline"
    monkeypatch.setattr(kafka, "CONNECT_SECONDS", 0.2)
    with pytest.raises(Unreachable) as error:
        await action(KafkaSettings(bootstrap_servers=f"127.0.0.1:{silent_port}"))
    assert str(error.value) == f"Kafka at 127.0.0.1:{silent_port} does not answer"


async def test_an_apps_publisher_says_the_same_in_one_line(closed_port: int) -> None:
    settings = Settings(kafka=KafkaSettings(bootstrap_servers=f"127.0.0.1:{closed_port}"))
    app = build_app(settings, app_id="t")
    with pytest.raises(Unreachable) as error:
        await FaustPublisher(app).publish(Outgoing(PODS, "default/pod/a/b", b"{}", "1"))
    assert str(error.value).startswith("Kafka does not take records: KafkaConnectionError")
    assert "\n" not in str(error.value)


async def test_every_fault_of_the_partitions_is_named_at_once_and_nothing_is_created(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db", partitions=4)
    await ensure_topics(settings, [NODES, PODS])
    with pytest.raises(InputError) as error:
        await ensure_topics(settings.model_copy(update={"partitions": 8}))
    assert error.value.faults == tuple(
        f"{settings.embedded}: topic {topic.name} has 4 partitions, 8 are configured (kafka.partitions)"
        for topic in (NODES, PODS)
    )
    described = await describe_topics(settings)
    assert [one.name for one in described if one.partitions] == [NODES.name, PODS.name]


async def test_a_topic_keeps_the_configuration_of_the_table(tmp_path: Path) -> None:
    settings = KafkaSettings(embedded=tmp_path / "log.db")
    await ensure_topics(settings)
    assert registry.held(settings.embedded) is None, "the file is free for the worker"
    log = await registry.acquire(settings.embedded)
    assert log.topics == {topic.name: topic.config for topic in TOPICS}
    await registry.release(log)
