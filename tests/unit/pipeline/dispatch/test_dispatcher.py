"""Carrying out commands: the newest of a backlog, one after another, whatever a sink raises."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from underhost.agents.pipeline.dispatch import dispatcher as dispatcher_module
from underhost.agents.pipeline.dispatch.dispatcher import ENDS, Dispatcher
from underhost.agents.pipeline.gates.fence import MembershipGate
from underhost.agents.pipeline.gates.limits import WriteLimits
from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.gates.wanted import SUPERSEDED, WantedCommands
from underhost.agents.sinks.ports import Sink
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS, OUTCOMES, PLACEMENTS, VIOLATIONS, Topic
from underhost.streams.faust.membership import Membership, now
from underhost.streams.ports import Outgoing

NOW = 200.0


class SlowSink(Sink):
    """Answers when it is told to."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.result = "applied"
        self.begun: asyncio.Queue[Action] = asyncio.Queue()
        self.gate = asyncio.Semaphore(0)

    async def apply(self, action: Action) -> Outcome:
        """See `ports.Sink`."""
        self.begun.put_nowait(action)
        await self.gate.acquire()
        return Outcome(action.id, action.kind, action.target, self.result, "")


class Event:
    """A Faust event of which only the acknowledgement is of interest."""

    def __init__(self, timestamp: float = 0.0, topic: Topic = ACTIONS) -> None:
        self.acked = asyncio.Event()
        self.message = SimpleNamespace(timestamp=timestamp, topic=topic.name)

    def ack(self) -> None:
        self.acked.set()


class Stop(Gate):
    """Refuses everything while the bench is stopped."""

    name = "stop"

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench

    def refuses(self, action: Action) -> Outcome | None:
        """See `Gate`."""
        why = self._bench.stopped
        return Outcome(action.id, action.kind, action.target, "failed", f"writes stop: {why}") if why else None


async def never_left(action: Action, since: float) -> bool:
    return False


