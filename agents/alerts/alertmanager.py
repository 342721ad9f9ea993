"""One Alertmanager kept up to date with the open findings, through its API v2.

In: finding events. Out: POSTs of alerts, at once when something is new, and all again at every repetition.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from underhost.agents.alerts import delivery
from underhost.agents.alerts.alert import alert
from underhost.agents.alerts.notification_log import Due, NotificationLog
from underhost.schemas.errors import Refused, Unreachable
from underhost.schemas.records import FindingEvent
from underhost.streams.derived import rfc3339

log = logging.getLogger(__name__)

PATH = "/api/v2/alerts"
JSON = {"Content-Type": "application/json"}
AT_ONCE = 500
"""Alerts in one POST."""
HALVED = 200
"""POSTs that are halved in one message at most: some twenty alerts are found that are at fault, each by nine."""
GATHER = 0.2
"""Seconds that a new finding waits for others of the same event: one message, and one notification of the group."""


class Alertmanager:
    """Tells one Alertmanager. `counted` is told the result of each message: sent, refused (in part) or failed.

    `trusted` see `delivery.new_session`.
    """

    def __init__(
        self,
        url: str,
        *,
        repeat: float,
        link: str,
        runbooks: str,
        headers_file: Path | None,
        counted: Callable[[str], None],
        trusted: ssl.SSLContext | None,
    ) -> None:
        self.book = NotificationLog(repeat)
        self._url, self._repeat, self._link, self._runbooks = url.rstrip("/") + PATH, repeat, link, runbooks
        self._headers_file, self._counted, self._trusted = headers_file, counted, trusted
        self._new = asyncio.Event()

    def observe(self, event: FindingEvent) -> None:
        """A record of `violations`."""
        if self.book.observe(event, time.monotonic()):
            self._new.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause = 0.0
        async with delivery.new_session(self._trusted) as session:
            while True:
                await self._wait(pause or self._repeat, only_time=bool(pause))
                due = self.book.due(time.monotonic())
                if not due:
                    continue
                alerts = self._alerts(due)
                try:
                    refused = await self._tell(session, alerts)
                except Unreachable as error:
                    pause = min(self._repeat, delivery.next_pause(pause))
                    self._counted("failed")
                    log.warning("alerts are told again in %.0f s: %s", pause, error)
                    continue
                self._counted("refused" if refused else "sent")
                pause = 0.0
                self.book.told(due, time.monotonic())  # what is refused would be refused for ever

    async def _tell(self, session: aiohttp.ClientSession, alerts: list[dict[str, Any]]) -> bool:
        """POST the alerts; whether any were refused, which is logged. Raises Unreachable.

        What is refused for its body is halved, down to the alert that is at fault: Alertmanager itself takes the good
        ones beside one that is not valid, but takes nothing of what it cannot parse, and a proxy nothing of what is
        too large. The halves come last, so that what is taken as it is does not wait for them.
        """
        parts = deque(alerts[at : at + AT_ONCE] for at in range(0, len(alerts), AT_ONCE))
        halved, refused, first = 0, 0, ""
        while parts:
            part = parts.popleft()
            headers = delivery.read_headers(self._headers_file)
            try:
                await delivery.post(session, self._url, {**headers, **JSON}, msgspec.json.encode(part))
            except Refused as error:
                if isinstance(error, delivery.BodyRefused) and len(part) > 1 and halved < HALVED:
                    halved += 1
                    middle = len(part) // 2
                    parts += part[:middle], part[middle:]
                    continue
                refused += len(part)
                first = first or f"that of finding {part[0]['labels']['finding_id']}: {error}"
        if refused:
            log.error("%d of %d alerts were refused, first %s", refused, len(alerts), first)
        return bool(refused)

    async def _wait(self, seconds: float, *, only_time: bool) -> None:
        """For something new, or for the next repetition."""
        if only_time:
            await asyncio.sleep(seconds)
        else:
            try:
                async with asyncio.timeout(seconds):
                    await self._new.wait()
                await asyncio.sleep(GATHER)
            except TimeoutError:
                pass
        self._new.clear()

    def _alerts(self, due: Due) -> list[dict[str, Any]]:
        until = rfc3339(time.time() + due.ends_in)
        firing = [alert(event, until, self._link, self._runbooks) for event in due.firing]
        return firing + [alert(event, event.updated_at, self._link, self._runbooks) for event in due.resolved]
