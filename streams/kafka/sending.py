"""Several records to Kafka: sent in order, and all of them acknowledged.

In: records with their partitions, and what sends one: a Faust producer's method, or aiokafka's. Out: nothing, once the
last acknowledgement is there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from underhost.streams.ports import ProducerRecord

Send = Callable[[ProducerRecord], Awaitable[asyncio.Future[Any]]]
"""Hands a record to a client's buffer; the future is its acknowledgement."""


async def send_together(send: Send, records: Iterable[ProducerRecord]) -> None:
    """Send in order, then wait for every acknowledgement, so that no failure goes unseen. Raises the first one."""
    acknowledgements: list[asyncio.Future[Any]] = []
    errors: list[BaseException] = []
    try:
        for record in records:
            acknowledgements.append(await send(record))
    finally:
        for acknowledgement in acknowledgements:
            if not acknowledgement.done():  # hundreds come at once: after the first, the others need no waiting
                await asyncio.wait([acknowledgement])
            error = asyncio.CancelledError() if acknowledgement.cancelled() else acknowledgement.exception()
            if error is not None:
                errors.append(error)
    if errors:
        raise errors[0]
