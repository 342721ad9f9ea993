"""A limit of time around each of many awaits: `asyncio.timeout`, but that one timer serves all of them.

In: what is awaited within `with limits.begin(seconds):`. Out: TimeoutError there, where it takes longer or is ended. A
write has three such limits, one around another; with a timer and two coroutines for each they took a twentieth of what
a binding costs.
"""

import asyncio
import math
from types import TracebackType


class Limits:
    """Awaits that are ended after their time, and can be ended or given more time together. Of one event loop."""

    def __init__(self) -> None:
        self._begun: dict[Limit, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at = math.inf

    def begin(self, seconds: float | None) -> "Limit":
        """A limit of so many seconds from now, to be entered at once; without `seconds` only `end` ends it."""
        limit = Limit(self._begun)
        self._begun[limit] = at = math.inf if seconds is None else asyncio.get_running_loop().time() + seconds
        self._look_at(at)
        return limit

    def move(self, seconds: float) -> None:
        """What is under way ends so many seconds from now instead."""
        at = asyncio.get_running_loop().time() + seconds
        for limit in self._begun:
            self._begun[limit] = at
        self._look_at(at)

    def end(self, why: str) -> None:
        """What is under way ends at its next step, unless it is done; `why` is its limit's."""
        for limit in self._begun:
            limit.why = why
        self.move(0)

    def _look_at(self, at: float) -> None:
        if at < self._looks_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._looks_at = asyncio.get_running_loop().call_at(at, self._look), at

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        self._timer, self._looks_at = None, math.inf
        for limit, at in self._begun.items():
            if at <= now:
                limit.end()
            else:
                self._look_at(at)


class Limit:
    """Around one await of the task that enters it.

    Attributes:
        is_over: whether it has ended what was awaited.
        why: what it is ended for, "" where its time is over.
    """

    __slots__ = ("_begun", "_cancelling", "_task", "is_over", "why")

    def __init__(self, begun: dict["Limit", float]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._begun, self._task, self._cancelling = begun, task, task.cancelling()
        self.is_over, self.why = False, ""

    def __enter__(self) -> "Limit":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begun.pop(self, None)
        # Whoever cancels the task besides shall have it cancelled.
        if self.is_over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """Cancel what is awaited, once."""
        if not self.is_over:
            self.is_over = True
            self._task.cancel()
