"""Carrying out commands: the newest of a backlog, one after another, whatever a sink raises."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec

from underhost.agents.sink_agents import SinkRunner
from underhost.schemas.records import Action, Outcome
from underhost.streams.ports import Outgoing


class SlowSink:
    """Answers when it is told to."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.begun: asyncio.Queue[Action] = asyncio.Queue()
        self.gate = asyncio.Semaphore(0)

    async def apply(self, action: Action) -> Outcome:
        """See `ports.Sink`."""
        self.begun.put_nowait(action)
        await self.gate.acquire()
        return Outcome(action.id, action.kind, action.target, "applied", "")


class Event:
    """A Faust event of which only the acknowledgement is of interest."""

    def __init__(self) -> None:
        self.acked = asyncio.Event()
        self.message = SimpleNamespace()

    def ack(self) -> None:
        self.acked.set()


class Bench:
    """A runner with one sink, and what came out of it."""

    def __init__(self, kind: str = "label", answered: tuple[str, ...] = ()) -> None:
        self.sink = SlowSink(kind)
        self.outcomes: list[str] = []
        self.letters: list[tuple[str, BaseException]] = []
        self.failures: list[BaseException] = []
        self.runner = SinkRunner(
            "prod",
            [self.sink],
            self,
            self._dead_letter,
            answered=lambda key, action: action.id in answered,
            failed=self.failures.append,
        )

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        self.outcomes += [msgspec.json.decode(record.value or b"", type=Outcome).id for record in records]

    async def _dead_letter(self, message: Any, stage: str, error: BaseException) -> None:
        self.letters.append((stage, error))

    def order(self, id_: str, target: str = "node/n1") -> Event:
        """A command comes."""
        event = Event()
        self.runner.take(Action(id_, self.sink.kind, target, {}, "", {}), event)
        return event

    async def begun(self) -> str:
        """The next command that the sink begins with."""
        return (await asyncio.wait_for(self.sink.begun.get(), 30)).id


async def test_of_a_backlog_only_the_newest_command_of_a_target_is_carried_out() -> None:
    bench = Bench()
    events = [bench.order("first")]
    assert await bench.begun() == "first"
    events += [bench.order("second"), bench.order("third")]
    bench.sink.gate.release()
    assert await bench.begun() == "third"
    assert not events[1].acked.is_set()
    bench.sink.gate.release()
    await asyncio.gather(*(event.acked.wait() for event in events))
    assert bench.outcomes == ["first", "third"]


async def test_a_command_is_acknowledged_only_after_its_outcome_is_published() -> None:
    bench = Bench()
    event = bench.order("first")
    await bench.begun()
    assert not event.acked.is_set()
    bench.sink.gate.release()
    await event.acked.wait()
    assert bench.outcomes == ["first"]


async def test_commands_for_drs_rules_are_carried_out_one_after_another() -> None:
    bench = Bench(kind="drs-rule")
    events = [bench.order("a", "drs-rule/C0/a"), bench.order("b", "drs-rule/C0/b")]
    assert await bench.begun() == "a"
    await asyncio.sleep(0)
    assert bench.sink.begun.empty()
    bench.sink.gate.release()
    assert await bench.begun() == "b"
    bench.sink.gate.release()
    await asyncio.gather(*(event.acked.wait() for event in events))


async def test_a_command_that_was_answered_before_a_restart_is_not_carried_out_again() -> None:
    bench = Bench(answered=("done",))
    await bench.order("done").acked.wait()
    assert bench.outcomes == []
    assert bench.sink.begun.empty()


async def test_when_the_partition_may_move_what_is_not_done_is_left_to_the_next_owner() -> None:
    bench = Bench()
    events = [bench.order("first")]
    await bench.begun()
    events.append(bench.order("second"))
    await bench.runner.suspend()
    bench.sink.gate.release()
    assert [event.acked.is_set() for event in events] == [False, False]
    assert bench.outcomes == []
    after = bench.order("third")
    bench.sink.gate.release()
    await after.acked.wait()
    assert bench.outcomes == ["third"]
