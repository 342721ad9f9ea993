"""What a broker that does not answer costs the others: seconds, and nothing where there are others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError
from support.workers.fleet import until

from underhost.streams.kafka.client import PatientClient, make_patient

PATIENCE = 0.05
METADATA = SimpleNamespace(
    API_VERSION=1,
    brokers=[(1, "one", 1, None), (2, "two", 2, None), (3, "three", 3, None)],
    controller_id=1,
    topics=[],
)


class Connection:
    """A connection to a broker; `silent` ones never answer a request."""

    def __init__(self, host: str, answers: Callable[[str], bool]) -> None:
        self.host, self.open, self._answers = host, True, answers
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writer = SimpleNamespace(transport=SimpleNamespace(abort=lambda: None))

    def connected(self) -> bool:
        """aiokafka's."""
        return self.open

    async def _answer(self) -> Any:
        if not self._answers(self.host):
            await self._closed
        return METADATA

    def send(self, request: object, expect_response: bool = True) -> Any:
        """aiokafka's."""
        return self._answer()

    def close(self, reason: object = None) -> "asyncio.Future[None]":
        """aiokafka's; what waits for an answer fails."""
        self.open = False
        if not self._closed.done():
            self._closed.set_exception(KafkaConnectionError("closed"))
            self._closed.exception()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class Cluster:
    """Brokers `one`, `two` and `three`, and a client of them. Those in `frozen` accept connections and say nothing."""

    def __init__(self) -> None:
        self.frozen: set[str] = set()
        self.slow: set[str] = set()
        self.opened: list[Connection] = []

    async def _open(self, host: str, port: int, on_close: object = None) -> Connection:
        if host in self.frozen:
            await asyncio.Event().wait()
        connection = Connection(host, lambda host: host not in self.frozen | self.slow)
        self.opened.append(connection)
        return connection

    @asynccontextmanager
    async def client(self) -> AsyncIterator[PatientClient]:
        """A client that has not started."""
        made: Any = AIOKafkaClient(bootstrap_servers="one:1,two:2,three:3")
        make_patient(made, PATIENCE)
        made._open = self._open
        try:
            yield made
        finally:
            await made.close()


@pytest.mark.parametrize("frozen", [{"one"}, {"two"}, {"one", "three"}], ids=["first", "second", "two of three"])
async def test_a_client_starts_beside_bootstrap_servers_that_are_frozen(frozen: set[str]) -> None:
    cluster = Cluster()
    cluster.frozen = frozen
    async with cluster.client() as client:
        await asyncio.wait_for(client.bootstrap(), 30)
        assert {broker.nodeId for broker in client.cluster.brokers()} == {1, 2, 3}
        await asyncio.sleep(0)  # a server that answered as well is let go of in the loop's next round
        assert [connection.host for connection in cluster.opened if connection.open] == []


async def test_bootstrap_servers_that_all_say_nothing_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("underhost.streams.kafka.client.BOOTSTRAP_SECONDS", 0.05)
    cluster = Cluster()
    cluster.frozen = {"one", "two", "three"}
    async with cluster.client() as client:
        with pytest.raises(KafkaConnectionError, match="Unable to bootstrap"):
            await client.bootstrap()


async def test_a_request_to_a_broker_that_freezes_fails_and_the_broker_is_left_alone() -> None:
    cluster = Cluster()
    async with cluster.client() as client:
        await client.bootstrap()
        assert await client.ready(1)
        cluster.frozen = {"one"}
        with pytest.raises(KafkaConnectionError):
            await asyncio.wait_for(client.send(1, METADATA_REQUEST), 30)
        client._alone_until[1] += 1000  # however long the next lines take
        assert {client.get_random_node() for _ in range(50)} == {2, 3}
        assert await client._get_conn(1) is None
        client._alone_until |= {2: client._alone_until[1], 3: client._alone_until[1]}
        assert {client.get_random_node() for _ in range(200)} == {1, 2, 3}, "where all are silent any may be the first"


async def test_who_leads_is_learned_from_another_broker_where_the_one_asked_freezes() -> None:
    cluster = Cluster()
    async with cluster.client() as client:
        await client.bootstrap()
        for node in (1, 2, 3):
            assert await client.ready(node)
        cluster.frozen = {"one"}
        for _ in range(20):  # any of them is asked first
            assert await asyncio.wait_for(client.force_metadata_update(), 30)


async def test_a_broker_that_needs_long_for_one_answer_is_waited_for() -> None:
    cluster = Cluster()
    async with cluster.client() as client:
        await client.bootstrap()
        cluster.slow = {"two"}
        waiting = asyncio.ensure_future(client.send(2, METADATA_REQUEST))
        # Its own connection, and questions whether the broker is there.
        await until(lambda: sum(connection.host == "two" for connection in cluster.opened) >= 4)
        assert not waiting.done()
        waiting.cancel()


async def test_whoever_asks_another_broker_does_not_wait_for_a_connection_to_a_frozen_one() -> None:
    cluster = Cluster()
    async with cluster.client() as client:
        await client.bootstrap()
        client.begin(1000)
        cluster.frozen = {"one"}
        waiting = asyncio.ensure_future(client.ready(1))
        assert await asyncio.wait_for(client.ready(2), 30)
        assert not waiting.done()
        waiting.cancel()


@pytest.mark.parametrize(
    ("frozen", "count", "expected"),
    [
        pytest.param(set(), 3, True, id="all three"),
        pytest.param({"two"}, 3, False, id="one is frozen"),
        pytest.param(set(), 4, False, id="one is not shown any more"),
    ],
)
async def test_a_broker_that_is_away_is_known(frozen: set[str], count: int, expected: bool) -> None:
    cluster = Cluster()
    async with cluster.client() as client:
        await client.bootstrap()
        cluster.frozen = frozen
        assert await client.all_there(count) is expected


METADATA_REQUEST = SimpleNamespace(required_acks=1)
