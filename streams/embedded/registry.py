"""Which embedded logs this process holds open: the transport, readers and admin commands share one log per file.

In: a path. Out: the open log, with a count of its users; the last user's release closes it.
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
    lock: asyncio.Lock
    users: int = 0
    open: bool = False


_held: dict[Path, _Held] = {}


def _key(path: Path) -> Path:
    return path.resolve()


async def acquire(path: Path, sync: str = "NORMAL") -> Log:
    """The log of `path`, opened if it is not open yet. Raises Refused, Unreachable or InputError; see `Log.open`."""
    key, loop = _key(path), asyncio.get_running_loop()
    entry = _held.get(key)
    if entry is not None and entry.loop is not loop:
        if entry.open and not entry.loop.is_closed():
            raise Refused(f"{path} is in use by another event loop of this process")
        entry = None
    if entry is None:
        entry = _held[key] = _Held(Log(key, sync), loop, asyncio.Lock())
    entry.users += 1
    try:
        async with entry.lock:  # wait for an open or close that is under way
            if not entry.open:
                entry.log = Log(key, sync)
                await entry.log.open()
                entry.open = True
    except BaseException:  # a cancellation, too: who did not get the log is not its user
        await _leave(key, entry)
        raise
    return entry.log


async def release(log: Log) -> None:
    """Release a log that was acquired; the last user closes it."""
    entry = _held.get(log.path)
    if entry is not None and entry.log is log:
        await _leave(log.path, entry)


async def _leave(key: Path, entry: _Held) -> None:
    entry.users -= 1
    async with entry.lock:
        if entry.users:
            return
        if entry.open:
            entry.open = False
            await entry.log.close()
    if not entry.users and _held.get(key) is entry:
        del _held[key]


def held(path: Path) -> Log | None:
    """The log of `path`, if this process holds it open on the running event loop."""
    entry = _held.get(_key(path))
    if entry is None or not entry.open or entry.loop is not asyncio.get_running_loop():
        return None
    return entry.log
