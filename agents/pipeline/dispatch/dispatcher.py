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

from underhost.agents.pipeline.dispatch.lanes import Lanes
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
from underhost.streams.limits import Limits

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
    events: list[Any]
    since: float = field(default_factory=now)


@dataclass
class _Awaited:
    """A command whose outcome somebody waits for."""

    action: Action
    answer: "asyncio.Future[Outcome]"

    def answered(self, result: Outcome) -> None:
        """This became of it; whoever asked may have gone."""
        if not self.answer.done():
            self.answer.set_result(result)


class Dispatcher:
    """Carries out the commands of one site, from each `resume` to the next `stop`.

    Faust's readers do not end with the partition: what they have fetched still comes. It is left out, and not
    acknowledged, so that the next owner of the partition reads it again.

    `gates` come before every write; `wanted` is the one of them that knows which commands this run has decided.
    `answered` tells whether a command's outcome is known already. `left` tells whether a command that came at this time
    (boot-time seconds) is left to another worker, which answers it; it may wait until that is settled. `ended` is
    called with each task and each publishing once it has ended, `wall` is the time in seconds since 1970.
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
        ended: Callable[["asyncio.Future[None]"], None],
        left: Callable[[Action, float], Awaitable[bool]],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.site, self._wall = site, wall
        self.sinks = {sink.kind: sink for sink in sinks}
        self.wanted, self._gates = wanted, tuple(gates)
        self._publisher, self._outbox = publisher, Outbox(publisher, "outcomes")
        self._answered, self._ended, self._left = answered, ended, left
        self._limits = {kind: Limits() for kind in self.sinks}
        self._lanes = {kind: Lanes(kind, COMMANDS[kind].lanes, self._work, ended) for kind in self.sinks}
        self._waiting: dict[tuple[str, str], _Backlog] = {}
        self._under_way: set[tuple[str, str]] = set()
        self._is_open = False

    def resume(self) -> None:
        """The partition is held: carry out what comes from now on."""
        self._is_open = True

    def take(self, action: Action, event: Any) -> None:
        """Carry out the action unless a newer one for its target comes before its turn; `event` is acked after it."""
        if not self._is_open:
            return
        place = (action.kind, action.target)
        waiting = self._waiting.get(place)
        if waiting is not None:
            waiting.action = action
            waiting.events.append(event)
            return
        self._waiting[place] = waiting = _Backlog(action, [event])
        if place not in self._under_way:  # else it has its turn after that
            self._lanes[action.kind].put(waiting)

    async def refuse(self, action: Action, why: str, event: Any) -> None:
        """A record that is no command of ours: it is said, under the digest of its content, and changes nothing.

        Its own id may be that of a command that waits; whoever ordered that one would take this outcome for its.
        Returns once that is published and `event` acked, or the partition may move.
        """
        if not self._is_open:
            return
        log.error("%s %s is refused: %s", action.kind, action.target, why)
        published = self._publish(outcome(msgspec.structs.replace(action, id=digest_of(action)), REFUSED, why))
        await asyncio.wait([published])
        if not published.cancelled():
            published.result()
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
            self._publish(result)
            return result
        self.wanted.order([action])
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._lanes[action.kind].put(_Awaited(action, answer))
        return await answer

    def abandon(self, kinds: Collection[str]) -> None:
        """Another worker carries these kinds out: what is under way ends at its next step, and counts as failed."""
        self.wanted.forget(kinds)
        for kind in self._limits.keys() & set(kinds):
            self._limits[kind].end("another worker carries it out by now")

    def stop(self) -> None:
        """Begin nothing from now on; what is under way ends at its next step."""
        if not self._is_open:
            return  # cancelled once more, it would not wait for its own end
        self._is_open = False
        self._waiting.clear()
        for lanes in self._lanes.values():
            for order in lanes.stop():
                if isinstance(order, _Awaited):
                    order.answered(outcome(order.action, FAILED, ENDS))

    async def suspend(self) -> None:
        """The partition may move: what is not done is left to its next owner."""
        self.stop()
        self.wanted.end()
        for lanes in self._lanes.values():
            await lanes.ended()
        await self._outbox.close()
        self._under_way.clear()

    async def _work(self, order: _Backlog | _Awaited) -> None:
        """A command whose turn it is. That its outcome is not published yet holds up no other target's."""
        if isinstance(order, _Awaited):
            await self._answer(order)
            return
        place = (order.action.kind, order.action.target)
        del self._waiting[place]
        self._under_way.add(place)
        result = await self._carry_out(order)
        if result is None:
            self._done(order)
        else:
            self._publish(result).add_done_callback(lambda published: self._published(order, published))

    async def _answer(self, awaited: _Awaited) -> None:
        action = awaited.action
        if awaited.answer.done():
            return  # whoever asked has gone
        try:
            result = await refusal(self._gates, action, patient=False) or await self._apply(action, None)
            self.wanted.done(action)
            self._publish(result)
            awaited.answered(result)
        finally:
            awaited.answered(outcome(action, FAILED, ENDS))  # unless it was answered, it was ended under way

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

    async def _apply(self, action: Action, message: Any) -> Outcome:
        """What the sink says. Whatever it raises is a bug of it, and must not stop the others' commands."""
        patience = COMMANDS[action.kind].patience
        try:
            with self._limits[action.kind].begin(patience) as limit:
                result = await self._way(action, message)(action)
        except asyncio.CancelledError:
            if (lane := asyncio.current_task()) is None or lane.cancelling():
                raise
            return outcome(action, FAILED, "it was cancelled under way, and may have been done")
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.is_over:
                return outcome(action, FAILED, limit.why or f"no answer within {patience:.0f} s")
            log.error("sink %s raised for %s", action.kind, action.target, exc_info=error)
            if message is not None:
                await self._publisher.dead_letter(message, STAGE, error)
            return outcome(action, FAILED, f"{type(error).__name__}: {error}")
        for gate in self._gates:
            gate.answered(result)
        return result

    def _way(self, action: Action, message: Any) -> Callable[[Action], Awaitable[Outcome]]:
        """How the sink carries it out, by what this worker knows of it besides the record."""
        sink = self.sinks[action.kind]
        if message is None:
            return sink.apply
        if message.topic in ORDERS and not self.wanted.knows(action):
            return sink.told
        # A command from before our time may have been carried out already, without an outcome.
        return sink.apply if self.wanted.is_of_this_run(action, message.timestamp) else sink.again

    def _publish(self, result: Outcome) -> "asyncio.Future[None]":
        """Done once it is published; cancelled where the partition may move."""
        published = self._outbox.publish(outgoing(OUTCOMES, target_key(self.site, result.target), result))
        published.add_done_callback(self._ended)
        return published

    def _published(self, waiting: _Backlog, published: "asyncio.Future[None]") -> None:
        if not published.cancelled() and published.exception() is None:
            self._done(waiting)

    def _done(self, waiting: _Backlog) -> None:
        """Its outcome is known: acknowledge its records, and go on with the next command of its target."""
        place = (waiting.action.kind, waiting.action.target)
        self.wanted.done(waiting.action)
        for event in waiting.events:
            event.ack()
        self._under_way.discard(place)
        if place in self._waiting:
            self._lanes[place[0]].put(self._waiting[place])
