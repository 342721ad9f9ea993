"""Work that must not stop anybody: it is done by threads of the lowest priority, which no end of the program waits for.

In: a function. Out: its result, for who awaits it on an event loop (`in_background`), or for who looks for it now and
then from another thread (`Beside`). Whatever the work raises is told as an Exception: a panic of polars is none by
itself.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

LOWEST = 19
"""Niceness of the threads. Beside a full machine the event loop waits no longer for one than for any other."""


async def in_background(work: Callable[[], T], name: str) -> T:
    """The result of the work. Raises what it raises. Who is cancelled waits no longer; the thread ends by itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def give(result: T | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # there is a result where there is no error

    def told(result: T | None, error: Exception | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(give, result, error)

    _begin(work, name, told)
    return await done


class Beside(Generic[T]):
    """One piece of work at a time beside the thread that asks for it, which looks whether it is done.

    Attributes:
        took: seconds of a processor that the work has cost whose result was taken last.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._done: list[tuple[T | None, Exception | None, float]] | None = None
        self.took = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether there is work whose result nobody has taken."""
        return self._done is not None

    def begin(self, work: Callable[[], T]) -> None:
        """Begin the work; what was under way is of no interest any more."""
        done: list[tuple[T | None, Exception | None, float]] = []
        self._done = done
        # Told from the thread of the work, which has done nothing else.
        _begin(work, self._name, lambda result, error: done.append((result, error, time.thread_time())))

    def take(self) -> T | None:
        """The result, once; None as long as there is none. Raises what the work has raised."""
        if not self._done:
            return None
        ((result, error, self.took),) = self._done
        self._done = None
        if error is not None:
            raise error
        return result

    def forget(self) -> None:
        """What is under way is of no interest any more."""
        self._done = None


def _begin(work: Callable[[], T], name: str, told: Callable[[T | None, Exception | None], None]) -> None:
    def run() -> None:
        _lower_priority()
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - whoever waits for it is told
            error = raised if isinstance(raised, Exception) else RuntimeError(f"{type(raised).__name__}: {raised}")
        told(result, error)

    threading.Thread(target=run, name=name, daemon=True).start()


def _lower_priority() -> None:
    """This thread gives way to all others; only Linux knows the niceness of a thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)
