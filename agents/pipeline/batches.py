"""Records of many who each wait for their own: what comes while one batch is under way becomes the next one.

In: records, one at a time. Out: published batches; each caller goes on once its record is acknowledged.
"""

import asyncio

from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.publish import publish_until_taken


class Outbox:
    """Publishes in the order of the calls. `what` names its records, for the log."""

    def __init__(self, publisher: Publisher, what: str) -> None:
        self._publisher, self._what = publisher, what
        self._waiting: list[tuple[Outgoing, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def publish(self, record: Outgoing) -> None:
        """Return once the record is acknowledged, however long that takes. Raises what is a bug of the publisher."""
        published = asyncio.get_running_loop().create_future()
        self._waiting.append((record, published))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain(), name=f"outbox of {self._what}")
        await published

    async def close(self) -> None:
        """Let go of what is not published: its callers are gone."""
        task, self._task = self._task, None
        self._waiting.clear()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            publishing = publish_until_taken(self._publisher, [record for record, _ in batch], self._what)
            [error] = await asyncio.gather(publishing, return_exceptions=True)
            for _, published in batch:
                if published.done():
                    continue
                if error is None:
                    published.set_result(None)
                else:
                    published.set_exception(error)
        self._task = None
