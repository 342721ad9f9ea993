"""A producer that stops: changes of tables go out first, and what cannot go is given up without an error."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from underhost.streams.faust.app import build_app
from underhost.streams.kafka import transport
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings


class Changelog:
    """Where changes go: what was handed to the driver, in order, and its end."""

    def __init__(self, *, takes: bool = True) -> None:
        self.seen: list[str] = []
        self._takes = takes

    async def publish_message(self, change: Any, *, wait: bool) -> None:
        await (asyncio.sleep(0) if self._takes else asyncio.Event().wait())
        self.seen.append(change.message.key)

    async def stop(self) -> None:
        self.seen.append("the driver stops")


async def stopped(changelog: Changelog) -> None:
    """Three changes wait when the producer is told to stop."""
    app = build_app(Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1")), app_id="stopping")
    producer = app._new_producer()
    producer._producer = SimpleNamespace(stop=changelog.stop)
    producer.add_dependency(producer.buffer)
    await producer.buffer.start()
    for key in ("first", "second", "third"):
        producer.buffer.put(SimpleNamespace(message=SimpleNamespace(channel=changelog, key=key)))
    await producer.stop()


async def test_changes_that_wait_are_sent_before_the_end(caplog: pytest.LogCaptureFixture) -> None:
    changelog = Changelog()
    await stopped(changelog)
    assert changelog.seen == ["first", "second", "third", "the driver stops"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_kafka_does_not_take_is_given_up_without_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SEND_WITHIN", 0.2)
    changelog = Changelog(takes=False)
    await stopped(changelog)
    assert changelog.seen == ["the driver stops"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
