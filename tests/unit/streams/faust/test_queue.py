"""The queue of a stream: events go in together, come out one after another, and say when few more fit."""

import asyncio

import pytest
from mode.utils.queues import FlowControlEvent

from underhost.streams.faust.queue import EventQueue


class Pressure:
    """A queue of at most ten, and what it said."""

    def __init__(self) -> None:
        self.queue = EventQueue(10, flow_control=FlowControlEvent(initially_suspended=False))
        self.said: list[str] = []

    def put(self, *events: int) -> None:
        """Put them together."""
        high, drop = self._full, self._has_room
        self.queue.put_together(events, on_pressure_high=high, on_pressure_drop=drop)

    def take(self, count: int) -> list[int | None]:
        """The next events."""
        return [self.queue.take() for _ in range(count)]

    def _full(self) -> None:
        self.said.append("few more fit")

    def _has_room(self) -> None:
        self.said.append("there is room again")


def test_events_come_out_in_the_order_in_which_they_went_in() -> None:
    one = Pressure()
    one.put(1, 2)
    one.put(3)
    assert one.take(4) == [1, 2, 3, None]


@pytest.mark.parametrize(
    ("size", "held", "more", "fits"),
    [
        pytest.param(10, 4, 6, True, id="the last ones"),
        pytest.param(10, 4, 7, False, id="one too many"),
        pytest.param(0, 40, 7, True, id="without a bound"),
    ],
)
def test_there_is_room_for_as_many_as_fit(size: int, held: int, more: int, fits: bool) -> None:
    queue = EventQueue(size, flow_control=FlowControlEvent(initially_suspended=False))
    queue.put_together(range(held), on_pressure_high=list, on_pressure_drop=list)
    assert queue.has_room(more) is fits


def test_that_few_more_fit_is_said_once_and_that_there_is_room_after_it() -> None:
    one = Pressure()
    one.put(*range(7))
    assert one.said == []
    one.put(7)
    one.put(8)
    assert one.said == ["few more fit"]
    one.take(4)
    assert one.said == ["few more fit"]
    one.take(2)
    assert one.said == ["few more fit", "there is room again"]


async def test_who_waits_for_an_event_gets_it() -> None:
    one = Pressure()
    waiting = asyncio.create_task(one.queue.get())
    await asyncio.sleep(0)
    one.put(1, 2)
    assert (await waiting, one.take(1)) == (1, [2])


async def test_who_waits_for_room_gets_it_when_an_event_is_taken() -> None:
    one = Pressure()
    one.put(*range(10))
    putting = asyncio.create_task(one.queue.put(10))
    await asyncio.sleep(0)
    assert not putting.done()
    assert one.take(1) == [0]
    await putting
    assert one.take(10) == [*range(1, 11)]


async def test_what_is_thrown_into_the_queue_is_raised_before_any_event() -> None:
    one = Pressure()
    one.put(1)
    await one.queue.throw(StopAsyncIteration())
    with pytest.raises(StopAsyncIteration):
        one.queue.take()
    assert one.take(1) == [1]
