"""Findings and outcomes to the event sink: an agent on `violations` and one on `outcomes`, in the worker that tells.

In: records of both topics, of one site. Out: `event` commands, handed to the sinks' runner of this worker, which
answers each on `outcomes`. A record is acknowledged once all that is to be told of it is told: a killed worker's come
again, and the sink writes nothing twice. Nothing is told of long ago: an Event says what happens now.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import faust

from underhost.agents.pipeline.dispatch.actions import SinkRunner
from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.events.messages import TOLD, EventMessages
from underhost.agents.site.objects import decode_record
from underhost.schemas.errors import BadEvent
from underhost.schemas.keys import site_of
from underhost.schemas.records import Action, FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, NODES, OUTCOMES, PODS, VIOLATIONS, Topic
from underhost.streams.derived import target_key
from underhost.streams.faust.app import declare

LATE = 900.0
"""Seconds after which nothing is told of a record: a worker that was down for hours says nothing of what is over."""
LAG, LOOK = 2.0, 0.02
"""Seconds that a record waits for the topics that it rests on, and between two looks."""


class EventAgents:
    """Tells of one site. `wall` is the time in seconds since 1970."""

    def __init__(self, runner: SinkRunner, sites: Sites, tables: Tables, wall: Callable[[], float] = time.time) -> None:
        self._runner, self._sites, self._tables, self._wall = runner, sites, tables, wall
        self._messages = EventMessages(self._node_of)

    def attach(self, app: faust.App) -> None:
        """The agents; without a sink there is nothing to tell."""
        for topic in (VIOLATIONS, OUTCOMES):
            app.agent(declare(app, topic), name=f"events-{topic.short}")(self._agent(topic))

    def resume(self) -> None:
        """The partition is held from now on: the findings that are open, as the table has them."""
        self._messages = EventMessages(self._node_of, self._tables.records(VIOLATIONS, FindingEvent, self._runner.site))

    def _agent(self, topic: Topic) -> Callable[[Any], Any]:
        async def tell(stream: Any) -> None:
            async for event in stream.noack().events():
                share = _Share(event)
                try:
                    for action in await self.actions(topic, event.message):
                        self._runner.take(action, share.one())
                except BadEvent:
                    pass  # the tables put it into dead-letters
                share.close()

        return tell

    async def actions(self, topic: Topic, message: Any) -> list[Action]:
        """What is to be told of one record. Raises BadEvent."""
        site = self._runner.site
        if site_of((message.key or b"").decode("utf-8", "replace")) != site:
            return []
        row = decode_record(topic, message.value)
        if isinstance(row, FindingEvent):
            if not self._is_late(message):
                await self._reached(row.snapshot)
                return self._messages.of_finding(row)
        elif isinstance(row, Outcome) and not self._is_late(message):
            needed = row.kind in TOLD and TOLD[row.kind].needs_command
            action = await self._command_of(row) if needed else None
            return self._messages.of_outcome(row, action, self._nodes_of)
        return []

    def _is_late(self, message: Any) -> bool:
        return bool(self._wall() - message.timestamp > LATE)

    async def _reached(self, offsets: Mapping[str, int]) -> None:
        """Until the tables hold the picture that was decided from, or it takes too long."""
        partition = self._sites.partition_of(self._runner.site)

        def behind() -> bool:
            return any(self._sites.following(t, partition) <= offsets.get(t.short, -1) for t in (NODES, PODS))

        await _until(lambda: not behind())

    async def _command_of(self, outcome: Outcome) -> Action | None:
        """The command that is answered; the newest of its target has another id where that was superseded."""
        key = target_key(self._runner.site, outcome.target)

        def found() -> Action | None:
            row = self._tables.row(ACTIONS, key)
            try:
                action = decode_record(ACTIONS, row) if row is not None else None
            except BadEvent:
                return None
            return action if isinstance(action, Action) and action.id == outcome.id else None

        await _until(lambda: found() is not None)
        return found()

    def _node_of(self, pod: str) -> str:
        state = self._sites.states.get(self._runner.site)
        row = state.rows(PODS).get(pod) if state is not None else None
        return row.spec.node_name if row is not None else ""

    def _nodes_of(self, vms: Collection[str]) -> list[str]:
        rows = self._tables.records(NODE_HOSTS, NodeHost, self._runner.site)
        return sorted(row.node for row in rows if row.vm in vms)


async def _until(true: Callable[[], bool]) -> None:
    """Until it is true, `LAG` at most."""
    left = LAG
    while not true() and left > 0:
        await asyncio.sleep(LOOK)
        left -= LOOK


class _Share:
    """One event of a stream that several commands wait for: it is acknowledged after the last."""

    def __init__(self, event: Any) -> None:
        self.message = event.message
        self._event, self._open = event, 1

    def one(self) -> "_Share":
        """One more command waits."""
        self._open += 1
        return self

    def ack(self) -> None:
        """One of them is done."""
        self._open -= 1
        if not self._open:
            self._event.ack()

    def close(self) -> None:
        """No more of them."""
        self.ack()
