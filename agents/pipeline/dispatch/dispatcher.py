"""Carries out commands: each in its turn, past the gates, by the sink of its kind; the answer goes to `outcomes`.

In: commands from the topics (`consumers.py`), and from whoever in this process waits for an outcome. Out: outcomes, and
dead letters (stage `sinks`) for what makes a sink raise. Of a backlog only the newest command of each target is carried
out. A record is acknowledged once its outcome is published, so a killed worker's commands come again: sinks read before
they write.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from underhost.agents.pipeline.gates.may_write import Gate, refusal
from underhost.agents.pipeline.gates.wanted import WantedCommands
from underhost.agents.pipeline.publisher import AgentPublisher, Outbox
from underhost.agents.sinks.orders import FAILED, REFUSED, digest_of, outcome
from underhost.agents.sinks.ports import Sink
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS, OUTCOMES, PLACEMENTS
from underhost.streams.derived import outgoing, target_key
from underhost.streams.faust.membership import now

log = logging.getLogger(__name__)

STAGE = "sinks"
ORDERS = frozenset({ACTIONS.name, PLACEMENTS.name})
"""The topics that bring commands as they were decided; of the records of others this worker makes its own."""
ENDS = "this worker carries nothing out now: the site may be another worker's"
"""What is said of a command whose outcome somebody waits for here."""


@dataclass
class _Backlog:
    """The newest command of a target, the events that wait for it, and when the first came (boot-time seconds)."""

    action: Action
    events: list[Any] = field(default_factory=list)
    since: float = field(default_factory=now)


async def never_left(action: Action, since: float) -> bool:
    """No command is left to another worker."""
    return False


class Dispatcher:
    """Carries out the commands of one site, from each `resume` to the next `stop`.

    Faust's readers do not end with the partition: what they have fetched still comes. It is left out, and not
    acknowledged, so that the next owner of the partition reads it again.

    `gates` come before every write; `wanted` is the one of them that knows which commands this run has decided.
    `answered` tells whether a command's outcome is known already. `left` tells whether a command that came at this time
    (boot-time seconds) is left to another worker, which answers it; it may wait until that is settled. `ended` is
    called with each task once it has ended, `wall` is the time in seconds since 1970.
    """

    def __init__(
        self,
        site: str,
        sinks: Iterable[Sink],
        gates: Sequence[Gate],
        wanted: WantedCommands,
        publisher: AgentPublisher,
        *,
        answered: Callable[[str, Action], bool],
        ended: Callable[["asyncio.Task[None]"], None],
        left: Callable[[Action, float], Awaitable[bool]] = never_left,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.site, self._wall = site, wall
        self.sinks = {sink.kind: sink for sink in sinks}
        self.wanted, self._gates = wanted, tuple(gates)
        self._publisher, self._outbox = publisher, Outbox(publisher, "outcomes")
        self._answered, self._ended, self._left = answered, ended, left
        self._applying: dict[asyncio.Future[Outcome], str] = {}
        self._lanes = {kind: asyncio.Semaphore(COMMANDS[kind].lanes) for kind in self.sinks}
        self._waiting: dict[tuple[str, str], _Backlog] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._publishing: set[asyncio.Task[None]] = set()
        self._is_open = False

    def resume(self) -> None:
        """The partition is held: carry out what comes from now on."""
        self._is_open = True

    def take(self, action: Action, event: Any) -> None:
        """Carry out the action unless a newer one for its target comes before its turn; `event` is acked after it."""
        if not self._is_open:
            return
        place = (action.kind, action.target)
        waiting = self._waiting.setdefault(place, _Backlog(action))
        waiting.action = action
        waiting.events.append(event)
        if place not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._work(place), name=f"sink {action.kind} {action.target}")
            self._tasks[place] = task
            task.add_done_callback(self._ended)

    async def refuse(self, action: Action, why: str, event: Any) -> None:
        """A record that is no command of ours: it is said, under the digest of its content, and changes nothing.

        Its own id may be that of a command that waits; whoever ordered that one would take this outcome for its.
        Returns once that is published and `event` acked, or the partition may move.
        """
        if not self._is_open:
            return
        log.error("%s %s is refused: %s", action.kind, action.target, why)
        refused = outcome(msgspec.structs.replace(action, id=digest_of(action)), REFUSED, why)
        # A task of its own: the reader outlives this run, and would wait for ever for what nobody publishes any more.
        publishing = self._publish_beside(refused)
        await asyncio.wait([publishing])
        if not publishing.cancelled():
            publishing.result()
            event.ack()

    async def perform(self, action: Action, refused: str | None = None) -> Outcome | None:
        """Carry out, or refuse, a command whose outcome somebody waits for; None where there is no sink for it.

        It is wanted, for it was decided just now. Its outcome is published like any other's, but not waited for: what
        is done is done.
        """
        if action.kind not in self.sinks:
            return None
        if not self._is_open:
            return outcome(action, FAILED, ENDS)
        if refused is not None:
            result = outcome(action, REFUSED, refused)
        else:
            self.wanted.order([action])
            async with self._lanes[action.kind]:
                result = await self._perform(action)
            self.wanted.done(action)
        if self._is_open:
            self._publish_beside(result)
        return result

    async def _perform(self, action: Action) -> Outcome:
        if not self._is_open:
            return outcome(action, FAILED, ENDS)
        return await refusal(self._gates, action, patient=False) or await self._apply(action, None)

    def abandon(self, kinds: Collection[str]) -> None:
        """Another worker carries these kinds out: what is under way ends at its next step, and counts as failed."""
        self.wanted.forget(kinds)
        for answer, kind in self._applying.items():
            if kind in kinds:
                answer.cancel()

    def stop(self) -> None:
        """Begin nothing from now on; what is under way ends at its next step."""
        if not self._is_open:
            return  # cancelled once more, it would not wait for its own end
        self._is_open = False
        self._waiting.clear()
        under_way: list[asyncio.Future[Any]] = [*self._tasks.values(), *self._applying]
        for each in under_way:
            each.cancel()

    async def suspend(self) -> None:
        """The partition may move: what is not done is left to its next owner."""
        self.stop()
        self.wanted.end()
        tasks = [*self._tasks.values(), *self._publishing]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._applying, return_exceptions=True)
        await self._outbox.close()

    async def _work(self, place: tuple[str, str]) -> None:
        while place in self._waiting:
            async with self._lanes[place[0]]:
                waiting = self._waiting.pop(place)
                result = await self._carry_out(waiting)
            await self._done(waiting, result)
        # Here and not when the task ends: a command that comes in between would wait for nobody.
        self._tasks.pop(place, None)

    async def _carry_out(self, waiting: _Backlog) -> Outcome | None:
        """What became of the command that came last; None where that is known, or another worker's to say."""
        action, message = waiting.action, waiting.events[-1].message
        if self.wanted.was_done(action):
            return None
        if self._is_answered(action) or await self._left(action, waiting.since) or self._is_answered(action):
            return None
        return (
            self._too_old(action, message) or await refusal(self._gates, action) or await self._apply(action, message)
        )

    def _is_answered(self, action: Action) -> bool:
        return self._answered(target_key(self.site, action.target), action)

    def _too_old(self, action: Action, message: Any) -> Outcome | None:
        """The refusal of a command that has waited for too long: much may have changed since it was decided."""
        age = self._wall() - message.timestamp
        if age <= COMMANDS[action.kind].stands:
            return None
        return outcome(action, REFUSED, f"it was decided {age:.0f} s ago, and much may have changed since")

    async def _done(self, waiting: _Backlog, result: Outcome | None) -> None:
        """Publish the outcome, which the next target's command need not wait for, and acknowledge the records."""
        if result is not None:
            await self._publish(result)
        self.wanted.done(waiting.action)
        for event in waiting.events:
            event.ack()

    async def _apply(self, action: Action, message: Any) -> Outcome:
        """What the sink says. Whatever it raises is a bug of it, and must not stop the others' commands."""
        answer: asyncio.Future[Outcome] = asyncio.ensure_future(self._way(action, message)(action))
        self._applying[answer] = action.kind
        try:
            await asyncio.wait([answer], timeout=COMMANDS[action.kind].patience)
            timed_out = answer.cancel()  # does nothing to one that is done
        except asyncio.CancelledError:
            answer.cancel()
            await asyncio.wait([answer])
            raise
        finally:
            del self._applying[answer]
        if timed_out:
            return outcome(action, FAILED, f"no answer within {COMMANDS[action.kind].patience:.0f} s")
        if answer.cancelled():
            return outcome(action, FAILED, "another worker carries it out by now" if self._is_open else ENDS)
        error = answer.exception()
        if error is None:
            for gate in self._gates:
                gate.answered(answer.result())
            return answer.result()
        log.error("sink %s raised for %s", action.kind, action.target, exc_info=error)
        if message is not None:
            await self._publisher.dead_letter(message, STAGE, error)
        return outcome(action, FAILED, f"{type(error).__name__}: {error}")

    def _way(self, action: Action, message: Any) -> Callable[[Action], Awaitable[Outcome]]:
        """How the sink carries it out, by what this worker knows of it besides the record."""
        sink = self.sinks[action.kind]
        if message is None:
            return sink.apply
        if message.topic in ORDERS and not self.wanted.knows(action):
            return sink.told
        # A command from before our time may have been carried out already, without an outcome.
        return sink.apply if self.wanted.is_of_this_run(action, message.timestamp) else sink.again

    def _publish_beside(self, result: Outcome) -> "asyncio.Task[None]":
        """Publish it in a task of its own, which ends where the partition may move."""
        name = f"outcome {result.kind} {result.target}"
        publishing = asyncio.get_running_loop().create_task(self._publish(result), name=name)
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
        return publishing

    async def _publish(self, result: Outcome) -> None:
        await self._outbox.publish(outgoing(OUTCOMES, target_key(self.site, result.target), result))
