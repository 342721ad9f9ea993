"""The stream of an agent that takes one event after another: Faust's, but that it takes them from their queue directly.

In: the events of a topic that Faust's conductor has put into the stream's queue. Out: the same events. Faust's own
gives the event loop a turn for each record and takes it through five steps (processors, merging, sensors), of which
this product uses none: half of what a record cost. And it acknowledges the record that an agent was at when the stream
is closed, so that the last commit takes it for done.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import faust

AT_ONCE = 16
"""Events that are taken before the event loop has a turn, where handling them does not wait."""


class StreamEvent(faust.Event):  # type: ignore[misc]
    """One record for its streams. Acknowledged without Faust's locks: those are for agents in threads."""

    def ack(self) -> bool:
        """One more stream is done with the record; True where it was the last."""
        message = self.message
        message.refcount -= 1
        return not (message.acked or message.refcount > 0) and bool(self.app.consumer.ack(message))


class EventStream(faust.Stream):  # type: ignore[misc]
    """Only `events` differs. What a processor, a join or a group would need is not built: no agent of ours has one."""

    async def events(self) -> AsyncIterator[Any]:
        """The events of the partitions as they are held now; one that is from before they moved is left out.

        An event is acknowledged when the next one is asked for, and not at all where none is, so that it comes again;
        after `noack()` that is the agent's own to do.
        """
        started_here = await self.maybe_start()
        queue, app = self.channel.queue, self.app
        taken = 0
        try:
            while not self.should_stop:
                taken += 1
                if taken % AT_ONCE == 0:
                    await asyncio.sleep(0)
                event = queue.take() or await queue.get()
                message = event.message
                if message.generation_id != app.consumer_generation_id or not app.flow_control.is_active():
                    continue
                if not message.tracked:
                    message.tracked = True
                    app.consumer.track_message(message)
                self._set_current_event(event)  # a table that the agent changes asks for it
                yield event
                if self.enable_acks:
                    event.ack()
        except StopAsyncIteration:
            return  # Faust ends an agent so; a generator that lets it through fails, and is restarted for ever
        finally:
            self._channel_stop_iteration(self.channel)
            if started_here:
                await self.stop()
                self.service_reset()
