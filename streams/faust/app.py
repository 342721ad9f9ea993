"""The Faust application: settings in, an app out, with nothing started.

Topics are raw bytes in both directions. Agents decode records themselves, so that a bad record becomes a dead letter
and not an agent that crashes again and again.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

import faust
from faust.assignor import PartitionAssignor
from faust.sensors import SensorDelegate

from underhost.schemas.topics import Topic
from underhost.streams.embedded.transport import embedded_url, register
from underhost.streams.faust.assignor import SiteAssignor
from underhost.streams.faust.commits import ChangesUnderWay
from underhost.streams.faust.events import EventStream, StreamEvent
from underhost.streams.faust.membership import Membership
from underhost.streams.faust.queue import EventQueue
from underhost.streams.faust.raw import RawSchema
from underhost.streams.faust.recovering import QuickTables
from underhost.streams.faust.table import ChangelogTable
from underhost.streams.kafka.security import credentials
from underhost.streams.partition import partition_of
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

log = logging.getLogger(__name__)

COMMIT_INTERVAL = 1.0
"""Seconds between commits of offsets. After a kill the records since then are read again; agents are idempotent."""

REQUEST = 30.0
"""Seconds that the leader of a partition may wait for its followers before the records are sent again."""

BUFFERED = 5000
"""Changes of tables that may wait to be sent before the streams are held back."""

BATCH = 256 * 1024
"""Bytes of a request for each partition: a pod of real size has six thousand, and a broker takes a million."""


class _NoSensors(SensorDelegate):  # type: ignore[misc]
    """No sensors. Faust's own monitor measures each step of each record: nobody reads that, and it costs a tenth."""

    def add(self, sensor: Any) -> None:
        """Add nothing."""

    def on_rebalance_start(self, app: Any) -> dict[None, None]:
        """One empty answer: Faust warns of a rebalance to which no sensor answers."""
        return {None: None}


class UnderhostApp(faust.App):  # type: ignore[misc]
    """Faust's app, but that it makes no folders and reports an agent that raises instead of restarting it silently.

    Attributes:
        membership: whether the consumer group still counts on this worker.
        doubt: why nothing of ours may be sent now, None while it may.
        changes: the changes of tables that their changelogs have not acknowledged.
        keep_unreadable: whether dead letters hold the original bytes.
        on_failure: called with what an agent raised, which is always a bug (agents handle bad records), and with
            errors from which the consumer does not recover.
    """

    membership = Membership()
    doubt: Callable[[], str | None] = staticmethod(lambda: None)
    keep_unreadable = False
    on_failure: Callable[[BaseException], None] | None = None
    on_partitions_revoked: Any
    on_rebalance_complete: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sensors = _NoSensors(self)
        self.changes = ChangesUnderWay()
        # Faust's are shared by all apps: they would hold every pipeline that this process has had.
        self.on_partitions_revoked = self.on_partitions_revoked.clone()
        self.on_rebalance_complete = self.on_rebalance_complete.clone()

    def create_event(self, key: Any, value: Any, headers: Any, message: Any) -> Any:
        """Faust's, which looks in its settings for the class of events at each record, and they note each look."""
        return StreamEvent(self, key, value, headers, message)

    def FlowControlQueue(self, maxsize: int | None = None, *, clear_on_resume: bool = False) -> EventQueue:
        """The queue of a stream."""
        return EventQueue(maxsize, flow_control=self.flow_control, clear_on_resume=clear_on_resume)

    def fail(self, error: BaseException) -> None:
        """Report the error to `on_failure`."""
        if self.on_failure is not None:
            self.on_failure(error)

    def _create_directories(self) -> None:
        """Make none: tables are in memory and in their changelog topics."""

    def _new_transport(self) -> Any:
        urls = self.conf.broker_consumer
        if urls[0].scheme != "kafka":
            return super()._new_transport()
        # Imported here: a worker on the embedded log starts without the Kafka driver.
        from underhost.streams.kafka.transport import KafkaTransport

        return KafkaTransport(urls, self)

    async def _stop_consumer(self) -> None:
        """Faust's; where it fails, everything else is ended all the same.

        Agents that are left alive start again as often as they are cancelled: the process would never end.
        """
        try:
            await super()._stop_consumer()
        except Exception:
            log.exception("the consumer cannot be stopped in order")

    async def _producer_flush(self, logger: Any) -> None:
        """Faust's; at the end it is left to the producer, whose wait is limited.

        What waits because of a doubt is given up: partitions are about to move, and the doubt ends after that.
        """
        if self._producer is not None and self.doubt() is not None:
            self._producer.drop()
        if not self.should_stop:
            await super()._producer_flush(logger)

    def _new_producer(self) -> Any:
        """A producer with a larger buffer of table changes: at Faust's 100 each record waits for the one before it."""
        producer = super()._new_producer()
        producer.buffer.max_messages = BUFFERED
        return producer

    async def _on_agent_error(self, agent: Any, exc: BaseException) -> None:
        self.fail(exc)
        await super()._on_agent_error(agent, exc)


