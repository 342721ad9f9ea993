"""The Faust agents of what takes time with a record: it is acknowledged once all that it asks for is done.

In: records of `actions` (commands), `placements` (each is the order to bind its pod), `violations` and `outcomes` (each
is told to people). Out: commands in the dispatcher, findings at the webhooks. After a restart, what was not
acknowledged comes again. What cannot be read is left out: the tables put it into dead-letters. What nobody of us has
ordered (its id is not its content's) is refused before it can take the place of a command that waits.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import faust

from underhost.agents.alerts.alerting import Alerting
from underhost.agents.pipeline.dispatch.announcements import Announcements
from underhost.agents.pipeline.dispatch.dispatcher import Dispatcher
from underhost.agents.sinks.bindings import action_of
from underhost.agents.sinks.orders import forged
from underhost.agents.site.objects import decode_record
from underhost.schemas.commands import BIND, EVENT
from underhost.schemas.errors import BadEvent
from underhost.schemas.keys import site_of
from underhost.schemas.records import Action, FindingEvent, Placement
from underhost.schemas.topics import ACTIONS, OUTCOMES, PLACEMENTS, VIOLATIONS, Topic
from underhost.streams.faust.app import declare

CommandsOf = Callable[[Topic, Any], Awaitable[Sequence[Action]]]
"""The commands that a record (topic, Faust message) brings. Raises BadEvent."""


def attach(app: faust.App, dispatcher: Dispatcher, announcements: Announcements) -> None:
    """The agents that the dispatcher's sinks need."""

    async def ordered(topic: Topic, message: Any) -> Sequence[Action]:
        record = decode_record(topic, message.value)
        command = action_of(record, dispatcher.site) if isinstance(record, Placement) else record
        return [command] if isinstance(command, Action) else []

    kinds = set(dispatcher.sinks)
    if kinds - {BIND}:
        _consume(app, ACTIONS, "sinks-actions", dispatcher, ordered)
    if BIND in kinds:
        _consume(app, PLACEMENTS, "sinks-placements", dispatcher, ordered)
    if EVENT in kinds:
        for topic in (VIOLATIONS, OUTCOMES):
            _consume(app, topic, f"events-{topic.short}", dispatcher, announcements.commands_of)


def attach_webhooks(app: faust.App, alerting: Alerting) -> None:
    """The agent that webhooks need, where there are any."""

    async def deliver(stream: Any) -> None:
        async for event in stream.noack().events():
            shared = _SharedEvent(event)
            with suppress(BadEvent):
                record = decode_record(VIOLATIONS, event.message.value)
                if isinstance(record, FindingEvent):
                    alerting.deliver(record, shared.hold)
            shared.ack()

    if alerting.delivers:
        app.agent(declare(app, VIOLATIONS), name="webhooks-violations")(deliver)


def _consume(app: faust.App, topic: Topic, name: str, dispatcher: Dispatcher, commands_of: CommandsOf) -> None:
    async def consume(stream: Any) -> None:
        async for event in stream.noack().events():
            shared = _SharedEvent(event)
            if site_of((event.message.key or b"").decode("utf-8", "replace")) == dispatcher.site:
                with suppress(BadEvent):
                    for action in await commands_of(topic, event.message):
                        if action.kind not in dispatcher.sinks:
                            continue
                        # What another topic's record asks for we have made here, with the digest as its id.
                        if topic is ACTIONS and (why := forged(action)):
                            await dispatcher.refuse(action, why, shared.one())
                        else:
                            dispatcher.take(action, shared.one())
            shared.ack()

    app.agent(declare(app, topic), name=name)(consume)


class _SharedEvent:
    """One event of a stream that its reader and several commands hold: it is acknowledged after the last."""

    def __init__(self, event: Any) -> None:
        self.message = event.message
        self._event, self._holders = event, 1

    def one(self) -> "_SharedEvent":
        """One more command holds it."""
        self._holders += 1
        return self

    def hold(self) -> Callable[[], None]:
        """One more holds it, until it calls this."""
        return self.one().ack

    def ack(self) -> None:
        """One of the holders is done."""
        self._holders -= 1
        if not self._holders:
            self._event.ack()
