"""Faust's consumer of Apache Kafka as we need it: it loses no record, knows whether its group counts on it, and ends.

In: Faust's app, whose `membership` is told what the group's coordinator says. Out: a consumer for `transport.py`.
Everything else is Faust's driver for aiokafka, whose coordinator is listened to where all its requests pass.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from aiokafka.errors import NoError, RebalanceInProgressError, for_code
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from underhost.streams.faust.fetching import CarefulFetches
from underhost.streams.faust.membership import Membership, now

COMMIT_WITHIN, END_WITHIN = 1.5, 2.0
"""Seconds at the end of a consumer for its last commit, and for leaving its group: Kafka may not answer at all."""
ACCEPTED = (NoError, RebalanceInProgressError)
"""Answers to a heartbeat of a member: while a rebalance is under way its partitions are still its own."""


class RebalanceListener(driver.ConsumerRebalanceListener):  # type: ignore[misc]
    """Faust's, which also says that we have joined."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Faust's; membership begins once the new generation is known, so that nothing of an older one passes."""
        thread = self._thread
        thread.app.consumer_generation_id = thread._ensure_consumer()._coordinator.generation
        thread.app.membership.renewed(thread.joined)
        await super().on_partitions_assigned(assigned)


async def within(seconds: float, ending: Coroutine[Any, Any, None]) -> bool:
    """Whether it has ended within these seconds; then it is cancelled, and no longer waited for."""
    task = asyncio.ensure_future(ending)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        return False
    task.result()
    return True


def listen(
    coordinator: Any,
    membership: Membership,
    *,
    joining: Callable[[float], None],
    failed: Callable[[BaseException], None],
) -> None:
    """Hear what the coordinator of an aiokafka consumer sends, is answered, forgets and cannot go on after.

    `joining` is told when the request was sent whose answer is an assignment.
    """
    send, forget, push = coordinator._send_req, coordinator.reset_generation, coordinator._push_error_to_user

    async def send_and_hear(request: Any) -> Any:
        sent, member = now(), (coordinator.member_id, coordinator.generation)
        response = await send(request)
        same = member == (coordinator.member_id, coordinator.generation)
        if isinstance(request, SyncGroupRequest):
            joining(sent)
        elif isinstance(request, HeartbeatRequest) and same and for_code(response.error_code) in ACCEPTED:
            membership.renewed(sent)
        return response

    def forget_and_tell() -> None:
        membership.ended()
        forget()

    def push_and_tell(error: BaseException) -> Any:
        # aiokafka stands still until somebody who polls it takes the error, and Faust never does: a worker would be
        # out of its group for ever.
        failed(error)
        return push(error)

    coordinator._send_req, coordinator.reset_generation = send_and_hear, forget_and_tell
    coordinator._push_error_to_user = push_and_tell


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread in which aiokafka runs; `joined` is when the request was sent that was answered by our assignment."""

    joined = 0.0

    async def on_start(self) -> None:
        """Faust's, then listen to the coordinator."""
        await super().on_start()
        listen(
            self._ensure_consumer()._coordinator,
            self.app.membership,
            joining=lambda sent: setattr(self, "joined", sent),
            failed=lambda error: self.parent_loop.call_soon_threadsafe(self.app.fail, error),
        )

    def keep_alive(self) -> None:
        """See `CarefulFetches.keep_alive`.

        aiokafka leaves the group, for ever, when nothing was fetched for `broker_max_poll_interval`: so would a worker
        that stands by for another's partitions.
        """
        if self._consumer is not None:
            self._consumer._subscription._last_fetch_ended = time.monotonic()

    async def on_thread_stop(self) -> None:
        """Faust's, though aiokafka's fetches, which it cancels, end it by their cancellation."""
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            await self._ensure_consumer()._client.close()

    async def _shutdown_thread(self) -> None:
        """Faust's, but it ends. What does not answer is left; a thread that lives on would stay a member of the group.

        Its partitions would be assigned to it for ever, and nobody would read them.
        """
        await within(END_WITHIN, super()._shutdown_thread())
        self.set_shutdown()

    async def seek_to_committed(self) -> Mapping[TP, int | None]:
        """Faust's, by one request instead of one after another for each partition; changelogs have no commits."""
        found: Mapping[TP, int | None] = await self.call_thread(self._seek_to_committed)
        return found

    async def _seek_to_committed(self) -> Mapping[TP, int | None]:
        consumer = self._ensure_consumer()
        mine = [tp for tp in consumer.assignment() if not self.consumer._is_changelog_tp(tp)]
        committed = await consumer._coordinator.fetch_committed_offsets(mine)
        for tp, place in committed.items():
            if tp in consumer.assignment():  # it may have been taken while we waited
                consumer.seek(tp, place.offset)
        return {TP(*tp): committed[tp].offset if tp in committed else None for tp in mine}


class KafkaConsumer(CarefulFetches, driver.Consumer):  # type: ignore[misc]
    """Faust's consumer of Kafka."""

    RebalanceListener = RebalanceListener

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def keep_alive(self) -> None:
        """See `ConsumerThread.keep_alive`."""
        self._thread.keep_alive()

    async def on_stop(self) -> None:
        """Faust's last commit, if Kafka takes it: what is not committed is read again."""
        await within(COMMIT_WITHIN, super().on_stop())

    def close(self) -> None:
        """Nothing: Faust's ends the client from another thread than its own when partitions move during the end."""
