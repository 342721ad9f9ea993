"""One webhook that is told of every change of a finding: a CloudEvent in structured mode, one POST each, in order.

In: finding events, each with what to call once it is dealt with. Out: POSTs, repeated until they are taken. What waits
is held in memory and bounded. A record that is not dealt with is not acknowledged, so after a restart it comes again;
the open findings are told once more, too, with the same event id, so receivers can tell.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from underhost.agents.alerts import delivery
from underhost.schemas.errors import Refused, Unreachable
from underhost.schemas.keys import finding_key
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.derived import event_id

log = logging.getLogger(__name__)

CLOUD_EVENT = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
MOST = 10_000
"""Events that wait; when more come, the oldest are dropped, and counted."""
Done = Callable[[], None]
"""Called once an event was taken, refused or dropped."""

_encoder = msgspec.json.Encoder(order="sorted")


class Webhook:
    """Tells one URL. `counted` is told the result of each event: sent, refused, failed or dropped.

    `trusted` see `delivery.new_session`.
    """

    def __init__(
        self,
        url: str,
        *,
        headers_file: Path | None,
        counted: Callable[[str], None],
        trusted: ssl.SSLContext | None,
    ) -> None:
        self._url, self._headers_file, self._counted, self._trusted = url, headers_file, counted, trusted
        self._queue: deque[tuple[FindingEvent, Done]] = deque()
        self._filled = asyncio.Event()

    def observe(self, event: FindingEvent, done: Done = lambda: None) -> None:
        """A record of `violations`."""
        if len(self._queue) >= MOST:
            self._queue.popleft()[1]()
            self._counted("dropped")
        self._queue.append((event, done))
        self._filled.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause = 0.0
        async with delivery.new_session(self._trusted) as session:
            while True:
                await self._filled.wait()
                first = event, _ = self._queue[0]
                try:
                    headers = delivery.read_headers(self._headers_file)
                    await delivery.post(session, self._url, {**headers, **CLOUD_EVENT}, cloud_event(event))
                except Unreachable as error:
                    pause = delivery.next_pause(pause)
                    self._counted("failed")
                    log.warning("a webhook is called again in %.0f s: %s", pause, error)
                    await asyncio.sleep(pause)
                    continue
                except Refused as error:
                    self._counted("refused")
                    log.error("a webhook refuses finding %s: %s", event.id, error)
                else:
                    self._counted("sent")
                pause = 0.0
                self._end(first)

    def _end(self, first: tuple[FindingEvent, Done]) -> None:
        if self._queue and self._queue[0] is first:  # it may have been dropped while it was sent
            self._queue.popleft()[1]()
        if not self._queue:
            self._filled.clear()


def cloud_event(event: FindingEvent) -> bytes:
    """The event as CloudEvents JSON; its id and type are those of the record in the topic."""
    return _encoder.encode(
        {
            "specversion": "1.0",
            "id": event_id(finding_key(event.site, event.id), _encoder.encode(event)),
            "source": f"/sites/{event.site}",
            "type": VIOLATIONS.event_type,
            "time": event.updated_at,
            "datacontenttype": "application/json",
            "subject": event.id,
            "data": event,
        }
    )
