"""Commands to the sinks: an agent on `actions`, and one on `placements` for the binder; each answer goes to `outcomes`.

In: records of both topics. Out: outcomes, and dead letters (stage `sinks`) for what makes a sink raise; what cannot be
read is put there by the tables. Of a backlog only the newest command of each target is carried out, and where the
decisions are made in this worker, too, only if this run has made them or they still stand: what was decided before a
crash, or by a worker that does not know yet that the site is another's, may be wrong. A record is acknowledged once its
outcome is published, so a killed worker's commands come again: sinks read before they write.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import faust

from underhost.agents.pipeline.batches import Outbox
from underhost.agents.pipeline.gates.limits import WriteLimits
from underhost.agents.sinks.ports import Sink
from underhost.agents.sinks.registry import COMMANDS
from underhost.agents.site.objects import decode_record
from underhost.schemas.commands import BIND
from underhost.schemas.errors import BadEvent
from underhost.schemas.keys import site_of
from underhost.schemas.records import Action, Outcome, Placement
from underhost.schemas.topics import ACTIONS, OUTCOMES, PLACEMENTS, Topic
from underhost.streams.derived import outgoing, target_key
from underhost.streams.faust.app import declare
from underhost.streams.faust.membership import Membership
from underhost.streams.ports import Publisher

log = logging.getLogger(__name__)

STAGE = "sinks"
PATIENCE = 60.0
"""Seconds that a sink may take for one command."""

WRITES = frozenset({"applied", "failed"})
"""Results of commands that were, or may have been, a write."""

SUPERSEDED = "it was ordered before a restart or by another worker, and is not what is wanted now"

DeadLetter = Callable[[Any, str, BaseException], Awaitable[None]]


@dataclass
class _Waiting:
    """The newest command of a target, and the events that wait for it."""

    action: Action
    events: list[Any] = field(default_factory=list)


class SinkRunner:
    """Carries out commands for one site. `answered` tells whether a command's outcome is known already.

    `decided_here` are the kinds of commands that this worker's own cycles order; `forbids` tells why no command of a
    kind may be carried out now, "" where one may; `limits` is how many may be, in a minute. While `membership` is in
    doubt nothing of the topics begins.
    """

    def __init__(
        self,
        site: str,
        sinks: Iterable[Sink],
        publisher: Publisher,
        dead_letter: DeadLetter,
        *,
        answered: Callable[[str, Action], bool],
        failed: Callable[[BaseException], None],
        decided_here: Collection[str] = (),
        membership: Membership | None = None,
        forbids: Callable[[str], str] = lambda kind: "",
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.site = site
        self.sinks = {sink.kind: sink for sink in sinks}
        self._outbox, self._dead_letter = Outbox(publisher, "outcomes"), dead_letter
        self._answered, self._failed = answered, failed
        self._slots = {kind: asyncio.Semaphore(COMMANDS[kind].lanes) for kind in self.sinks}
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._publishing: set[asyncio.Task[None]] = set()
        self._decided_here, self._began = frozenset(decided_here), 0.0
        self._membership, self._forbids = membership or Membership(), forbids
        self._limits = WriteLimits(limits or {})
        self._ordered: dict[tuple[str, str], str] = {}
        self._confirmed: frozenset[str] = frozenset()
        self._decided = asyncio.Event()

    def resume(self) -> None:
        """The partition is held from now on."""
        self._began = time.time()

    def expect(self, actions: Iterable[Action]) -> None:
        """This run is about to order these: the newest of each target, which every earlier one gives way to."""
        self._ordered.update({_place(action): action.id for action in actions})

    def confirm(self, ids: frozenset[str]) -> None:
        """The first decisions of this run: these of the earlier commands still stand. Later calls do nothing."""
        if not self._decided.is_set():
            self._confirmed = ids
            self._decided.set()

    def take(self, action: Action, event: Any) -> None:
        """Carry out the action unless a newer one for its target comes before its turn; `event` is acked after it."""
        place = _place(action)
        waiting = self._waiting.setdefault(place, _Waiting(action))
        waiting.action = action
        waiting.events.append(event)
        if place not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._work(place), name=f"sink {action.kind} {action.target}")
            self._tasks[place] = task
            task.add_done_callback(self._ended)

    async def perform(self, action: Action, refused: str | None = None) -> Outcome | None:
        """Carry out, or refuse, a command whose outcome somebody waits for; None where there is no sink for it.

        Its outcome is published like any other's, but not waited for: what is done is done.
        """
        if action.kind not in self.sinks:
            return None
        if refused is not None:
            result = Outcome(action.id, action.kind, action.target, "refused", refused)
        elif why := self._forbids(action.kind):
            result = _held_back(action, why)
        else:
            async with self._slots[action.kind]:
                result = await self._answer(action, None)
        publishing = asyncio.get_running_loop().create_task(
            self._publish(target_key(self.site, action.target), result), name=f"outcome {action.kind} {action.target}"
        )
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
        return result

    async def suspend(self) -> None:
        """The partition may move: what is not done is left to its next owner."""
        self._decided.clear()
        self._waiting.clear()
        self._ordered.clear()
        tasks = [*self._tasks.values(), *self._publishing]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._outbox.close()

    async def _work(self, place: tuple[str, str]) -> None:
        while place in self._waiting:
            async with self._slots[place[0]]:
                waiting = self._waiting.pop(place)
                result = await self._carry_out(waiting.action, waiting.events)
            await self._done(waiting.action, waiting.events, result)
        # Here and not when the task ends: a command that comes in between would wait for nobody.
        self._tasks.pop(place, None)

    async def _carry_out(self, action: Action, events: list[Any]) -> Outcome | None:
        """What became of the command; None where that is known already."""
        if self._answered(target_key(self.site, action.target), action):
            return None
        if why := self._forbids(action.kind):
            return _held_back(action, why)
        if not await self._stands(action):
            return Outcome(action.id, action.kind, action.target, "refused", SUPERSEDED)
        await self._membership.confirmed()
        why = self._forbids(action.kind)  # all that may have taken a while
        return _held_back(action, why) if why else await self._answer(action, events[-1].message)

    async def _done(self, action: Action, events: list[Any], result: Outcome | None) -> None:
        """Publish the outcome, which the next target's command need not wait for, and acknowledge the records."""
        if result is not None:
            await self._publish(target_key(self.site, action.target), result)
        if self._ordered.get(_place(action)) == action.id:
            del self._ordered[_place(action)]
        for event in events:
            event.ack()

    async def _answer(self, action: Action, message: Any) -> Outcome:
        """What the sink says. Whatever it raises is a bug of it, and must not stop the others' commands."""
        if why := self._limits.take(action.kind):
            return Outcome(action.id, action.kind, action.target, "failed", why)
        sink = self.sinks[action.kind]
        # A command from before our time may have been carried out already, without an outcome.
        earlier = message is not None and not self._of_this_run(action, message)
        apply: Callable[[Action], Awaitable[Outcome]] = sink.again if earlier else sink.apply
        answer: asyncio.Future[Outcome] = asyncio.ensure_future(apply(action))
        try:
            await asyncio.wait([answer], timeout=PATIENCE)
            timed_out = answer.cancel()  # does nothing to one that is done
        except asyncio.CancelledError:
            answer.cancel()
            await asyncio.wait([answer])
            raise
        if timed_out:
            return Outcome(action.id, action.kind, action.target, "failed", f"no answer within {PATIENCE:.0f} s")
        error = answer.exception()
        if error is None:
            if answer.result().result not in WRITES:
                self._limits.give_back(action.kind)
            return answer.result()
        log.error("sink %s raised for %s", action.kind, action.target, exc_info=error)
        if message is not None:
            await self._dead_letter(message, STAGE, error)
        return Outcome(action.id, action.kind, action.target, "failed", f"{type(error).__name__}: {error}")

    def _of_this_run(self, action: Action, message: Any) -> bool:
        """Whether it was ordered since the partition is ours; where others decide, only the clocks can tell."""
        if action.kind in self._decided_here:
            return self._ordered.get(_place(action)) == action.id
        return bool(message.timestamp >= self._began)

    async def _stands(self, action: Action) -> bool:
        """Whether to carry it out: a command that is not of this run waits for the first decisions of this run."""
        if action.kind not in self._decided_here or self._ordered.get(_place(action)) == action.id:
            return True
        await self._decided.wait()
        return action.id in self._confirmed

    async def _publish(self, key: str, result: Outcome) -> None:
        await self._outbox.publish(outgoing(OUTCOMES, key, result))

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)


