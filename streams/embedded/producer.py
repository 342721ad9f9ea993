"""Faust's producer over the embedded log.

In: sends of agents, tables and publishers. Out: futures that resolve once the record is on disk.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from faust.transport import base
from faust.transport.producer import ProducerBuffer
from faust.types import TP, FutureMessage, RecordMetadata

from underhost.schemas.errors import BackendError, Refused
from underhost.streams.embedded import registry
from underhost.streams.embedded.log import Log
from underhost.streams.embedded.store import Headers
from underhost.streams.ports import ProducerRecord

CREATE_TIME = 0
"""RecordMetadata.timestamp_type: the timestamp is the producer's."""
AT_ONCE = 1000
"""Records between two checks whether the log has room."""


class Buffer(ProducerBuffer):  # type: ignore[misc]
    """Faust's buffer for the changes of tables, which here go straight into the log's next commit.

    Faust's own hands them on one by one, each in a turn of its task, and flushes by waiting for one after another.
    """

    producer: "Producer"

    def put(self, fut: FutureMessage) -> None:
        """Append at once. Raises Refused after a failed write."""
        message, log = fut.message, self.producer.embedded
        topic = message.channel.get_topic_name()
        if message.partition is None or log.partition_count(topic) is None:
            super().put(fut)  # `send` declares the topic, or chooses the partition
            return
        tp, milliseconds = TP(topic, message.partition), int((message.timestamp or time.time()) * 1000)
        written = log.append(tp, message.key, message.value, milliseconds, _headers(message.headers))
        written.add_done_callback(functools.partial(_resolve_message, fut, tp, milliseconds))

    async def wait_until_ebb(self) -> None:
        """Wait while too many records wait for a commit."""
        await self.producer.embedded.room()


def _resolve(sent: "asyncio.Future[Any]", tp: TP, milliseconds: int, offset: "asyncio.Future[int]") -> None:
    """Tell the sender what became of a record of the log."""
    if sent.done():
        return
    if offset.cancelled():
        sent.cancel()
    elif (error := offset.exception()) is not None:
        sent.set_exception(error)
        sent.exception()  # a sender that does not wait is told by the log itself
    else:
        sent.set_result(RecordMetadata(tp.topic, tp.partition, tp, offset.result(), milliseconds, CREATE_TIME))


def _resolve_message(message: FutureMessage, tp: TP, milliseconds: int, offset: "asyncio.Future[int]") -> None:
    _resolve(message, tp, milliseconds, offset)
    if message.message.callback and not offset.cancelled() and offset.exception() is None:
        message.message.callback(message)


def _headers(headers: Any) -> Headers:
    if not headers:
        return ()
    return tuple(headers) if isinstance(headers, list) else tuple(headers.items())


class Producer(base.Producer):  # type: ignore[misc]
    """Sends to the embedded log; every record is durable before its future resolves."""

    _opened: Log | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.buffer = Buffer(loop=self.loop, beacon=self.beacon)
        self.buffer.app, self.buffer.producer = self.app, self

    @property
    def embedded(self) -> Log:
        """The log. Raises Refused before the start."""
        if self._opened is None:
            raise Refused("the embedded log is not open")
        return self._opened

    async def on_start(self) -> None:
        """Open the log. Raises Refused when another process has it."""
        await super().on_start()
        self._opened = await self.transport.acquire()

    async def on_stop(self) -> None:
        """Write what is still buffered, then let go of the log."""
        try:
            await self.flush()
        finally:
            if self._opened is not None:
                await registry.release(self._opened)

    async def create_topic(
        self,
        topic: str,
        partitions: int,
        replication: int,
        *,
        config: Mapping[str, Any] | None = None,
        retention: Any = None,
        compacting: bool | None = None,
        deleting: bool | None = None,
        **options: Any,
    ) -> None:
        """Declare a topic. Raises InputError when it is there with another count of partitions."""
        settings = dict(config or {})
        policies = [name for name, given in (("compact", compacting), ("delete", deleting)) if given]
        if policies:
            settings.setdefault("cleanup.policy", ",".join(policies))
        if retention:
            seconds = retention.total_seconds() if hasattr(retention, "total_seconds") else float(retention)
            settings.setdefault("retention.ms", int(seconds * 1000))
        await self.embedded.create_topic(topic, partitions, settings)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[RecordMetadata]:
        """Append a record; the future resolves after COMMIT. An unknown topic is created, as a Kafka broker does."""
        log = self.embedded
        count = log.partition_count(topic)
        if count is None:
            count = self.app.conf.topic_partitions
            await log.create_topic(topic, count, {})
        await log.room()
        if partition is None:
            partition = self.transport.choose_partition(key, count)
        tp, milliseconds = TP(topic, partition), int((time.time() if timestamp is None else timestamp) * 1000)
        written = log.append(tp, key, value, milliseconds, _headers(headers))
        sent: asyncio.Future[RecordMetadata] = written.get_loop().create_future()
        written.add_done_callback(functools.partial(_resolve, sent, tp, milliseconds))
        return sent

    async def send_together(self, records: Iterable[ProducerRecord]) -> None:
        """Append records; return once all are on disk, in one commit if they are few."""
        log, milliseconds, count = self.embedded, int(time.time() * 1000), 0
        for topic, key, value, partition, headers, on_disk in records:
            if count % AT_ONCE == 0:
                await log.room()
            count += 1
            if topic not in log.topics:
                await log.create_topic(topic, self.app.conf.topic_partitions, {})
            log.put((topic, partition), key, value, milliseconds, tuple(headers), on_disk=on_disk)
        if count:
            await log.flush()

    def drop(self) -> None:
        """Nothing: what is sent is in the log at its next commit."""

    async def unpublishable(self, partition: int) -> str:
        """ "": the log is a file of this machine, and a write that fails says so."""
        return ""

    @property
    def has_room(self) -> bool:
        """Whether few records wait for a commit."""
        return self.embedded.has_room

    def put_change(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> bool:
        """Append a table's change; False, without doing anything, where the changelog is not declared yet.

        It is on disk before any offset that is committed later; nobody waits for it, so it makes no commit of its own.
        """
        log = self.embedded
        if topic not in log.topics:
            return False
        log.put((topic, partition), key, value, int(time.time() * 1000), at_leisure=True)
        return True

    async def send_and_wait(self, *args: Any, **options: Any) -> RecordMetadata:
        """Send, and return once the record is on disk."""
        return await (await self.send(*args, **options))

    async def flush(self) -> None:
        """Return once everything sent so far is on disk. Raises Refused after a failed write, but not during a stop."""
        if self._opened is None:
            return
        try:
            if self._opened.failure is None:
                await self.buffer.flush()
            await self._opened.flush()
        except BackendError:
            if not self.app.should_stop:
                raise

    def key_partition(self, topic: str, key: bytes | None) -> TP:
        """The partition a key belongs to."""
        count = self.embedded.partition_count(topic) or self.app.conf.topic_partitions
        return TP(topic, self.transport.choose_partition(key, count))

    def supports_headers(self) -> bool:
        """Headers are kept."""
        return True
