"""Faust's consumer of Apache Kafka as we need it: it loses no record, knows its membership, and stops in time.

In: Faust's app, whose `membership` it keeps up to date. Out: a consumer for `transport.py`.
Everything else is left to Faust's driver for aiokafka; we intercept the requests of its group coordinator.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from aiokafka.errors import NoError, RebalanceInProgressError, UnknownMemberIdError, for_code
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from underhost.streams.faust.commits import CarefulCommits
from underhost.streams.faust.fetching import CarefulFetches
from underhost.streams.faust.handing import QuickHandOver
from underhost.streams.faust.membership import Membership, now
from underhost.streams.kafka.client import make_patient, patience

COMMIT_WITHIN, END_WITHIN = 1.5, 2.0
"""Seconds that a stop waits for the last commit, and for leaving the group: Kafka may not answer."""
FETCH_WAIT = 0.25
"""Seconds for which a broker keeps a fetch that finds nothing. Whatever else is asked of it on this connection waits so
long: after a rebalance three questions in a row. Faust's own 1.5 s made a takeover 4 s longer."""
ACCEPTED = (NoError, RebalanceInProgressError)
"""Answers to a heartbeat of a member: while a rebalance is under way its partitions are still its own."""


class RebalanceListener(driver.ConsumerRebalanceListener):  # type: ignore[misc]
    """Faust's, and it records that we have joined."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Faust's; membership begins once the new generation is known, so that no older record is handled."""
        thread = self._thread
        thread.app.consumer_generation_id = thread._ensure_consumer()._coordinator.generation
        thread.app.membership.renewed(thread.joined)
        await super().on_partitions_assigned(assigned)


async def within(seconds: float, ending: Coroutine[Any, Any, None]) -> bool:
    """Whether the coroutine ended within these seconds; after them it is cancelled and not waited for."""
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
    """Intercept a consumer's group coordinator: heartbeats, commits, its loss of membership and its fatal errors.

    `joining` is called with the time of the request whose answer is an assignment.
    """
    send, forget, push = coordinator._send_req, coordinator.reset_generation, coordinator._push_error_to_user

    async def send_and_hear(request: Any) -> Any:
        if isinstance(request, OffsetCommitRequest) and coordinator.generation == request.DEFAULT_GENERATION_ID:
            # Kafka takes the commit of who is no member, if the group is empty: a member that it has just forgotten
            # would commit what it could not finish.
            raise UnknownMemberIdError(coordinator.group_id)
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
        # aiokafka waits until a poll takes the error, and Faust never takes it: the worker would stay out of its
        # group for ever.
        failed(error)
        return push(error)

    coordinator._send_req, coordinator.reset_generation = send_and_hear, forget_and_tell
    coordinator._push_error_to_user = push_and_tell


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread in which aiokafka runs; `joined` is when the request for the present assignment was sent."""

    joined = 0.0

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = int(FETCH_WAIT * 1000)
        make_patient(consumer._client, patience(self.app.conf.broker_session_timeout))
        return consumer

    async def on_start(self) -> None:
        """Faust's, then intercept the coordinator."""
        await super().on_start()
        listen(
            self._ensure_consumer()._coordinator,
            self.app.membership,
            joining=lambda sent: setattr(self, "joined", sent),
            failed=lambda error: self.parent_loop.call_soon_threadsafe(self.app.fail, error),
        )

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Faust's, but nothing where the partitions were taken while the commit came to this thread.

        aiokafka takes no empty commit: it would end the worker.
        """
        mine = self.assignment()
        if not any(tp in mine for tp in offsets):
            return False
        return bool(await super()._commit(offsets))

    def keep_alive(self) -> None:
        """See `CarefulFetches.keep_alive`.

        aiokafka leaves the group for good when nothing was fetched for `broker_max_poll_interval`. A worker that has
        no partitions and stands by would then never get any.
        """
        if self._consumer is not None:
            self._consumer._subscription._last_fetch_ended = time.monotonic()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's, of which only the requests to Kafka are judged.

        The rest is judged by a monitor that we do not have: every stream would seem not to have started. Who does not
        catch up is seen by the pipeline's watchdog.
        """
        self._verify_aiokafka_event_path(now, tp)

    async def on_thread_stop(self) -> None:
        """Faust's, which the cancellation of aiokafka's own fetches may end too early."""
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            await self._ensure_consumer()._client.close()

    async def _shutdown_thread(self) -> None:
        """Faust's, with a limit. A thread that went on would stay a member of the group.

        Kafka would leave the partitions to it, and nobody would read them.
        """
        await within(END_WITHIN, super()._shutdown_thread())
        self.set_shutdown()

    async def seek_to_committed(self) -> Mapping[TP, int | None]:
        """Faust's, with one request instead of one for each partition; changelogs have no commits."""
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


class KafkaConsumer(CarefulFetches, CarefulCommits, QuickHandOver, driver.Consumer):  # type: ignore[misc]
    """Faust's consumer of Kafka."""

    RebalanceListener = RebalanceListener

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def keep_alive(self) -> None:
        """See `ConsumerThread.keep_alive`."""
        self._thread.keep_alive()

    async def on_stop(self) -> None:
        """Faust's last commit, if Kafka answers: what is not committed is read again."""
        await within(COMMIT_WITHIN, super().on_stop())

    def close(self) -> None:
        """Nothing: Faust's would close the client from a foreign thread when partitions move during a stop."""
