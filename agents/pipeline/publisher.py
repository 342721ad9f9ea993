"""How the agents publish: derived records and dead letters, counted, and told to whoever looks on.

In: records. Out: the same, acknowledged, one by one or in batches; then metrics and `on_event`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from underhost.agents.pipeline.metrics import Metrics
from underhost.streams.ports import Outgoing, Publisher, Record
from underhost.streams.publish import dead_letter, publish_until_taken
from underhost.streams.watching.records import LARGEST, deliverable

STAGE = "agents"
"""Of dead letters of records that the agents have made."""

log = logging.getLogger(__name__)


class AgentPublisher:
    """A publisher that counts, and tells `on_event` of every record once it is acknowledged."""

    def __init__(self, publisher: Publisher, metrics: Metrics, on_event: Callable[[Outgoing], None] | None) -> None:
        self._publisher, self._metrics, self._on_event = publisher, metrics, on_event

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`. What no broker takes becomes a dead letter: it would hold up all records after it."""
        records = tuple(deliverable(record, STAGE) for record in records)
        await self._publisher.publish(*records)
        for topic, count in Counter(record.topic.short for record in records).items():
            self._metrics.published.labels(topic).inc(count)
        if self._on_event is not None:
            for record in records:
                self._on_event(record)

    async def dead_letter(self, message: Any, stage: str, error: BaseException) -> None:
        """Put a Faust message into dead-letters: a digest of it, its origin in headers.

        The stream waits until it is written, so that no record is lost unseen.
        """
        headers = message.headers.items() if hasattr(message.headers, "items") else message.headers or ()
        origin = Record(
            message.topic,
            message.partition,
            message.offset,
            int(message.timestamp * 1000),
            message.key,
            None if message.value is None else message.value[:LARGEST],
            tuple((name, bytes(value)) for name, value in headers),
        )
        log.error("%s/%d@%d goes to dead-letters: %s", origin.topic, origin.partition, origin.offset, error)
        self._metrics.dead_letters.labels(stage).inc()
        await publish_until_taken(self, [dead_letter(origin, stage, error)], "dead letters")


class Outbox:
    """Records of several callers, each of which waits for its own.

    What comes while one batch is under way becomes the next one.

    Publishes in the order of the calls. `what` names its records, for the log.
    """

    def __init__(self, publisher: Publisher, what: str) -> None:
        self._publisher, self._what = publisher, what
        self._waiting: list[tuple[Outgoing, asyncio.Future[None]]] = []
        self._under_way: list[tuple[Outgoing, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    def publish(self, record: Outgoing) -> "asyncio.Future[None]":
        """Done once the record is acknowledged, however long that takes; fails of what is a bug of the publisher.

        Cancelled where the outbox is closed before that; the record may have been published all the same.
        """
        published: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, published))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain(), name=f"outbox of {self._what}")
        return published

    async def close(self) -> None:
        """Publish nothing any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for _, published in (*self._under_way, *self._waiting):
            published.cancel()
        self._waiting, self._under_way = [], []

    async def _drain(self) -> None:
        while self._waiting:
            self._under_way, self._waiting = self._waiting, []
            publishing = publish_until_taken(self._publisher, [record for record, _ in self._under_way], self._what)
            [error] = await asyncio.gather(publishing, return_exceptions=True)
            for _, published in self._under_way:
                if published.done():
                    continue
                if error is None:
                    published.set_result(None)
                elif isinstance(error, asyncio.CancelledError):
                    published.cancel()
                else:
                    published.set_exception(error)
        self._under_way, self._task = [], None