def broker_url(kafka: KafkaSettings) -> str:
    """Faust's URL of the broker: Apache Kafka where bootstrap servers are given, else the embedded log's file."""
    if kafka.bootstrap_servers:
        servers = filter(None, map(str.strip, kafka.bootstrap_servers.split(",")))
        places = (f"[{server}]" if server.count(":") > 1 and server[0] != "[" else server for server in servers)  # IPv6
        return ";".join(f"kafka://{server}" for server in places)
    register()
    return embedded_url(kafka.embedded, kafka.durability)


def build_app(settings: Settings, *, app_id: str, only: str | None = None) -> UnderhostApp:
    """The app, not started. `app_id` names the consumer group and prefixes the changelog topics.

    On Kafka, `only` is the site to whose partition the group is limited; None for a group that has all of them.
    """
    kafka = settings.kafka
    assignor: Any = PartitionAssignor
    if only is not None and kafka.bootstrap_servers:
        assignor = functools.partial(SiteAssignor, partition=partition_of(only, kafka.partitions))
    app = UnderhostApp(
        app_id,
        broker=broker_url(kafka),
        broker_credentials=credentials(kafka) if kafka.bootstrap_servers else None,
        store="memory://",
        Stream=EventStream,
        Table=ChangelogTable,
        TableManager=QuickTables,
        PartitionAssignor=assignor,
        autodiscover=False,
        topic_partitions=kafka.partitions,
        # `admin.py` makes the topics, with the replicas that they need. Faust's own for a leader among the workers has
        # one: with the broker that holds it, every start would wait for it.
        topic_allow_declare=not kafka.bootstrap_servers,
        topic_disable_leader=True,
        # A standby copy of a table costs as much memory as the table, and recovering a site takes a second.
        table_standby_replicas=0,
        processing_guarantee="at_least_once",
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=COMMIT_INTERVAL,
        broker_session_timeout=kafka.session_timeout,
        # A member learns from the answer to its heartbeat that another one has gone.
        broker_heartbeat_interval=min(1.0, kafka.session_timeout / 4),
        # How long a broker that does not answer is waited for is in `kafka/client.py`; this is for one that answers.
        producer_request_timeout=REQUEST,
        producer_max_batch_size=BATCH,
        stream_wait_empty=False,
        web_enabled=False,
        reply_create_topic=False,
    )
    app.keep_unreadable = kafka.keep_unreadable
    if kafka.bootstrap_servers:
        app.membership = Membership(kafka.session_timeout)
    return app


def declare(app: faust.App, topic: Topic) -> Any:
    """One topic of ours as Faust's: raw keys and values, tombstones as None. The program creates it, not Faust."""
    return app.topic(
        topic.name,
        schema=RawSchema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"),
        partitions=app.conf.topic_partitions,
        allow_empty=True,
        internal=False,
    )
