"""What people are to be told of findings and outcomes: records of both topics as `event` commands.

In: records of one site. Out: commands for the sink of Events. Nothing is told of long ago: an Event says what happens
now. The records name pods, nodes and commands that other topics bring: they are waited for, for a moment.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.events.messages import TOLD, EventMessages
from underhost.agents.site.objects import decode_record
from underhost.schemas.errors import BadEvent
from underhost.schemas.records import Action, FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, NODES, PODS, VIOLATIONS, Topic
from underhost.streams.derived import target_key

T = TypeVar("T")

LATE = 900.0
"""Seconds after which nothing is told of a record: a worker that was down for hours says nothing of what is over."""
LAG, LOOK = 2.0, 0.02
"""Seconds that a record waits for the topics that it rests on, and between two looks."""


class Announcements:
    """What is told of one site."""

    def __init__(self, site: str, sites: Sites, tables: Tables) -> None:
        self._site, self._sites, self._tables = site, sites, tables
        self._messages = EventMessages(self._node_of)

    def resume(self) -> None:
        """The partition is held from now on: the findings that are open, as the table has them."""
        self._messages = EventMessages(self._node_of, self._tables.records(VIOLATIONS, FindingEvent, self._site))

    async def commands_of(self, topic: Topic, message: Any) -> list[Action]:
        """What is to be told of one record of `violations` or `outcomes`. Raises BadEvent."""
        row = decode_record(topic, message.value)
        if time.time() - message.timestamp > LATE:
            return []
        if isinstance(row, FindingEvent):
            await self._reached(row.snapshot)
            return self._messages.of_finding(row)
        if isinstance(row, Outcome):
            needed = row.kind in TOLD and TOLD[row.kind].needs_command
            action = await self._command_of(row) if needed else None
            return self._messages.of_outcome(row, action, self._nodes_of)
        return []

    async def _reached(self, offsets: Mapping[str, int]) -> None:
        """Until the tables hold the picture that was decided from, or it takes too long."""
        partition = self._sites.partition_of(self._site)

        def reached() -> bool:
            return all(self._sites.following(t, partition) > offsets.get(t.short, -1) for t in (NODES, PODS))

        await _found(reached)

    async def _command_of(self, outcome: Outcome) -> Action | None:
        """The command that is answered; the newest of its target has another id where that was superseded."""
        key = target_key(self._site, outcome.target)

        def found() -> Action | None:
            row = self._tables.row(ACTIONS, key)
            try:
                action = decode_record(ACTIONS, row) if row is not None else None
            except BadEvent:
                return None
            return action if isinstance(action, Action) and action.id == outcome.id else None

        return await _found(found)

    def _node_of(self, pod: str) -> str:
        state = self._sites.states.get(self._site)
        row = state.rows(PODS).get(pod) if state is not None else None
        return row.spec.node_name if row is not None else ""

    def _nodes_of(self, vms: Collection[str]) -> list[str]:
        rows = self._tables.records(NODE_HOSTS, NodeHost, self._site)
        return sorted(row.node for row in rows if row.vm in vms)


async def _found(look: Callable[[], T]) -> T:
    """What a look finds, as soon as it finds something; after `LAG` also nothing."""
    left = LAG
    while not (one := look()) and left > 0:
        await asyncio.sleep(LOOK)
        left -= LOOK
    return one
