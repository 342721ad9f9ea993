"""Findings as people get them: through the real Alertmanager, to a webhook of theirs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fakes.receiver import Receiver
from support.processes.alerting import AlertmanagerProcess
from support.published import RESOLVED, SHARED

from underhost.agents.alerts.alerting import Alerting
from underhost.schemas.records import FindingEvent
from underhost.streams.settings.alerting import AlertingSettings

pytestmark = pytest.mark.real

REPEAT = 1.0
"""Seconds between repetitions: 60 by default, so ten stand for ten minutes. Alertmanager has to notify within one."""


@pytest.fixture
async def alertmanager(people: Receiver, tmp_path: Path) -> AsyncIterator[AlertmanagerProcess]:
    """Started."""
    process = AlertmanagerProcess(tmp_path / "alertmanager", people.url)
    await asyncio.to_thread(process.start)
    yield process
    process.stop()


class Messages(Counter[str]):
    """Results of messages, and a way to wait for more of them."""

    def __init__(self) -> None:
        super().__init__()
        self._more = asyncio.Condition()

    def add(self, receiver: str, result: str) -> None:
        """One more."""
        self[result] += 1
        asyncio.get_running_loop().create_task(self._tell())

    async def more(self, result: str, count: int) -> None:
        """Wait for this many more of a result."""
        wanted = self[result] + count
        async with asyncio.timeout(60), self._more:
            await self._more.wait_for(lambda: self[result] >= wanted)

    async def _tell(self) -> None:
        async with self._more:
            self._more.notify_all()


@asynccontextmanager
async def alerting(url: str, messages: Messages) -> AsyncIterator[Callable[[FindingEvent], None]]:
    def fail(error: BaseException) -> None:
        raise error

    running = Alerting(AlertingSettings(alertmanagers=(url,), repeat=REPEAT), messages.add, fail, share=200)
    running.start([])
    yield lambda event: running.observe(event.site, event)
    await running.stop()


def told(people: Receiver) -> list[tuple[str, list[str]]]:
    """(status, the findings) of each notification."""
    return [
        (body["status"], [alert["labels"]["finding_id"] for alert in body["alerts"]]) for _, _, body in people.requests
    ]


async def test_a_finding_fires_once_however_often_it_is_repeated_and_resolves_once(
    people: Receiver, alertmanager: AlertmanagerProcess
) -> None:
    messages = Messages()
    async with alerting(alertmanager.url, messages) as observe:
        observe(SHARED)
        (notification,) = await people.requested(1)
        await messages.more("sent", 6)
        observe(RESOLVED)
        await people.requested(2)
        await messages.more("sent", 4)
    assert told(people) == [("firing", ["9f2c"]), ("resolved", ["9f2c"])]
    alert: dict[str, Any] = notification["alerts"][0]
    assert alert["startsAt"] == "2026-11-21T03:00:00Z"
    assert alert["annotations"]["summary"] == "db-0 and db-1 share esx-3."
    assert messages.keys() == {"sent"}


async def test_an_alertmanager_that_was_away_for_ten_repetitions_misses_nothing(
    people: Receiver, alertmanager: AlertmanagerProcess
) -> None:
    brief = msgspec.structs.replace(SHARED, id="b1", site="brief")
    messages = Messages()
    async with alerting(alertmanager.url, messages) as observe:
        observe(SHARED)
        await people.requested(1)
        await asyncio.to_thread(alertmanager.remember)
        await asyncio.to_thread(alertmanager.stop)
        observe(msgspec.structs.replace(SHARED, id="a2", site="other"))
        observe(brief)
        await messages.more("failed", 5)
        observe(RESOLVED)
        observe(msgspec.structs.replace(brief, state="resolved", updated_at="2026-11-21T03:04:00.000Z"))
        await messages.more("failed", 5)
        await asyncio.to_thread(alertmanager.start)
        await people.requested(5)
    assert told(people)[0] == ("firing", ["9f2c"])
    assert sorted(told(people)[1:5]) == [
        ("firing", ["a2"]),
        ("firing", ["b1"]),
        ("resolved", ["9f2c"]),
        ("resolved", ["b1"]),
    ], "what opened, what ended, and what did both while it was away, each once"


async def test_an_alert_ends_by_itself_where_nobody_repeats_it(
    people: Receiver, alertmanager: AlertmanagerProcess
) -> None:
    async with alerting(alertmanager.url, Messages()) as observe:
        observe(SHARED)
        await people.requested(1)
    await people.requested(2)
    assert told(people) == [("firing", ["9f2c"]), ("resolved", ["9f2c"])]
