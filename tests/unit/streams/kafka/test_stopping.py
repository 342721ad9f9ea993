"""A producer that stops: what waits is sent first, and what Kafka does not take is given up without an error."""

import asyncio
from types import SimpleNamespace

import pytest

from underhost.streams.faust.app import build_app
from underhost.streams.kafka import transport
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings


class Driver:
    """aiokafka's producer with something that waits: what became of it, in order."""

    def __init__(self, *, kafka_answers: bool) -> None:
        self.seen: list[str] = []
        self._kafka_answers = kafka_answers
        self._sender, self.client = (
            SimpleNamespace(close=lambda what=what: self._close(what)) for what in ("sender", "client")
        )

    async def stop(self) -> None:
        if not self._kafka_answers:
            await asyncio.Event().wait()
        self.seen.append("sent")

    async def _close(self, what: str) -> None:
        self.seen.append(f"{what} closed")


@pytest.mark.parametrize(
    ("kafka_answers", "seen"),
    [
        pytest.param(True, ["sent"], id="it is sent"),
        pytest.param(False, ["sender closed", "client closed"], id="Kafka does not answer"),
    ],
)
async def test_what_waits_is_sent_before_the_end_or_given_up_without_an_error(
    kafka_answers: bool, seen: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SEND_WITHIN", 0.2)
    app = build_app(Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1")), app_id="stopping")
    producer = app._new_producer()
    producer._producer = driver = Driver(kafka_answers=kafka_answers)
    await producer.stop()
    assert driver.seen == seen
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
