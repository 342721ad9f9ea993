"""That nothing can be published is known, whether or not there is something to publish."""

import asyncio

import pytest
from support.workers.fleet import until

from underhost.agents.pipeline import publishing
from underhost.agents.pipeline.publishing import Publishing
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import NODES
from underhost.streams.ports import Outgoing

RECORD = Outgoing(NODES, "s/node//n", b"{}", "1")


class Transport:
    """Acknowledges while `free` is set; `error` is raised, `told` is its own word."""

    def __init__(self) -> None:
        self.free, self.now, self.told = asyncio.Event(), 1000.0, ""
        self.error: Unreachable | None = None
        self.asked = asyncio.Event()

    async def publish(self, *records: Outgoing) -> None:
        if self.error is not None:
            raise self.error
        await self.free.wait()

    async def ask(self) -> str:
        self.asked.set()
        return self.told


@pytest.fixture
async def transport() -> Transport:
    return Transport()


@pytest.fixture
async def watched(transport: Transport) -> Publishing:
    return Publishing(transport, transport.ask, clock=lambda: transport.now)


async def test_a_record_that_is_not_acknowledged_is_said_after_ten_seconds(
    transport: Transport, watched: Publishing
) -> None:
    sending = asyncio.ensure_future(watched.publish(RECORD))
    await asyncio.sleep(0)
    transport.now += 10
    assert watched.stopped() == ""
    transport.now += 1
    assert watched.stopped() == "nothing can be published: a record has not been acknowledged for 11 s"
    transport.free.set()
    await sending
    assert (watched.stopped(), watched.waited) == ("", 0.0)


async def test_attempts_that_fail_count_from_the_first_one(transport: Transport, watched: Publishing) -> None:
    transport.error = Unreachable("away")
    for _ in range(12):
        with pytest.raises(Unreachable):
            await watched.publish(RECORD)
        transport.now += 1
    assert watched.stopped() == "nothing can be published: a record has not been acknowledged for 12 s"
    transport.error = None
    transport.free.set()
    await watched.publish(RECORD)
    assert watched.stopped() == ""


async def test_whoever_gave_up_publishing_leaves_no_complaint(transport: Transport, watched: Publishing) -> None:
    sending = asyncio.ensure_future(watched.publish(RECORD))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    transport.now += 100
    assert watched.stopped() == ""


async def test_an_idle_worker_asks_the_transport(transport: Transport, watched: Publishing) -> None:
    transport.told = "underhost.pods has no leader"
    asking = asyncio.ensure_future(watched.run())
    await transport.asked.wait()
    await asyncio.sleep(0)
    assert watched.stopped() == "nothing can be published: underhost.pods has no leader"
    asking.cancel()


async def test_a_transport_that_does_not_answer_is_said_within_fifteen_seconds(
    watched: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publishing.LOOK + publishing.ANSWER <= 15, "what we promise"
    monkeypatch.setattr(publishing, "ANSWER", 0.01)
    monkeypatch.setattr(watched, "_ask", asyncio.Event().wait)
    asking = asyncio.ensure_future(watched.run())
    await until(lambda: watched.stopped() != "")
    assert watched.stopped() == "nothing can be published: Kafka has not answered for 0 s"
    asking.cancel()
