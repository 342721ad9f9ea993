"""What asyncio does for processes of several threads and loops, and for debuggers, left out: here is one loop.

In: asyncio, whose functions are replaced. Out: the running loop without the kernel, which asyncio asks for the
process's number each time, 20,000 times a seed; no table of all tasks, as the loop has its own.
"""

import asyncio
from typing import Any


def install() -> None:
    """To be called before anything is imported that keeps these functions of asyncio."""
    now: list[Any] = [None]
    real = asyncio.events._set_running_loop

    def set_running(loop: Any) -> None:
        now[0] = loop
        real(loop)

    def running() -> Any:
        if now[0] is None:
            raise RuntimeError("no running event loop")
        return now[0]

    asyncio.events._set_running_loop = asyncio._set_running_loop = set_running
    asyncio.events._get_running_loop = asyncio._get_running_loop = lambda: now[0]
    asyncio.events.get_running_loop = asyncio.get_running_loop = running
    held = vars(asyncio.tasks)
    tasks: Any = held["_all_tasks" if "_all_tasks" in held else "_scheduled_tasks"]  # Python 3.11, and from 3.12 on
    tasks.add = lambda task: None
