"""Records from the consumer to their streams: in one step where there is room, Faust's way where there is not."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.structs import TopicPartition
from faust.types import TP
from support.workers.embedded import a_topic, an_app, running

from underhost.streams.faust.handing import AT_ONCE, QuickHandOver
from underhost.streams.faust.queue import EventQueue

PODS, NODES = TP("pods", 0), TP("nodes", 0)


class Base:
    """What the mixin needs of Faust's consumer, its app, and the streams that read a partition."""

    consumer_stopped_errors = (ConnectionError,)
    should_stop = False
    _commit_every = 3

    def __init__(self) -> None:
        self.flow_active, self._n_acked, self.commits = True, 0, 0
        self.suspend_flow = asyncio.Event()
        self._read_offset: dict[TP, int | None] = defaultdict(lambda: None)
        self._buffered_partitions: set[TP] = set()
        self.scheduler = SimpleNamespace(iterate=_in_turn)
        self.streams = {tp: SimpleNamespace(queue=EventQueue(maxsize=4, flow_control=_Flow())) for tp in (PODS, NODES)}
        self.app = SimpleNamespace(
            consumer_generation_id=1,
            topics=SimpleNamespace(
                _tp_index={tp: {_Hashed(stream)} for tp, stream in self.streams.items()},
                _tp_to_callback_lock=asyncio.Lock(),
            ),
            flow_control=_Flow(),
            producer=SimpleNamespace(has_room=True),
        )
        self.faust: list[int] = []
        self.full: list[TP] = []
        self.dropped: list[TP] = []

    def _to_message(self, tp: TP, record: Any) -> Any:
        return SimpleNamespace(key=b"k", value=b"v", headers=[], offset=record.offset, incref=lambda count: None)

    async def callback(self, message: Any) -> None:
        """Faust's way to hand a record over."""
        self.faust.append(message.offset)

    async def wait_first(self, handing: Awaitable[None], stopped: Any) -> None:
        """Faust's."""
        stopped.close()
        await handing

    async def commit(self) -> None:
        """Faust's."""
        self.commits += 1

    def on_buffer_full(self, tp: TP) -> None:
        """Faust's."""
        self.full.append(tp)

    def on_buffer_drop(self, tp: TP) -> None:
        """Faust's."""
        self.dropped.append(tp)


class Consumer(QuickHandOver, Base):
    """As the transports make theirs."""

    def handed(self, tp: TP) -> list[int]:
        """The offsets of the records in the queue of a partition's stream."""
        return [event.message.offset for event in self.streams[tp].queue._queue]


class _Flow:
    active = True

    def is_active(self) -> bool:
        return self.active

    def manage_queue(self, queue: object) -> None:
        """mode's."""


class _Hashed:
    """A stream as a member of a set."""

    def __init__(self, stream: Any) -> None:
        self.queue = stream.queue


def _in_turn(records: Mapping[TP, list[Any]]) -> Iterator[tuple[TP, Any]]:
    return ((tp, record) for tp, some in records.items() for record in some)


def fetched(tp: Any, *offsets: int) -> dict[Any, list[Any]]:
    return {tp: [SimpleNamespace(offset=offset) for offset in offsets]}


async def test_records_are_put_where_there_is_room_and_only_their_streams_get_them() -> None:
    consumer = Consumer()
    await consumer._hand_over({**fetched(PODS, 4, 5), **fetched(NODES, 9)}, {PODS, NODES})
    assert (consumer.handed(PODS), consumer.handed(NODES), consumer.faust) == ([4, 5], [9], [])
    assert (consumer._read_offset[PODS], consumer._read_offset[NODES]) == (5, 9)


async def test_every_stream_of_a_partition_gets_the_same_event() -> None:
    consumer = Consumer()
    other = _another(consumer)
    await consumer._hand_over(fetched(PODS, 4), {PODS})
    assert (consumer.handed(PODS), consumer.faust) == ([4], [])
    assert list(other._queue) == list(consumer.streams[PODS].queue._queue)