def _place(action: Action) -> tuple[str, str]:
    return action.kind, action.target


def _held_back(action: Action, why: str) -> Outcome:
    # Failed and not refused: it is ordered again soon after writes go on.
    return Outcome(action.id, action.kind, action.target, "failed", f"writes stop: {why}")


def attach(
    app: faust.App, runner: SinkRunner, *, action_of: Callable[[Placement], Action | None] | None = None
) -> None:
    """An agent on `actions`; where `action_of` is given, the orders in `placements` are carried out, too."""
    if set(runner.sinks) - {BIND}:
        agent = app.agent(declare(app, ACTIONS), name="sinks-actions")
        agent(_agent(runner, ACTIONS, _as_it_is))
    if action_of is not None:
        agent = app.agent(declare(app, PLACEMENTS), name="sinks-placements")
        agent(_agent(runner, PLACEMENTS, action_of))


def _as_it_is(record: Any) -> Action | None:
    return record if isinstance(record, Action) else None


def _agent(
    runner: SinkRunner, topic: Topic, action_of: Callable[[Any], Action | None]
) -> Callable[[Any], Awaitable[None]]:
    async def carry_out(stream: Any) -> None:
        async for event in stream.noack().events():
            message = event.message
            try:
                record = decode_record(topic, message.value)
                action = action_of(record) if record is not None else None
            except BadEvent:
                # The tables' to answer for: whoever decides keeps one of what it has ordered.
                action = None
            mine = site_of((message.key or b"").decode("utf-8", "replace")) == runner.site
            if action is not None and mine and action.kind in runner.sinks:
                runner.take(action, event)
            else:
                event.ack()

    return carry_out
