"""Records from the consumer to their streams: a mixin in front of each transport's consumer, like `fetching.py`.

In: the records of a fetch. Out: events in the queues of the streams that read their partitions. Faust makes four
coroutines, a lock and a look at its monitor of each record. Nearly always these queues have room, and nothing stops
the flow: then the records are put there together. In all other cases Faust's own way is taken.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from faust.types import TP

from underhost.streams.faust.events import StreamEvent

AT_ONCE = 100
"""Records after which the event loop has a turn, as in Faust; so many of a partition, at most, are put together."""
FETCH = 1.0
"""Seconds for which a fetch waits for records, as in Faust."""
WHILE_FULL = 0.02
"""The same while the queue of some partition is full: the fetch leaves it out, also once there is room again. A storm
on one topic would stand still for most of each second."""


class QuickHandOver:
    """Mixin of a Faust consumer; the transport's class comes after it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._pressure: dict[TP, tuple[Callable[[], None], Callable[[], None]]] = {}
        super().__init__(*args, **options)

    async def _drain_messages(self, fetcher: Any) -> None:
        """Faust's: hand over what is fetched, until the consumer or the service that calls this ends.

        Faust notes, too, which offsets a compacted topic has not got, for commits that do not ask for that
        (`commits.py`).
        """
        this: Any = self
        try:
            while not (this._stopped.is_set() or fetcher._stopped.is_set()):
                await asyncio.sleep(0)  # a fetch need not wait
                wait = WHILE_FULL if this._buffered_partitions else FETCH
                records, partitions = await this._wait_next_records(wait)
                if records is None or this.should_stop:
                    continue
                if not this.flow_active:
                    await self._seek_back()
                elif records:
                    await self._hand_over(records, partitions)
        except this.consumer_stopped_errors:
            if not this.app.should_stop:
                raise
            this.log.info("the broker has ended the consumer, and the worker ends")
        except asyncio.CancelledError:
            if not this.app.should_stop:
                raise
        except Exception:
            this.log.exception("records cannot be handed over")
            raise

    async def _seek_back(self) -> None:
        """What was fetched while the flow was stopped is fetched again."""
        this: Any = self
        try:
            await this.perform_seek()
        except Exception as error:  # noqa: BLE001  as in Faust: the next fetch tries again
            this.log.warning("the consumer cannot go back to its commits: %s", error)

    async def _hand_over(self, records: Mapping[TP, Sequence[Any]], partitions: set[TP] | None) -> None:
        """Every record, until the flow stops or the partitions move: what is left is fetched again."""
        this: Any = self
        app, read_to = this.app, this._read_offset
        generation, handed = app.consumer_generation_id, 0
        for tp, some in _in_parts(records):
            if handed >= AT_ONCE:
                handed = 0
                await asyncio.sleep(0)
            if this._commit_every is not None and this._n_acked >= this._commit_every:
                this._n_acked = 0
                await this.commit()
            if not this.flow_active or app.consumer_generation_id != generation:
                return
            if partitions is not None and tp not in partitions and tp not in this._buffered_partitions:
                continue
            before = read_to[tp]
            messages = [this._to_message(tp, each) for each in some if before is None or each.offset >= before]
            handed += len(messages)
            if not messages:
                continue
            if self._put(tp, messages):
                read_to[tp] = messages[-1].offset
                continue
            for message in messages:
                if not this.flow_active or app.consumer_generation_id != generation:
                    return
                await this.wait_first(this.callback(message), this.suspend_flow.wait())
                read_to[tp] = message.offset

    def _put(self, tp: TP, messages: Sequence[Any]) -> bool:
        """Put the records into the queue of each stream that reads them; False where they have to wait for one."""
        app: Any = self.app  # type: ignore[attr-defined]
        topics = app.topics
        streams = topics._tp_index.get(tp)
        if not streams or topics._tp_to_callback_lock.locked():
            return False
        if not app.flow_control.is_active() or not app.producer.has_room:
            return False
        queues = [stream.queue for stream in streams]
        if not all(queue.has_room(len(messages)) for queue in queues):
            return False
        for message in messages:
            message.refcount = len(queues)  # each stream that has it acknowledges it
        # Faust copies the headers of each: who needs them finds them in the message.
        events = [StreamEvent(app, message.key, message.value, None, message) for message in messages]
        high, drop = self._pressure_of(tp)
        for queue in queues:
            queue.put_together(events, on_pressure_high=high, on_pressure_drop=drop)
        return True

    def _pressure_of(self, tp: TP) -> tuple[Callable[[], None], Callable[[], None]]:
        """What a queue calls when it is nearly full, and when it is not any more; for a partition always these two.

        aiokafka's name of a partition equals Faust's, but Faust fails where it finds one among its own.
        """
        found = self._pressure.get(tp)
        if found is None:
            this: Any = self
            own = TP(tp.topic, tp.partition)
            found = self._pressure[own] = partial(this.on_buffer_full, own), partial(this.on_buffer_drop, own)
        return found


def _in_parts(records: Mapping[TP, Sequence[Any]]) -> Iterator[tuple[TP, Sequence[Any]]]:
    """Some records of each partition in turn, so that none of them waits for all of another's."""
    for start in range(0, max(map(len, records.values()), default=0), AT_ONCE):
        for tp, some in records.items():
            if part := some[start : start + AT_ONCE]:
                yield tp, part
