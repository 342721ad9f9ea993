"""Long work for one who asks: in a thread, for so long, and only while its client is there.

In: a request and what is to be done for it. Out: the result, or why there is none. The loops of the evaluator say how
far they are (`schedule/progress.py`); who is late, or has left, is given up at the next word. Its thread is free then.
The work gives way: while the event loop is late, as others ask too, the thread does nothing until it is not.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from aiohttp import web

from underhost.agents.http.guard import RequestRefused
from underhost.agents.pipeline.event_loop import give_back_memory
from underhost.agents.schedule.progress import listen

LOOK = 0.002
"""Seconds between two looks of the loop whether the client is still there."""
BEHIND, REST = 0.004, 0.002
"""Seconds without a look from which on the loop is late, and for which the work then rests. Each word that the loop
reads or sends lets the work have the interpreter: beside it, a thousand connections take the loop ten times as long.
Measured while a crowd asks: with 0.03 a probe waits twice as long, and a plan alone is no quicker."""
LEFT = 499
"""The status of an answer that nobody reads, as proxies log it."""

T = TypeVar("T")


class GivenUp(Exception):
    """Raised inside the work: nobody waits for it any more, or it has had its time."""


class Bench:
    """A thread for long work, one piece after another. Each may take `seconds`; `late` says what to do instead."""

    def __init__(self, name: str, seconds: float, late: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._seconds, self._late = seconds, late

    async def do(self, request: web.Request, work: Callable[[], T]) -> T:
        """What the work gives. Raises RequestRefused where it takes too long or nobody waits, and what it raises."""
        piece = _Piece(self._seconds)
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._pool, contextvars.copy_context().run, piece.run, work)
        try:
            while not (await asyncio.wait([running], timeout=LOOK))[0]:
                piece.looked = time.monotonic()
                if has_left(request):
                    piece.abandoned = True
                    running.cancel()  # where it has not begun; else it hears of it
            return running.result()
        except (GivenUp, asyncio.CancelledError):
            if has_left(request):
                raise RequestRefused(LEFT, "the client has left") from None
            if not piece.late:
                raise
            raise RequestRefused(422, f"it takes longer than {self._seconds:.0f} s; {self._late}") from None
        finally:
            piece.abandoned = True
            # Its error knows this frame: the two, and all that the work has held, would stay until a collection.
            del running


def has_left(request: web.Request) -> bool:
    """Whether the connection is closed: nobody would read an answer."""
    return request.transport is None or request.transport.is_closing()


class _Piece:
    """One piece of work and what became of it.

    Attributes:
        looked: when the event loop has looked at it last, in seconds. abandoned: set by the loop. late: by the thread.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._until = seconds, 0.0
        self.looked = time.monotonic()
        self.abandoned = self.late = False

    def run(self, work: Callable[[], T]) -> T:
        """Do it; it may take its time from now on."""
        self._until = time.monotonic() + self._seconds
        listen(self._heard)
        try:
            self._heard("", 0, 0)
            return work()
        finally:
            give_back_memory()  # else glibc keeps what the largest piece has needed

    def _heard(self, what: str, done: int, of: int) -> None:
        while (now := time.monotonic()) - self.looked > BEHIND and not self.abandoned and now <= self._until:
            time.sleep(REST)
        self.late = now > self._until
        if self.abandoned or self.late:
            raise GivenUp
