"""aiokafka's client of a cluster, for which a broker that is frozen or cut off costs seconds.

In: the client that aiokafka has made for a consumer, a producer or an admin, not started. Out: the same with three
habits more. Bootstrap servers are asked all at once. A request that takes long is given up once its broker does not
answer a new connection either: a broker that is only slow, or waits for others, is waited for. A broker that did not
answer is left alone for some seconds, as long as there are others. What is sent, and what is sent again after an error,
is left to aiokafka.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, cast

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason, create_conn
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.protocol.metadata import MetadataRequest

log = logging.getLogger("aiokafka")  # as loud as the rest of it

BOOTSTRAP_SECONDS = 10.0
"""Seconds that the bootstrap servers have together for the first answer."""
OURS = 0.5
"""Seconds more that an answer has: an event loop that was busy itself has not looked for it yet."""
NO_ANSWER = (OSError, KafkaError, TimeoutError)
_Introduction = asyncio.Task[tuple[AIOKafkaConnection, Any]]
"""A bootstrap server that is asked: the connection, and what it says of the cluster."""


def patience(session_timeout: float) -> float:
    """Seconds without an answer after which a broker is asked whether it is there.

    Twice that, for the request and for the question, is well below the session of a worker whose group is at a broker
    that freezes.
    """
    return max(2.0, 0.3 * session_timeout)


def make_patient(client: AIOKafkaClient, seconds: float) -> None:
    """Make aiokafka's client one of ours, before it is started; aiokafka has no argument for its class."""
    client.__class__ = PatientClient
    cast("PatientClient", client).begin(seconds)


