"""Which embedded logs this process holds open: the transport, readers and admin commands share one log per file.

In: a path. Out: the open log, counted; the last one to release it closes it.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from underhost.schemas.errors import Refused
from underhost.streams.embedded.log import Log


@dataclass
class _Held:
    log: Log
    loop: asyncio.AbstractEventLoop
    opened: asyncio.Future[None]
    users: int = 0


_held: dict[Path, _Held] = {}


def _key(path: Path) -> Path:
    return path.resolve()


async def acquire(path: Path, sync: str = "NORMAL") -> Log:
    """The log of `path`, opened if it is not open yet. Raises Refused, Unreachable or InputError; see `Log.open`."""
    key, loop = _key(path), asyncio.get_running_loop()
    held = _held.get(key)
    if held is not None and held.loop is not loop:
        if not held.loop.is_closed():
            raise Refused(f"{path} is in use by another event loop of this process")
        held = None  # its loop ended without a release; the lock went with the file handle
    if held is None:
        held = _held[key] = _Held(Log(key, sync), loop, loop.create_future())
        held.users = 1
        try:
            await held.log.open()
        except BaseException as error:
            del _held[key]
            held.opened.set_exception(error)
            held.opened.exception()
            raise
        held.opened.set_result(None)
        return held.log
    held.users += 1
    await asyncio.shield(held.opened)
    return held.log


async def release(log: Log) -> None:
    """Give a log back that was acquired; the last one closes it."""
    held = _held.get(log.path)
    if held is None or held.log is not log:
        return
    held.users -= 1
    if held.users == 0:
        del _held[log.path]
        await log.close()


def held(path: Path) -> Log | None:
    """The log of `path`, if this process holds it open on the running event loop."""
    entry = _held.get(_key(path))
    if entry is None or not entry.opened.done() or entry.loop is not asyncio.get_running_loop():
        return None
    return entry.log
