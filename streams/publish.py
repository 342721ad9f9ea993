"""Keyed, ordered, acknowledged sends to the topics, and the making of dead letters.

In: `Outgoing` records. Out: records in the partition of their site, with CloudEvents headers, acknowledged. Watchers,
agents and sinks publish through `FaustPublisher`, which serves Kafka and the embedded log alike; commands that have no
worker use `KafkaPublisher`. A publisher raises when the broker is away; `publish_until_taken` tries again.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, cast

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from faust.exceptions import FaustError

from underhost.schemas.errors import BackendError, KafkaAway
from underhost.schemas.keys import site_of
from underhost.schemas.topics import DEAD_LETTERS
from underhost.streams.cloudevents import cloud_event, event_time
from underhost.streams.kafka import connect as kafka
from underhost.streams.kafka.security import client_arguments
from underhost.streams.kafka.sending import send_together
from underhost.streams.log import structlog
from underhost.streams.partition import partition_of
from underhost.streams.ports import Outgoing, ProducerRecord, Publisher, Record
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.timing import Backoff, Timing

log = structlog.get_logger("underhost.publish")

SITE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
ERROR_LENGTH = 1000
"""Characters of an error that a header keeps."""
RETRY = 1.0
"""Seconds between attempts to publish."""


async def publish_until_taken(
    publisher: Publisher, records: Sequence[Outgoing], what: str, timing: Timing | None = None
) -> None:
    """Publish, and try again for as long as the broker is away: a record that is given up here is lost.

    `what` names the records in the log. Attempts are `RETRY` seconds apart, or back off as `timing` says.
    """
    backoff = None if timing is None else Backoff(timing)
    sleep = asyncio.sleep if timing is None else timing.sleep
    while True:
        try:
            return await publisher.publish(*records)
        except BackendError as error:
            delay = RETRY if backoff is None else backoff.next()
            log.warning("not published yet", what=what, records=len(records), reason=str(error), delay=round(delay, 1))
        await sleep(delay)


def dead_letter(origin: Record, stage: str, error: BaseException | str) -> Outgoing:
    """The record for `dead-letters`: the original key, and a digest; headers say where it came from and why.

    The bytes themselves may hold a secret, and are published only where `kafka.keepUnreadable` says so. A key that is
    not UTF-8 keeps its bytes; a missing key becomes an empty one.
    """
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    headers = {
        "origin_topic": origin.topic.encode(),
        "origin_partition": str(origin.partition).encode(),
        "origin_offset": str(origin.offset).encode(),
        "origin_bytes": str(len(origin.value or b"")).encode(),
        "stage": stage.encode(),
        "error": text[:ERROR_LENGTH].encode("utf-8", "replace"),
    }
    key = (origin.key or b"").decode("utf-8", "surrogateescape")
    event_id = f"{origin.topic}/{origin.partition}/{origin.offset}"
    digest = None if origin.value is None else b"sha256:" + hashlib.sha256(origin.value).hexdigest().encode()
    return Outgoing(DEAD_LETTERS, key, digest, event_id, headers, original=origin.value)


def partition_for(record: Outgoing, count: int) -> int:
    """The partition of a record's site; a dead letter whose key names no site goes to the partition of its origin."""
    site = site_of(record.key)
    if record.topic is DEAD_LETTERS and not ("/" in record.key and SITE.fullmatch(site)):
        origin = record.headers.get("origin_partition", b"0")
        return int(origin) % count if origin.isdigit() else 0
    return partition_of(site, count)


def _prepared(records: Iterable[Outgoing], count: int, keep_unreadable: bool) -> Iterator[ProducerRecord]:
    """The records for topics of `count` partitions; of dead letters the originals, if asked."""
    time = event_time(datetime.now(UTC))
    for record in records:
        value = record.value
        if record.original is not None and keep_unreadable:
            value = record.original
        site = site_of(record.key)
        headers = cloud_event(record.topic, site if SITE.fullmatch(site) else "", record.event_id, time)
        headers += record.headers.items()
        key = record.key.encode("utf-8", "surrogateescape")
        partition = partition_for(record, count)
        yield ProducerRecord(record.topic.name, key, value, partition, headers, record.on_disk)


class FaustPublisher:
    """Publishes through an app's producer, whatever its transport."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def unpublishable(self, site: str) -> str:
        """Why nothing of this site can be published, as the brokers see it; "" where it can."""
        try:
            producer = await self._app.maybe_start_producer()
            return str(await producer.unpublishable(partition_of(site, self._app.conf.topic_partitions)))
        except (KafkaError, FaustError, OSError) as error:
            return kafka.reason(error)

    async def publish(self, *records: Outgoing) -> None:
        """Send in order and return once every record is acknowledged.

        Raises Unreachable when Kafka does not answer, Refused when the embedded log cannot be written.
        """
        try:
            producer = await self._app.maybe_start_producer()
            await producer.send_together(_prepared(records, self._app.conf.topic_partitions, self._app.keep_unreadable))
        except (KafkaError, FaustError, OSError) as error:
            raise KafkaAway(f"Kafka does not take records: {kafka.reason(error)}") from error


class KafkaPublisher:
    """Publishes to Kafka without a Faust app. Use as an async context manager."""

    def __init__(self, settings: KafkaSettings, partitions: int) -> None:
        self._settings, self._partitions = settings, partitions
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "KafkaPublisher":
        client = AIOKafkaProducer(**client_arguments(self._settings), acks="all", enable_idempotence=True)
        self._producer = await self._stack.enter_async_context(kafka.started(self._settings, client))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def publish(self, *records: Outgoing) -> None:
        """Send in order and return once every record is acknowledged. Raises Unreachable."""

        async def send(record: ProducerRecord) -> asyncio.Future[Any]:
            topic, key, value, partition, headers, _ = record
            sent = await self._producer.send(topic, value, key=key, partition=partition, headers=headers)
            return cast("asyncio.Future[Any]", sent)

        with kafka.answering(self._settings.bootstrap_servers or ""):
            await send_together(send, _prepared(records, self._partitions, self._settings.keep_unreadable))
