"""Blocking calls of pyVmomi off the event loop, each in a daemon thread.

Not in the loop's executor, whose threads are joined at the end of the process: a read from a silent vCenter would delay
the stop.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The function's result, computed in a thread of its own; its exception is raised here.

    A cancelled caller stops waiting at once; the thread ends with the function, and its result is dropped.
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
        except BaseException as raised:  # noqa: BLE001 - raised in the caller
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            return  # the loop has been closed meanwhile

    threading.Thread(target=work, name=f"vsphere-{getattr(function, '__name__', 'call')}", daemon=True).start()
    return await future