def _no_room(consumer: Consumer) -> None:
    consumer.app.producer.has_room = False


def _held(consumer: Consumer) -> None:
    consumer.app.flow_control.active = False


def _another(consumer: Consumer) -> Any:
    """A second stream of the pods, as of a sink beside their table."""
    queue = EventQueue(maxsize=1, flow_control=_Flow())
    consumer.app.topics._tp_index[PODS].add(_Hashed(SimpleNamespace(queue=queue)))
    return queue


def _another_is_full(consumer: Consumer) -> None:
    _another(consumer).force_put_nowait("an event")


def _no_stream(consumer: Consumer) -> None:
    del consumer.app.topics._tp_index[PODS]


def _full(consumer: Consumer) -> None:
    for number in range(4):
        consumer.streams[PODS].queue.force_put_nowait(SimpleNamespace(message=SimpleNamespace(offset=number)))


@pytest.mark.parametrize(
    "hinder",
    [
        pytest.param(_no_room, id="too many changes wait to be sent"),
        pytest.param(_held, id="the streams are held"),
        pytest.param(_another_is_full, id="the queue of another stream is full"),
        pytest.param(_no_stream, id="no stream reads it any more"),
        pytest.param(_full, id="the queue is full"),
    ],
)
async def test_faust_hands_over_what_cannot_be_put_at_once(hinder: Callable[[Consumer], None]) -> None:
    consumer = Consumer()
    hinder(consumer)
    before = consumer.handed(PODS)
    await consumer._hand_over(fetched(PODS, 4, 5), {PODS})
    assert (consumer.handed(PODS), consumer.faust) == (before, [4, 5])


async def test_while_the_streams_of_partitions_change_faust_hands_over() -> None:
    consumer = Consumer()
    async with consumer.app.topics._tp_to_callback_lock:
        await consumer._hand_over(fetched(PODS, 4), {PODS})
    assert (consumer.handed(PODS), consumer.faust) == ([], [4])


async def test_what_is_left_when_the_flow_stops_is_not_handed_over() -> None:
    for stop in (
        lambda one: setattr(one, "flow_active", False),
        lambda one: setattr(one.app, "consumer_generation_id", 2),
    ):
        consumer = Consumer()
        _no_stream(consumer)

        async def callback(message: Any, consumer: Consumer = consumer, stop: Callable[[Any], None] = stop) -> None:
            consumer.faust.append(message.offset)
            stop(consumer)

        consumer.callback = callback  # type: ignore[method-assign]
        await consumer._hand_over(fetched(PODS, 4, 5), {PODS})
        assert (consumer.faust, consumer._read_offset[PODS]) == ([4], 4)


async def test_a_record_below_what_was_read_or_of_a_paused_partition_is_left_out() -> None:
    consumer = Consumer()
    consumer._read_offset[PODS] = 5
    await consumer._hand_over({**fetched(PODS, 4, 5, 6), **fetched(NODES, 9)}, {PODS})
    assert (consumer.handed(PODS), consumer.handed(NODES)) == ([5, 6], [])
    await consumer._hand_over(fetched(PODS, 4, 5), {PODS})
    assert (consumer.handed(PODS), consumer._read_offset[PODS]) == ([5, 6], 6)


async def test_partitions_take_turns_and_so_does_the_event_loop() -> None:
    consumer, turns, others = Consumer(), list[int](), 0
    for tp in (PODS, NODES):
        consumer.streams[tp].queue._maxsize = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    def to_message(tp: TP, record: Any) -> Any:
        turns.append(others)
        handed.append(tp)
        return SimpleNamespace(key=b"k", value=b"v", headers=[], offset=record.offset)

    handed: list[TP] = []
    consumer._to_message = to_message  # type: ignore[method-assign]
    beside = asyncio.create_task(other())
    await consumer._hand_over({**fetched(PODS, *range(2 * AT_ONCE)), **fetched(NODES, 9)}, {PODS, NODES})
    beside.cancel()
    assert handed == [PODS] * AT_ONCE + [NODES] + [PODS] * AT_ONCE
    assert turns == [0] * AT_ONCE + [1] + [1] * AT_ONCE


