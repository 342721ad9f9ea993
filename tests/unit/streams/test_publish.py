"""Publishing: order, acknowledgements, partitions and headers, over a producer that is told what to do."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaTimeoutError
from faust.exceptions import ProducerSendError

from underhost.schemas.errors import Refused, UnderhostError, Unreachable
from underhost.schemas.topics import DEAD_LETTERS, NODES, PODS, VIOLATIONS
from underhost.streams.kafka.sending import send_together
from underhost.streams.partition import partition_of
from underhost.streams.ports import Outgoing, ProducerRecord, Record
from underhost.streams.publish import FaustPublisher, dead_letter, partition_for


@dataclass
class FakeProducer:
    """Takes sends and acknowledges none until `acknowledge`; `faults` are raised by the send with that number."""

    faults: dict[int, Exception] = field(default_factory=dict)
    sent: list[ProducerRecord] = field(default_factory=list)
    futures: list["asyncio.Future[None]"] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def send_together(self, records: Iterable[ProducerRecord]) -> None:
        """As Kafka's producer."""
        await send_together(self.send, records)

    async def send(self, record: ProducerRecord) -> "asyncio.Future[None]":
        """Take a record into the buffer."""
        await asyncio.sleep(0)
        if len(self.sent) in self.faults:
            raise self.faults[len(self.sent)]
        self.sent.append(record)
        self.futures.append(asyncio.get_running_loop().create_future())
        self.arrived.set()
        return self.futures[-1]

    async def until_sent(self, count: int) -> None:
        """Wait until so many were sent."""
        while len(self.sent) < count:
            self.arrived.clear()
            await self.arrived.wait()

    def acknowledge(self) -> None:
        """Acknowledge everything."""
        for future in self.futures:
            if not future.done():
                future.set_result(None)


class FakeApp:
    """As much of Faust's app as a publisher uses."""

    keep_unreadable = False

    def __init__(self, producer: FakeProducer, start_fault: Exception | None = None) -> None:
        self.producer, self.conf, self._fault = producer, SimpleNamespace(topic_partitions=8), start_fault

    async def maybe_start_producer(self) -> FakeProducer:
        """The producer."""
        if self._fault is not None:
            raise self._fault
        return self.producer


def a_pod(name: str, value: bytes | None = b"{}", site: str = "prod-a") -> Outgoing:
    """A record."""
    return Outgoing(PODS, f"{site}/pod/shop/{name}", value, f"uid-{name}/1")


async def test_records_are_sent_in_order_without_waiting_in_between_and_then_acknowledged() -> None:
    producer = FakeProducer()
    publishing = asyncio.ensure_future(FaustPublisher(FakeApp(producer)).publish(a_pod("a"), a_pod("b"), a_pod("c")))
    await producer.until_sent(3)
    assert [key for _, key, *_ in producer.sent] == [
        b"prod-a/pod/shop/a",
        b"prod-a/pod/shop/b",
        b"prod-a/pod/shop/c",
    ]
    for future in producer.futures[:2]:
        future.set_result(None)
    await asyncio.wait([publishing], timeout=0.02)
    assert not publishing.done(), "the third one is not acknowledged yet"
    producer.acknowledge()
    await publishing


async def test_a_tombstone_carries_the_headers_too_and_own_headers_come_after_them() -> None:
    producer = FakeProducer()
    record = a_pod("a", None)._replace(headers={"origin": b"1"})
    publishing = asyncio.ensure_future(FaustPublisher(FakeApp(producer)).publish(record))
    await producer.until_sent(1)
    producer.acknowledge()
    await publishing
    [(topic, _, value, partition, headers, _)] = producer.sent
    assert (topic, value, partition) == ("underhost.pods", None, 4)
    assert [name for name, _ in headers] == [
        "ce_specversion",
        "ce_id",
        "ce_source",
        "ce_type",
        "ce_time",
        "content-type",
        "origin",
    ]
    assert dict(headers)["ce_id"] == b"uid-a/1"


