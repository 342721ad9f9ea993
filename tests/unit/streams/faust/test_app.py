"""The Faust app: its settings, and what of Faust is kept from happening."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.workers.embedded import a_topic, an_app, running

from underhost.schemas.topics import PODS, TOPICS
from underhost.streams.faust.app import broker_url, build_app, declare
from underhost.streams.faust.fetching import CarefulFetches
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings


def settings(folder: Path, **kafka: Any) -> Settings:
    return Settings(kafka=KafkaSettings(embedded=folder / "log.db", **kafka))


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ("127.0.0.1:9092", "kafka://127.0.0.1:9092"),
        ("a:9092, b:9092", "kafka://a:9092;kafka://b:9092"),
        ("2001:db8::1,[2001:db8::2]:9092", "kafka://[2001:db8::1];kafka://[2001:db8::2]:9092"),
    ],
)
def test_bootstrap_servers_are_the_broker(servers: str, url: str) -> None:
    assert broker_url(KafkaSettings(bootstrap_servers=servers)) == url


@pytest.mark.parametrize("servers", ["127.0.0.1:9092", None], ids=["kafka", "embedded"])
def test_the_consumer_of_every_transport_fetches_with_care(tmp_path: Path, servers: str | None) -> None:
    app = build_app(settings(tmp_path, bootstrap_servers=servers), app_id="t")
    assert issubclass(app.transport.Consumer, CarefulFetches)


@pytest.mark.parametrize(("servers", "doubt"), [("127.0.0.1:9092", True), (None, False)], ids=["kafka", "embedded"])
def test_only_a_consumer_of_a_group_can_be_in_doubt(tmp_path: Path, servers: str | None, doubt: bool) -> None:
    app = build_app(settings(tmp_path, bootstrap_servers=servers), app_id="t")
    assert (app.membership.doubt() is not None) is doubt


def test_without_servers_the_broker_is_the_embedded_file(tmp_path: Path) -> None:
    assert broker_url(KafkaSettings(embedded=tmp_path / "log.db")) == f"embedded://{tmp_path}/log.db?sync=normal"
    full = KafkaSettings(embedded=tmp_path / "log.db", durability="full")
    assert broker_url(full) == f"embedded://{tmp_path}/log.db?sync=full"


def test_the_app_is_configured_by_the_settings(tmp_path: Path) -> None:
    conf = build_app(settings(tmp_path, partitions=5, session_timeout=8), app_id="underhost-prod").conf
    assert (conf.id, conf.topic_partitions, conf.broker_session_timeout) == ("underhost-prod", 5, 8.0)
    assert conf.broker_heartbeat_interval == 1.0
    assert (conf.web_enabled, conf.table_standby_replicas) == (False, 0)
    assert str(conf.consumer_auto_offset_reset) == "earliest"


def test_every_topic_is_declared_with_raw_keys_and_values(tmp_path: Path) -> None:
    app = build_app(settings(tmp_path), app_id="t")
    declared = [declare(app, topic) for topic in TOPICS]
    assert [topic.get_topic_name() for topic in declared] == [topic.name for topic in TOPICS]
    assert {(topic.key_serializer, topic.value_serializer, topic.internal) for topic in declared} == {
        ("raw", "raw", False)
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"a/pod/shop/db-0", b"{}"), (b"a/pod/shop/db-0", None), (None, b""), (b"\xff", b"\xff")],
    ids=["a record", "a tombstone", "no key", "no text"],
)
async def test_an_agent_is_handed_a_record_as_it_is(tmp_path: Path, key: bytes | None, value: bytes | None) -> None:
    message: Any = SimpleNamespace(key=key, value=value, headers=[("ce_id", b"1")])
    app = build_app(settings(tmp_path), app_id="t")
    event = await declare(app, PODS).decode(message, propagate=True)
    assert (event.key, event.value, event.headers, event.message) == (key, value, {"ce_id": b"1"}, message)
    assert event.app is app


def test_no_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = build_app(settings(tmp_path), app_id="t")
    asyncio.run(app.on_first_start())
    assert list(tmp_path.iterdir()) == []


async def test_what_an_agent_raises_is_told(tmp_path: Path) -> None:
    app = build_app(settings(tmp_path), app_id="t")
    told: list[BaseException] = []
    app.on_failure = told.append

    async def agent(stream: Any) -> None:
        """An agent that is never started."""

    made = app.agent(declare(app, PODS), name="a")(agent)
    error = ZeroDivisionError("a bug")
    await made._on_error(made, error)
    assert told == [error]


async def test_an_end_that_fails_at_the_consumer_ends_its_agents_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = an_app(tmp_path / "log.db")
    begun, ended = asyncio.Event(), asyncio.Event()

    async def take(stream: Any) -> None:
        try:
            begun.set()
            await stream.noack().events().__anext__()
        finally:
            ended.set()

    def fail(partitions: object) -> None:
        raise AssertionError("no partition of Faust's")

    app.agent(a_topic(app, "orders"), name="take")(take)
    async with asyncio.timeout(60):
        async with running(app):
            await begun.wait()
            app.consumer.pause_partitions = fail
        await ended.wait()
    assert "the consumer cannot be stopped in order" in caplog.text


async def test_changes_of_tables_are_no_brake(tmp_path: Path) -> None:
    assert build_app(settings(tmp_path), app_id="t").producer.buffer.max_messages == 5000