class PatientClient(AIOKafkaClient):  # type: ignore[misc]
    """See the module. `make_patient` makes it."""

    def begin(self, seconds: float) -> None:
        """What an aiokafka client lacks; `seconds` is the patience with a broker."""
        self._patience = seconds
        self._connecting: dict[Any, asyncio.Task[AIOKafkaConnection | None]] = {}
        self._alone_until: dict[Any, float] = {}
        self._sync_task: asyncio.Task[None] | None

    async def close(self) -> None:
        """aiokafka's, and no connection is made any more."""
        for task in list(self._connecting.values()):
            task.cancel()
        await super().close()

    # ---------------------------------------------------------------------------------------------------- connecting
    async def bootstrap(self) -> None:
        """Learn of the cluster from the bootstrap server that answers first. Raises KafkaConnectionError."""
        asking = {asyncio.ensure_future(self._introduced(host, port)) for host, port, _ in self.hosts}
        try:
            async with asyncio.timeout(BOOTSTRAP_SECONDS):
                first = await _first(asking)
            asking.remove(first)
            connection, metadata = first.result()
        except NO_ANSWER as error:
            raise KafkaConnectionError(f"Unable to bootstrap from {self.hosts}") from error
        finally:
            for task in asking:
                task.add_done_callback(_close_late)
                task.cancel()
        self.cluster.update_metadata(metadata)
        if self.cluster.brokers():
            connection.close()
        else:  # a cluster that is just starting: it is asked again at this address
            self._conns["bootstrap", ConnectionGroup.DEFAULT] = connection
        if self._sync_task is None:
            self._sync_task = asyncio.ensure_future(self._md_synchronizer())

    async def _introduced(self, host: str, port: int) -> tuple[AIOKafkaConnection, Any]:
        """A connection to a bootstrap server, and what it says of the cluster."""
        try:
            connection = await self._open(host, port)
            try:
                return connection, await connection.send(MetadataRequest([]))
            except BaseException:
                connection.close()
                raise
        except NO_ANSWER as error:
            log.error('Unable connect to "%s:%s": %s', host, port, error)
            raise

    async def _get_conn(self, node_id: Any, *, group: int = ConnectionGroup.DEFAULT) -> AIOKafkaConnection | None:
        """aiokafka's, but that nobody waits for a connection to another broker than the one that is asked for."""
        at = (node_id, group)
        connection = self._conns.get(at)
        if connection is not None and connection.connected():
            return connection
        broker = self.cluster.broker_metadata(node_id)
        if broker is None or self._is_left_alone(node_id):
            self.force_metadata_update()
            return None
        if at not in self._connecting:
            self._connecting[at] = asyncio.ensure_future(self._connected(at, broker))
            self._connecting[at].add_done_callback(lambda _: self._connecting.pop(at, None))
        return await asyncio.shield(self._connecting[at])

    async def _connected(self, at: tuple[Any, int], broker: Any) -> AIOKafkaConnection | None:
        """A new connection to this broker; None where there is none, for a reason that is in the log."""
        try:
            connection = await self._within(self._open(broker.host, broker.port, self._on_connection_closed))
        except NO_ANSWER as error:
            if isinstance(error, TimeoutError):
                self._leave_alone(at[0])
            log.error("Unable connect to node with id %s: %s", at[0], error or "it does not answer")
            self.force_metadata_update()
            return None
        self._alone_until.pop(at[0], None)
        send = connection.send  # aiokafka asks for metadata on a connection, past the client's own `send`
        connection.send = lambda *request, **options: self._patiently(at[0], send(*request, **options))
        self._conns[at] = connection
        return connection

    async def _open(self, host: str, port: int, on_close: Any = None) -> AIOKafkaConnection:
        """A connection on which the broker has answered once."""
        return await create_conn(
            host,
            port,
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            ssl_context=self._ssl_context,
            security_protocol=self._security_protocol,
            on_close=on_close,
            max_idle_ms=self._connections_max_idle_ms,
            sasl_mechanism=self._sasl_mechanism,
            sasl_plain_username=self._sasl_plain_username,
            sasl_plain_password=self._sasl_plain_password,
        )

    # -------------------------------------------------------------------------------------------------- who is silent
    def get_random_node(self) -> Any:
        """aiokafka's, among the brokers that are not left alone."""
        nodes = [broker.nodeId for broker in self.cluster.brokers()]
        return random.choice([node for node in nodes if not self._is_left_alone(node)] or nodes or [None])

    def _leave_alone(self, node_id: Any) -> None:
        self._alone_until[node_id] = asyncio.get_running_loop().time() + self._patience

    def _is_left_alone(self, node_id: Any) -> bool:
        now = asyncio.get_running_loop().time()
        silent = {node for node, until in self._alone_until.items() if until > now}
        return node_id in silent and any(broker.nodeId not in silent for broker in self.cluster.brokers())

    # ----------------------------------------------------------------------------------------------------- requests
    async def _patiently(self, node_id: Any, answering: Awaitable[Any]) -> Any:
        """The answer. Raises KafkaConnectionError once the broker answers neither the request nor anything else."""
        answer = asyncio.ensure_future(answering)
        try:
            while not await self._ends(answer):
                if not await self._is_there(node_id):
                    self._give_up(node_id)
            return answer.result()
        finally:
            answer.cancel()

    async def all_there(self, count: int) -> bool:
        """Whether the cluster shows this many brokers, and each of them and of the bootstrap servers answers."""
        brokers = [(broker.host, broker.port) for broker in self.cluster.brokers()]
        places = {*brokers, *((host, port) for host, port, _ in self.hosts)}
        return len(brokers) >= count and all(await asyncio.gather(*(self._answers(*place) for place in places)))

    async def _is_there(self, node_id: Any) -> bool:
        """Whether a broker that has not answered a request yet answers a new connection."""
        broker = self.cluster.broker_metadata(node_id)
        return broker is not None and await self._answers(broker.host, broker.port)

    async def _answers(self, host: str, port: int) -> bool:
        try:
            connection = await self._within(self._open(host, port))
        except NO_ANSWER:
            return False
        connection.close()
        return True

    def _give_up(self, node_id: Any) -> None:
        """End the connections to the broker, and with them every request that waits on one."""
        self._leave_alone(node_id)
        for (node, _), connection in list(self._conns.items()):
            if node == node_id and connection.connected():
                connection._writer.transport.abort()  # a close waits until what is written has left
                connection.close(reason=CloseReason.CONNECTION_TIMEOUT)

    async def _within(self, opening: Coroutine[Any, Any, AIOKafkaConnection]) -> AIOKafkaConnection:
        """The connection, or TimeoutError."""
        task = asyncio.ensure_future(opening)
        try:
            if await self._ends(task):
                return task.result()
            raise TimeoutError
        finally:
            task.cancel()

    async def _ends(self, task: "asyncio.Future[Any]") -> bool:
        """Whether it ends before our patience does."""
        await asyncio.wait([task], timeout=self._patience)
        if not task.done():
            await asyncio.wait([task], timeout=OURS)
        return task.done()


async def _first(asking: set[_Introduction]) -> _Introduction:
    """The one that succeeds first; one that has failed where none does."""
    pending: set[_Introduction] = asking
    while True:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        succeeded = [task for task in done if task.exception() is None]
        if succeeded or not pending:
            return (succeeded or list(done))[0]


def _close_late(task: _Introduction) -> None:
    """Close the connection of a bootstrap server that answered as well."""
    with suppress(asyncio.CancelledError, *NO_ANSWER):
        task.result()[0].close()