async def test_a_record_carries_the_time_of_its_publication() -> None:
    producer = FakeProducer()
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # the header is cut to milliseconds
    publishing = asyncio.ensure_future(FaustPublisher(FakeApp(producer)).publish(a_pod("a")))
    await producer.until_sent(1)
    producer.acknowledge()
    await publishing
    time = dict(producer.sent[0].headers)["ce_time"].decode()
    assert before <= datetime.fromisoformat(time) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("fault", "expected", "says"),
    [
        (
            KafkaTimeoutError("batch expired"),
            Unreachable,
            "Kafka does not take records: KafkaTimeoutError: batch expired",
        ),
        (ConnectionRefusedError(111, "refused"), Unreachable, r"Kafka does not take records: \[Errno 111\] refused"),
        (Refused("x.db: cannot be written: full"), Refused, "x.db: cannot be written: full"),
    ],
)
async def test_a_failed_acknowledgement_is_raised_after_all_others_are_known(
    fault: Exception, expected: type[UnderhostError], says: str
) -> None:
    producer = FakeProducer()
    publishing = asyncio.ensure_future(FaustPublisher(FakeApp(producer)).publish(a_pod("a"), a_pod("b")))
    await producer.until_sent(2)
    producer.futures[0].set_exception(fault)
    await asyncio.wait([publishing], timeout=0.02)
    assert not publishing.done()
    producer.acknowledge()
    with pytest.raises(expected, match=says):
        await publishing


async def test_a_send_that_is_refused_stops_the_rest_so_that_no_record_overtakes_it() -> None:
    producer = FakeProducer(faults={1: ProducerSendError("no metadata")})
    publishing = asyncio.ensure_future(FaustPublisher(FakeApp(producer)).publish(a_pod("a"), a_pod("b"), a_pod("c")))
    await producer.until_sent(1)
    await asyncio.wait([publishing], timeout=0.02)
    assert not publishing.done(), "the first one may still be on its way"
    producer.acknowledge()
    with pytest.raises(Unreachable, match="Kafka does not take records: no metadata"):
        await publishing
    assert [key for _, key, *_ in producer.sent] == [b"prod-a/pod/shop/a"]


async def test_a_producer_that_does_not_start_is_unreachable() -> None:
    app = FakeApp(FakeProducer(), start_fault=ConnectionRefusedError(111, "refused"))
    with pytest.raises(Unreachable):
        await FaustPublisher(app).publish(a_pod("a"))


async def test_nothing_to_publish_is_no_error() -> None:
    await FaustPublisher(FakeApp(FakeProducer())).publish()


@pytest.mark.parametrize(
    ("record", "partition"),
    [
        pytest.param(a_pod("a", site="default"), 3, id="an object"),
        pytest.param(Outgoing(NODES, "default/listed/kubernetes", b"{}", "1"), 3, id="a marker"),
        pytest.param(Outgoing(VIOLATIONS, "default/9f2c", b"{}", "1"), 3, id="a finding"),
    ],
)
def test_every_record_of_a_site_goes_to_one_partition(record: Outgoing, partition: int) -> None:
    assert partition_for(record, 8) == partition


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        pytest.param(b"default/pod/shop/a", partition_of("default", 8), id="its key names a site"),
        pytest.param(b"no-slash", 5, id="its key names none"),
        pytest.param(b"Bad Site/pod/a/b", 5, id="its key's site is no name"),
        pytest.param(b"\xff\xfe/x", 5, id="its key is no text"),
        pytest.param(None, 5, id="it has no key"),
    ],
)
def test_a_dead_letter_goes_to_its_site_or_stays_in_the_partition_of_its_origin(
    key: bytes | None, partition: int
) -> None:
    letter = dead_letter(Record("underhost.pods", 5, 9, 0, key, b"?", ()), "tables", "no")
    assert partition_for(letter, 8) == partition
    assert partition_for(letter, 4) == partition % 4


def sha256(data: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(data).hexdigest().encode()


def test_a_dead_letter_is_a_digest_with_where_the_original_came_from_and_why() -> None:
    letter = dead_letter(Record("underhost.pods", 5, 9, 0, b"\xff", b"\x00{", ()), "tables", ValueError("x" * 5000))
    assert letter.topic is DEAD_LETTERS
    assert letter.key.encode("utf-8", "surrogateescape") == b"\xff"
    assert (letter.value, letter.original) == (sha256(b"\x00{"), b"\x00{")
    assert letter.event_id == "underhost.pods/5/9"
    error = letter.headers["error"]
    assert letter.headers == {
        "origin_topic": b"underhost.pods",
        "origin_partition": b"5",
        "origin_offset": b"9",
        "origin_bytes": b"2",
        "stage": b"tables",
        "error": error,
    }
    assert (error[:14], len(error)) == (b"ValueError: xx", 1000)


def test_an_error_that_is_no_unicode_does_not_stop_a_dead_letter() -> None:
    letter = dead_letter(Record("t", 0, 0, 0, None, None, ()), "tables", "bad \udcff byte")
    assert letter.headers["error"] == b"bad ? byte"
