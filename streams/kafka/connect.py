"""Connecting to Apache Kafka without Faust: one deadline, and one line when no broker answers.

In: `KafkaSettings`. Out: started aiokafka clients, closed by their context. How they are secured is in
`security.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from faust.exceptions import FaustError

from underhost.schemas.errors import KafkaAway, Refused, Unreachable
from underhost.streams.kafka.client import make_patient, patience
from underhost.streams.kafka.security import client_arguments, refusal
from underhost.streams.settings.kafka import KafkaSettings

CONNECT_SECONDS = 8.0
"""Seconds for the first answer. With those of asking why we are rejected, a start says within 15 s that it fails."""
REQUEST_MS = 30_000
"""Milliseconds that a request may take of a cluster that answers: a partition may be without a leader meanwhile."""
ANSWER_SECONDS, ASK_AGAIN_SECONDS = 10.0, 0.1
"""Seconds that a question may take: a broker that is just freezing costs 7 of them, and another one is asked."""
NOT_ALLOWED = (ClusterAuthorizationFailedError, GroupAuthorizationFailedError, TopicAuthorizationFailedError)
"""A right of ours that is missing: retrying as is will not help."""
_R = TypeVar("_R")


def reason(error: BaseException) -> str:
    """An error's text in one line, or its name."""
    return " ".join(str(error).split()) or type(error).__name__


def translated(error: BaseException) -> BaseException:
    """Kafka's and Faust's errors as ours, any other error unchanged."""
    if not isinstance(error, KafkaError | FaustError | OSError):
        return error
    kind = Refused if isinstance(error, NOT_ALLOWED) else KafkaAway
    ours = kind(f"Kafka: {reason(error)}")
    ours.__cause__ = error
    return ours


@contextmanager
def answering(servers: str) -> Iterator[None]:
    """Turn every error of a Kafka client into Unreachable, of which KafkaAway is one."""
    try:
        yield
    except (TimeoutError, KafkaConnectionError) as error:
        raise KafkaAway(f"Kafka at {servers} does not answer") from error
    except NOT_ALLOWED as error:
        raise Unreachable(f"Kafka at {servers}: {reason(error)}") from error
    except (KafkaError, OSError) as error:
        raise KafkaAway(f"Kafka at {servers}: {reason(error)}") from error


async def answered(servers: str, question: Callable[[], Awaitable[_R]], seconds: float = ANSWER_SECONDS) -> _R:
    """The answer of any broker: asked again where one is gone. Raises Unreachable within these seconds."""
    with answering(servers):
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await question()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    await asyncio.sleep(ASK_AGAIN_SECONDS)


@asynccontextmanager
async def started(settings: KafkaSettings, client: Any) -> AsyncIterator[Any]:
    """Start a client of aiokafka, patient with a broker that does not answer, and stop it at the end.

    Raises Unreachable within `CONNECT_SECONDS`, or Refused where the brokers reject us.
    """
    servers = settings.bootstrap_servers or ""
    make_patient(getattr(client, "client", None) or client._client, patience(settings.session_timeout))
    try:
        with answering(servers):
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.start()
        await asyncio.sleep(0)  # aiokafka cannot be stopped before the tasks of its start have begun to run
        yield client
    except Unreachable as error:
        secured = settings.tls is not None or settings.sasl is not None
        if (secured or isinstance(error.__cause__, KafkaConnectionError)) and (told := await refusal(settings)):
            raise told from error
        raise
    finally:
        await client.stop() if hasattr(client, "stop") else await client.close()


@asynccontextmanager
async def admin(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client."""
    client = AIOKafkaAdminClient(**client_arguments(settings), request_timeout_ms=REQUEST_MS)
    async with started(settings, client) as running:
        yield running


@asynccontextmanager
async def consumer(settings: KafkaSettings) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without a group, with nothing assigned yet."""
    client = AIOKafkaConsumer(
        **client_arguments(settings),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=REQUEST_MS,
        max_partition_fetch_bytes=4 << 20,
    )
    async with started(settings, client) as running:
        yield running


async def partition_counts(client: AIOKafkaAdminClient) -> dict[str, int]:
    """The count of partitions of every topic that the broker knows."""
    return {topic["topic"]: len(topic["partitions"]) for topic in await client.describe_topics()}