async def test_what_a_commit_on_the_way_finds_moved_is_not_handed_over() -> None:
    consumer = Consumer()
    consumer._n_acked = 3

    async def commit() -> None:
        consumer.app.consumer_generation_id = 2

    consumer.commit = commit  # type: ignore[method-assign]
    await consumer._hand_over(fetched(PODS, 4, 5), {PODS})
    assert (consumer.handed(PODS), consumer.faust, consumer._read_offset[PODS]) == ([], [], None)


async def test_what_is_fetched_of_a_partition_whose_queue_is_full_is_handed_over() -> None:
    consumer = Consumer()
    consumer._buffered_partitions.add(PODS)
    await consumer._hand_over(fetched(PODS, 4), set())
    assert consumer.handed(PODS) == [4]


async def test_a_queue_that_is_nearly_full_is_told_once() -> None:
    consumer = Consumer()
    await consumer._hand_over(fetched(PODS, 1, 2, 3, 4), {PODS})
    assert consumer.full == [PODS]


async def test_a_full_queue_is_told_of_fausts_own_partition_not_of_the_drivers() -> None:
    consumer, theirs = Consumer(), TopicPartition("pods", 0)
    await consumer._hand_over(fetched(theirs, 1, 2, 3, 4), {PODS})
    while not consumer.streams[PODS].queue.empty():
        consumer.streams[PODS].queue.get_nowait()
    assert (consumer.full, consumer.dropped) == ([PODS], [PODS])
    assert {type(tp) for tp in (*consumer.full, *consumer.dropped)} == {TP}


async def test_a_fetch_without_a_partition_whose_queue_is_full_ends_soon() -> None:
    """The queue has room again long before the second for which a fetch waits, and this fetch does not look there."""
    consumer, ended, waits = Consumer(), asyncio.Event(), list[float]()

    async def fetch(timeout: float) -> tuple[dict[TP, list[Any]], set[TP]]:
        waits.append(timeout)
        if len(waits) == 1:
            consumer._buffered_partitions.add(PODS)
        elif len(waits) == 2:
            consumer._buffered_partitions.discard(PODS)
        else:
            ended.set()
        return {}, {NODES}

    consumer._stopped, consumer._wait_next_records = asyncio.Event(), fetch  # type: ignore[attr-defined]
    await consumer._drain_messages(SimpleNamespace(_stopped=ended))
    assert waits == [1.0, 0.02, 1.0]


async def test_much_that_is_done_is_committed_on_the_way() -> None:
    consumer = Consumer()
    consumer._n_acked = 3
    await consumer._hand_over(fetched(PODS, 4, 5), {PODS})
    assert (consumer.commits, consumer._n_acked) == (1, 0)


async def test_a_fetch_that_waits_while_partitions_move_takes_nothing(tmp_path: Path) -> None:
    app = an_app(tmp_path / "log.db", broker_commit_interval=60)
    read: list[bytes] = []
    arrived, waiting, look = asyncio.Condition(), asyncio.Event(), app.consumer._read

    async def look_again(*args: Any) -> Any:
        found = await look(*args)
        if read and not found:
            waiting.set()
        return found

    app.consumer._read = look_again

    async def take(stream: Any) -> None:
        async for event in stream.noack().events():
            read.append(event.value)
            async with arrived:
                arrived.notify_all()

    app.agent(a_topic(app, "orders"), name="take")(take)
    async with running(app), asyncio.timeout(60):
        await app.producer.send_and_wait("orders", b"k", b"1", 0, None, None)
        async with arrived:
            await arrived.wait_for(lambda: read == [b"1"])
        await waiting.wait()
        await app.consumer.subscribe({tp.topic for tp in app.consumer.assignment()} | {"another"})
        async with arrived:
            await arrived.wait_for(lambda: read == [b"1", b"1"])
