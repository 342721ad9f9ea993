"""Work that waits its turn, so much of it at once: a task for each lane that is busy, none for what waits.

In: items, and what to do with one. Out: it is done, first come first served. Tasks of their own that wait for a
semaphore would each cost more than handing a command on does.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lanes(Generic[T]):
    """At most `count` items at once are `worked` on; `ended` is called with each lane's task once it has ended."""

    def __init__(
        self,
        name: str,
        count: int,
        worked: Callable[[T], Awaitable[None]],
        ended: Callable[["asyncio.Future[None]"], None],
    ) -> None:
        self._name, self._count, self._worked, self._ended = name, count, worked, ended
        self._waiting: deque[T] = deque()
        self._busy: set[asyncio.Task[None]] = set()

    def put(self, item: T) -> None:
        """It is worked on once a lane is free."""
        self._waiting.append(item)
        if len(self._busy) < self._count:
            lane = asyncio.get_running_loop().create_task(self._work(), name=f"lane of {self._name}")
            self._busy.add(lane)
            lane.add_done_callback(self._ended)

    def stop(self) -> list[T]:
        """What waits, which is not begun any more; what is under way is cancelled."""
        left = list(self._waiting)
        self._waiting.clear()
        for lane in self._busy:
            lane.cancel()
        return left

    async def ended(self) -> None:
        """Until nothing is under way."""
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._worked(self._waiting.popleft())
        finally:
            lane = asyncio.current_task()
            assert lane is not None
            # Here and not when the task is done: what comes in between would wait for nobody.
            self._busy.discard(lane)
