"""Records of many who each wait for their own: published together, in order, however long it takes."""

import asyncio

import pytest
from support.fakes.topics import FakeTopics

from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.publisher import AgentPublisher, Outbox
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import ACTIONS, DEAD_LETTERS, OUTCOMES
from underhost.streams import publish
from underhost.streams.ports import Outgoing
from underhost.streams.watching.records import LARGEST


class SlowPublisher:
    """Publishes when it is told to; `errors` are raised first, one by one."""

    def __init__(self, *errors: BaseException) -> None:
        self.batches: list[list[str]] = []
        self.gate = asyncio.Semaphore(0)
        self.errors = list(errors)

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        self.batches.append([record.key for record in records])
        await self.gate.acquire()
        if self.errors:
            raise self.errors.pop(0)


def record(key: str) -> Outgoing:
    return Outgoing(OUTCOMES, key, b"{}", "")


async def test_what_comes_while_a_batch_is_under_way_is_the_next_one() -> None:
    publisher = SlowPublisher()
    out = Outbox(publisher, "outcomes")
    first = asyncio.ensure_future(out.publish(record("a")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(out.publish(record(key))) for key in "bcd"]
    await asyncio.sleep(0)
    publisher.gate.release()
    await first
    assert not any(other.done() for other in others), "nobody goes on before its own record is acknowledged"
    publisher.gate.release()
    await asyncio.gather(*others)
    assert publisher.batches == [["a"], ["b", "c", "d"]]


async def test_a_batch_that_cannot_be_published_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "RETRY", 0.0)
    publisher = SlowPublisher(Unreachable("away"))
    publisher.gate.release()
    publisher.gate.release()
    await Outbox(publisher, "outcomes").publish(record("a"))
    assert publisher.batches == [["a"], ["a"]]


async def test_a_bug_of_the_publisher_is_told_to_everyone_and_the_outbox_goes_on() -> None:
    publisher = SlowPublisher(ValueError("bug"))
    out = Outbox(publisher, "outcomes")
    waiting = [asyncio.ensure_future(out.publish(record(key))) for key in "ab"]
    publisher.gate.release()
    assert [str(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == ["bug", "bug"]
    publisher.gate.release()
    await out.publish(record("c"))
    assert publisher.batches == [["a", "b"], ["c"]]


async def test_who_waits_for_a_cancelled_publishing_is_cancelled_and_the_outbox_goes_on() -> None:
    publisher = SlowPublisher(asyncio.CancelledError())
    out = Outbox(publisher, "outcomes")
    cancelled = out.publish(record("a"))
    publisher.gate.release()
    await asyncio.wait([cancelled])
    assert cancelled.cancelled()
    publisher.gate.release()
    await out.publish(record("b"))
    assert publisher.batches == [["a"], ["b"]]


async def test_one_who_no_longer_waits_holds_up_nobody() -> None:
    publisher = SlowPublisher()
    out = Outbox(publisher, "outcomes")
    gone, there = (asyncio.ensure_future(out.publish(record(key))) for key in "ab")
    await asyncio.sleep(0)
    gone.cancel()
    publisher.gate.release()
    await there
    assert publisher.batches == [["a", "b"]]


async def test_a_closed_outbox_publishes_no_more() -> None:
    publisher = SlowPublisher()
    out = Outbox(publisher, "outcomes")
    waiting = asyncio.ensure_future(out.publish(record("a")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await out.close()
    publisher.gate.release()
    await asyncio.sleep(0)
    assert waiting.cancelled()


async def test_a_record_that_no_broker_takes_is_a_dead_letter_and_the_next_goes_on() -> None:
    topics = FakeTopics()
    large = Outgoing(ACTIONS, "prod/node//n1", b"x" * (LARGEST + 1), "")
    await AgentPublisher(topics, Metrics(), None).publish(large, record("a"))
    letter, after = topics.records
    assert (letter.topic, letter.key, len(letter.original or b"")) == (DEAD_LETTERS, "prod/node//n1", LARGEST)
    assert letter.headers["stage"] == b"agents"
    assert after == record("a")
