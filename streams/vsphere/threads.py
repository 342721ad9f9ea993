"""Blocking calls off the event loop: pyVmomi knows no asyncio.

Daemon threads and not the loop's executor: a read from a vCenter that has gone silent must not hold up a stop, and the
executor's threads are joined at the end of the process.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The function's result, computed in a thread of its own; its exception is raised here.

    A cancelled caller stops waiting at once, the thread ends when the function does and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - handed to the caller, whatever it is
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            return  # the loop has been closed meanwhile: nobody waits any more

    threading.Thread(target=work, name=f"vsphere-{getattr(function, '__name__', 'call')}", daemon=True).start()
    return await future