class Bench:
    """A dispatcher with one sink, and what came out of it."""

    def __init__(
        self,
        kind: str = "label",
        answered: Collection[str] = (),
        decided_here: tuple[str, ...] = (),
        limits: dict[str, int] | None = None,
        membership: Membership | None = None,
        left: Callable[[Action, float], Awaitable[bool]] = never_left,
    ) -> None:
        self.sink = SlowSink(kind)
        self.outcomes: list[str] = []
        self.results: list[str] = []
        self.letters: list[tuple[str, BaseException]] = []
        self.failures: list[BaseException] = []
        self.reasons: list[str] = []
        self._told = asyncio.Condition()
        self.asked, self.publishing = asyncio.Event(), asyncio.Event()
        self.publishing.set()
        self.stopped = ""
        self.wanted = WantedCommands(decided_here)
        gates = [Stop(self), self.wanted, MembershipGate(membership or Membership()), WriteLimits(limits or {})]
        self.dispatcher = Dispatcher(
            "prod",
            [self.sink],
            gates,
            self.wanted,
            self,
            answered=lambda key, action: action.id in answered,
            ended=self._ended,
            wall=lambda: NOW,
            left=left,
        )
        self.dispatcher.resume()

    def _ended(self, task: "asyncio.Future[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.failures.append(error)

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        self.asked.set()
        await self.publishing.wait()
        read = [msgspec.json.decode(record.value or b"", type=Outcome) for record in records]
        self.outcomes += [outcome.id for outcome in read]
        self.results += [outcome.result for outcome in read]
        self.reasons += [outcome.reason for outcome in read]
        async with self._told:
            self._told.notify_all()

    async def told(self, count: int) -> None:
        """Until so many outcomes are published."""
        async with asyncio.timeout(30), self._told:
            await self._told.wait_for(lambda: len(self.results) >= count)

    async def dead_letter(self, message: Any, stage: str, error: BaseException) -> None:
        """See `AgentPublisher`."""
        self.letters.append((stage, error))

    def action(self, id_: str, target: str = "node/n1") -> Action:
        """A command for the sink."""
        return Action(id_, self.sink.kind, target, {}, "", {})

    def order(self, id_: str, target: str = "node/n1", at: float = 0.0, topic: Topic = ACTIONS) -> Event:
        """A command comes that was ordered at this time."""
        event = Event(at, topic)
        self.dispatcher.take(self.action(id_, target), event)
        return event

    async def begun(self) -> str:
        """The next command that the sink begins with."""
        return (await asyncio.wait_for(self.sink.begun.get(), 30)).id


@pytest.mark.parametrize(
    ("kind", "age", "result"),
    [
        pytest.param("bind", 299.0, "applied", id="a young order to bind"),
        pytest.param("bind", 301.0, "refused", id="an old order to bind"),
        pytest.param("label", 999.0, "applied", id="a label, which the sink compares with the node"),
    ],
)
async def test_an_order_to_bind_that_waited_for_too_long_is_refused(kind: str, age: float, result: str) -> None:
    bench = Bench(kind)
    bench.sink.gate.release()
    event = bench.order("one", "pod/shop/db-0", at=NOW - age)
    await asyncio.wait_for(event.acked.wait(), 30)
    assert bench.results == [result]
    assert bench.reasons == ["" if result == "applied" else "it was decided 301 s ago, and much may have changed since"]


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


async def test_a_command_that_is_another_workers_is_acknowledged_without_an_outcome() -> None:
    async def left(action: Action, since: float) -> bool:
        return True

    bench = Bench(left=left)
    await bench.order("first").acked.wait()
    assert (bench.outcomes, bench.sink.begun.empty()) == ([], True)


async def test_a_command_waits_until_it_is_settled_whose_it_is_and_is_then_carried_out() -> None:
    settled = asyncio.Event()

    async def left(action: Action, since: float) -> bool:
        await settled.wait()
        return False

    bench = Bench(left=left)
    event = bench.order("first")
    bench.sink.gate.release()
    assert (bench.sink.begun.empty(), event.acked.is_set()) == (True, False)
    settled.set()
    await event.acked.wait()
    assert bench.results == ["applied"]


async def test_a_command_that_another_worker_answers_meanwhile_is_not_carried_out() -> None:
    answered: list[str] = []

    async def left(action: Action, since: float) -> bool:
        answered.append(action.id)
        return False

    bench = Bench(answered=answered, left=left)
    await bench.order("first").acked.wait()
    assert (bench.outcomes, bench.sink.begun.empty()) == ([], True)


async def test_what_is_under_way_ends_where_another_worker_carries_it_out_by_now() -> None:
    bench = Bench(decided_here=("label",))
    bench.wanted.decide([bench.action("first")], ())
    event = bench.order("first")
    assert await bench.begun() == "first"
    bench.dispatcher.abandon(["label"])
    await event.acked.wait()
    assert (bench.results, bench.reasons) == (["failed"], ["another worker carries it out by now"])


async def test_other_kinds_go_on_where_one_is_another_workers() -> None:
    bench = Bench()
    event = bench.order("first")
    assert await bench.begun() == "first"
    bench.dispatcher.abandon(["evict"])
    bench.sink.gate.release()
    await event.acked.wait()
    assert bench.results == ["applied"]


async def test_a_command_is_acknowledged_only_after_its_outcome_is_published() -> None:
    bench = Bench()
    event = bench.order("first")
    await bench.begun()
    assert not event.acked.is_set()
    bench.sink.gate.release()
    await event.acked.wait()
    assert bench.outcomes == ["first"]


async def test_an_outcome_not_yet_published_holds_back_no_command_of_another_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, published = Bench(kind="drs-rule"), asyncio.Event()
    publish = bench.publish

    async def later(*records: Outgoing) -> None:
        await published.wait()
        await publish(*records)

    monkeypatch.setattr(bench, "publish", later)
    events = [bench.order("a", "drs-rule/C0/a"), bench.order("b", "drs-rule/C0/b"), bench.order("c", "drs-rule/C0/a")]
    assert await bench.begun() == "c"  # the newest of its target
    bench.sink.gate.release()
    assert await bench.begun() == "b"
    assert not events[0].acked.is_set()
    published.set()
    bench.sink.gate.release()
    await asyncio.gather(*(event.acked.wait() for event in events))
    assert bench.outcomes == ["c", "b"]


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
    await bench.dispatcher.suspend()
    bench.sink.gate.release()
    assert [event.acked.is_set() for event in events] == [False, False]
    assert bench.outcomes == []
    bench.dispatcher.resume()
    after = bench.order("third")
    bench.sink.gate.release()
    await after.acked.wait()
    assert bench.outcomes == ["third"]


async def test_what_comes_once_the_partition_may_have_moved_is_left_to_the_next_owner() -> None:
    bench = Bench()
    await bench.dispatcher.suspend()
    late = bench.order("late", "node/n1")
    bench.dispatcher.resume()
    bench.order("next", "node/n2")
    assert await bench.begun() == "next"
    assert (bench.sink.begun.empty(), late.acked.is_set(), bench.outcomes) == (True, False, [])


async def test_a_record_refused_while_the_partition_moves_holds_up_no_reader() -> None:
    bench, event = Bench(), Event()
    bench.publishing.clear()
    reader = asyncio.create_task(bench.dispatcher.refuse(bench.action("forged"), "forged", event))
    await bench.asked.wait()
    await bench.dispatcher.suspend()
    async with asyncio.timeout(30):
        await reader
        await bench.dispatcher.refuse(bench.action("forged"), "forged", event)
    assert (bench.outcomes, event.acked.is_set()) == ([], False)
    bench.publishing.set()
    bench.dispatcher.resume()
    await bench.dispatcher.refuse(bench.action("forged"), "forged", event)
    assert (bench.results, event.acked.is_set()) == (["refused"], True)


async def test_a_command_from_before_a_restart_is_carried_out_only_if_it_still_stands() -> None:
    bench = Bench(kind="bind", decided_here=("bind",))
    stale, standing = bench.order("stale", "pod/shop/db-0"), bench.order("standing", "pod/shop/db-1")
    await asyncio.sleep(0)
    assert bench.sink.begun.empty(), "nothing is carried out before the first decisions"
    bench.wanted.decide([], {"standing"})
    assert await bench.begun() == "standing"
    bench.sink.gate.release()
    await asyncio.gather(stale.acked.wait(), standing.acked.wait())
    assert sorted(zip(bench.outcomes, bench.results, strict=True)) == [("stale", "refused"), ("standing", "applied")]


async def test_a_command_of_this_run_waits_for_nothing() -> None:
    bench = Bench(kind="bind", decided_here=("bind",))
    bench.wanted.order([bench.action("new")])
    bench.order("new")
    assert await bench.begun() == "new"


async def test_a_command_of_a_worker_that_does_not_know_that_its_site_has_moved_is_refused() -> None:
    bench = Bench(kind="bind", decided_here=("bind",))
    bench.wanted.order([bench.action("ours")])
    bench.wanted.decide([], set())
    late = bench.order("of the worker before us", at=4e9)
    await late.acked.wait()
    assert (bench.outcomes, bench.results) == (["of the worker before us"], ["refused"])
    bench.order("ours")
    assert await bench.begun() == "ours"


async def test_after_the_partition_moved_and_came_back_an_order_of_before_is_nobodys() -> None:
    bench = Bench(kind="bind", decided_here=("bind",))
    bench.wanted.order([bench.action("before")])
    await bench.dispatcher.suspend()
    bench.dispatcher.resume()
    again = bench.order("before")
    bench.wanted.decide([], set())
    await again.acked.wait()
    assert bench.results == ["refused"]


async def test_while_membership_is_in_doubt_nothing_begins_and_afterwards_it_does() -> None:
    membership = Membership(10)
    bench = Bench(membership=membership)
    bench.order("first")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert bench.sink.begun.empty()
    membership.renewed(now())
    assert await bench.begun() == "first"


class RecallingSink(SlowSink):
    """Knows what to do with a command that may have been carried out before."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.recalled: list[str] = []

    async def again(self, action: Action) -> Outcome:
        """See `ports.Sink`."""
        self.recalled.append(action.id)
        return await self.apply(action)


async def test_a_sink_is_told_which_commands_may_have_been_carried_out_before_a_restart() -> None:
    bench = Bench(kind="event")
    bench.dispatcher.sinks["event"] = sink = RecallingSink("event")
    bench.wanted.begin()
    sink.gate.release()
    sink.gate.release()
    earlier, new = (bench.order(id_, f"pod/{id_}", at, OUTCOMES) for id_, at in (("earlier", 0.0), ("new", 4e9)))
    await asyncio.gather(earlier.acked.wait(), new.acked.wait())
    assert (sink.recalled, sorted(bench.results)) == (["earlier"], ["applied", "applied"])


class DoubtingSink(SlowSink):
    """Remembers which commands it was only told of."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.doubted: list[str] = []

    async def told(self, action: Action) -> Outcome:
        """See `ports.Sink`."""
        self.doubted.append(action.id)
        return await self.apply(action)


@pytest.mark.parametrize(
    ("kind", "decided_here", "decided", "topic", "doubted"),
    [
        pytest.param("bind", ("bind",), "one", PLACEMENTS, [], id="bindings of our own evaluator"),
        pytest.param("bind", (), "another", PLACEMENTS, ["one"], id="bindings of another worker's"),
        pytest.param("event", (), "one", ACTIONS, [], id="Events of our own evaluator"),
        pytest.param("event", (), "another", ACTIONS, ["one"], id="Events that come as commands"),
        pytest.param("event", (), "another", VIOLATIONS, [], id="Events that are made here of findings"),
        pytest.param("event", (), "another", OUTCOMES, [], id="Events that are made here of outcomes"),
    ],
)
async def test_a_command_that_only_a_topic_tells_of_is_doubted_by_its_sink(
    kind: str, decided_here: tuple[str, ...], decided: str, topic: Topic, doubted: list[str]
) -> None:
    bench = Bench(kind=kind, decided_here=decided_here)
    bench.dispatcher.sinks[kind] = sink = DoubtingSink(kind)
    bench.wanted.begin()
    bench.wanted.decide([bench.action(decided, "pod/shop/a")], ())
    sink.gate.release()
    await bench.order("one", "pod/shop/a", NOW, topic).acked.wait()
    assert (sink.doubted, bench.results) == (doubted, ["applied"])


async def test_a_command_decided_here_by_an_earlier_run_may_have_been_carried_out() -> None:
    bench = Bench(kind="bind", decided_here=("bind",))
    bench.dispatcher.sinks["bind"] = sink = RecallingSink("bind")
    bench.wanted.order([bench.action("new", "pod/b")])
    bench.wanted.decide([], {"earlier"})
    sink.gate.release()
    sink.gate.release()
    await asyncio.gather(bench.order("earlier", "pod/a").acked.wait(), bench.order("new", "pod/b").acked.wait())
    assert (sink.recalled, sorted(bench.results)) == (["earlier"], ["applied", "applied"])


async def test_an_order_repeated_while_its_failure_is_being_published_is_carried_out() -> None:
    bench = Bench(decided_here=("label",))
    bench.sink.result = "failed"
    bench.wanted.decide([bench.action("same")], ())
    first = bench.order("same")
    await bench.begun()
    bench.publishing.clear()
    bench.sink.gate.release()
    await bench.asked.wait()
    bench.wanted.order([bench.action("same")])  # the outcome was read from the topic before its acknowledgement came
    second = bench.order("same")
    bench.publishing.set()
    await first.acked.wait()
    bench.sink.gate.release()
    await second.acked.wait()
    assert (bench.results, bench.reasons) == (["failed", "failed"], ["", ""])


@pytest.mark.parametrize("earlier", [False, True], ids=["of this run", "of an earlier run"])
async def test_a_command_that_the_topic_holds_twice_is_carried_out_once_though_it_failed(earlier: bool) -> None:
    bench = Bench(decided_here=("label",))
    bench.sink.result = "failed"
    bench.wanted.decide([] if earlier else [bench.action("same")], {"same"} if earlier else ())
    for _ in range(2):
        bench.sink.gate.release()
        await bench.order("same").acked.wait()
    assert (bench.results, bench.reasons) == (["failed"], [""])


async def test_a_command_that_failed_and_is_ordered_once_more_is_carried_out_once_more() -> None:
    bench = Bench(decided_here=("label",))
    bench.sink.result = "failed"
    for _ in range(2):
        bench.wanted.decide([bench.action("same")], ())
        bench.sink.gate.release()
        await bench.order("same").acked.wait()
    assert (bench.results, bench.reasons) == (["failed", "failed"], ["", ""])


async def test_a_newer_order_is_the_only_one_that_is_carried_out_after_it() -> None:
    bench = Bench(decided_here=("label",))
    bench.wanted.decide([bench.action("older")], ())
    bench.sink.gate.release()
    await bench.order("older").acked.wait()
    bench.wanted.order([bench.action("newer")])
    await bench.order("older").acked.wait()
    assert (bench.results, bench.reasons) == (["applied", "refused"], ["", SUPERSEDED])


async def test_a_sink_that_gives_no_answer_in_time_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    hasty = {kind: replace(row, patience=0.0) for kind, row in COMMANDS.items()}
    monkeypatch.setattr(dispatcher_module, "COMMANDS", hasty)
    bench = Bench()
    await bench.order("hangs").acked.wait()
    assert (bench.results, bench.reasons, bench.letters) == (["failed"], ["no answer within 0 s"], [])


class LosingSink(SlowSink):
    """What its first write waits for is cancelled by somebody else."""

    async def apply(self, action: Action) -> Outcome:
        """See `ports.Sink`."""
        if action.id == "lost":
            answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            answer.cancel()
            return await answer
        return await super().apply(action)


async def test_a_write_that_is_cancelled_under_way_has_failed_and_the_next_one_goes_on() -> None:
    bench = Bench(kind="drs-rule")  # its commands are carried out one after another
    bench.dispatcher.sinks["drs-rule"] = sink = LosingSink("drs-rule")
    events = [bench.order("lost", "drs-rule/C0/a"), bench.order("next", "drs-rule/C0/b")]
    sink.gate.release()
    async with asyncio.timeout(30):
        await asyncio.gather(*(event.acked.wait() for event in events))
    assert list(zip(bench.outcomes, bench.results, bench.reasons, strict=True)) == [
        ("lost", "failed", "it was cancelled under way, and may have been done"),
        ("next", "applied", ""),
    ]
    assert bench.failures == []


async def test_a_binder_of_its_own_carries_out_what_was_ordered_while_it_was_down() -> None:
    bench = Bench(kind="bind")
    bench.wanted.begin()
    bench.order("ordered")
    assert await bench.begun() == "ordered"


async def test_while_writes_stop_a_command_fails_with_the_reason_and_the_sink_is_not_asked() -> None:
    bench = Bench(decided_here=("label",))
    bench.stopped = "hosts: 4 of 7 are missing"
    event = bench.order("first")  # of an earlier run: it need not wait for the first decisions of this one
    await event.acked.wait()
    assert (bench.results, bench.reasons) == (["failed"], ["writes stop: hosts: 4 of 7 are missing"])
    assert bench.sink.begun.empty()


async def test_a_command_waiting_for_first_decisions_is_dropped_if_writes_stop_meanwhile() -> None:
    bench = Bench(decided_here=("label",))
    bench.wanted.begin()
    event = bench.order("first")
    await asyncio.sleep(0)
    bench.stopped = "hosts: 4 of 7 are missing"
    bench.wanted.decide([], {"first"})
    await event.acked.wait()
    assert bench.reasons == ["writes stop: hosts: 4 of 7 are missing"]
    assert bench.sink.begun.empty()


@pytest.mark.parametrize("decided_here", [(), ("bind",)], ids=["another worker decides its kind", "so does this one"])
async def test_a_command_somebody_waits_for_is_answered_at_once_and_its_outcome_published(
    decided_here: tuple[str, ...],
) -> None:
    bench = Bench(kind="bind", decided_here=decided_here)
    bench.wanted.decide([], ())
    answer = asyncio.create_task(bench.dispatcher.perform(Action("now", "bind", "pod/shop/a", {}, "", {})))
    assert await bench.begun() == "now"
    bench.sink.gate.release()
    assert await answer == Outcome("now", "bind", "pod/shop/a", "applied", "")
    await bench.told(1)
    assert (bench.outcomes, bench.results) == (["now"], ["applied"])


async def test_a_command_somebody_waits_for_ends_where_the_partition_may_move() -> None:
    bench = Bench(kind="bind")
    first, second = (Action(name, "bind", f"pod/shop/{name}", {}, "", {}) for name in "ab")
    answer = asyncio.create_task(bench.dispatcher.perform(first))
    await bench.begun()
    await bench.dispatcher.suspend()
    bench.sink.gate.release()
    ended, refused = await answer, await bench.dispatcher.perform(second)
    assert ended is not None
    assert refused is not None
    assert (ended.result, refused.result, refused.reason) == ("failed", "failed", ENDS)
    assert (bench.sink.begun.empty(), bench.outcomes) == (True, [])


async def test_a_command_whose_turn_has_not_come_is_answered_where_the_site_may_move() -> None:
    bench = Bench(kind="drs-rule")
    first, second = (Action(name, "drs-rule", f"drs-rule/C0/{name}", {}, "", {}) for name in "ab")
    answers = [asyncio.create_task(bench.dispatcher.perform(action)) for action in (first, second)]
    await bench.begun()
    await bench.dispatcher.suspend()
    ended = [outcome and (outcome.id, outcome.result, outcome.reason) for outcome in await asyncio.gather(*answers)]
    assert ended == [("a", "failed", ENDS), ("b", "failed", ENDS)]
    assert (bench.sink.begun.empty(), bench.outcomes) == (True, [])


async def test_a_command_nobody_waits_for_any_more_is_not_begun_but_ends_once_begun() -> None:
    bench = Bench(kind="drs-rule")
    first, second = (Action(name, "drs-rule", f"drs-rule/C0/{name}", {}, "", {}) for name in "ab")
    answers = [asyncio.create_task(bench.dispatcher.perform(action)) for action in (first, second)]
    await bench.begun()
    for answer in answers:
        answer.cancel()
    await asyncio.gather(*answers, return_exceptions=True)
    event = bench.order("c", "drs-rule/C0/c")
    bench.sink.gate.release()
    assert await bench.begun() == "c"
    bench.sink.gate.release()
    await event.acked.wait()
    assert list(zip(bench.outcomes, bench.results, strict=True)) == [("a", "applied"), ("c", "applied")]


async def test_what_is_refused_or_stopped_reaches_no_sink_but_is_an_outcome() -> None:
    bench, action = Bench(kind="bind"), Action("now", "bind", "pod/shop/a", {}, "", {})
    assert await bench.dispatcher.perform(action, "a shared host") == Outcome(
        "now", "bind", "pod/shop/a", "refused", "a shared host"
    )
    bench.stopped = "half the nodes are gone"
    assert await bench.dispatcher.perform(action) == Outcome(
        "now", "bind", "pod/shop/a", "failed", "writes stop: half the nodes are gone"
    )
    await bench.told(2)
    assert bench.results == ["refused", "failed"]
    assert bench.sink.begun.empty()
    assert await bench.dispatcher.perform(Action("now", "label", "node/n1", {}, "", {})) is None


async def test_more_commands_than_a_minute_may_see_are_failed_outcomes_with_the_reason() -> None:
    bench = Bench(limits={"label": 2})
    bench.sink.gate.release()
    bench.sink.gate.release()
    for number in range(3):
        await bench.order(f"order-{number}", target=f"node/n{number}").acked.wait()
    assert bench.results == ["applied", "applied", "failed"]
    assert bench.reasons[2] == "held back: 2 label writes in the last minute (limits)"


async def test_what_a_sink_did_not_write_does_not_count_against_the_limit() -> None:
    bench = Bench(limits={"label": 1})
    bench.sink.result = "noop"
    for number in range(3):
        bench.sink.gate.release()
        await bench.order(f"order-{number}").acked.wait()
    assert bench.results == ["noop"] * 3
