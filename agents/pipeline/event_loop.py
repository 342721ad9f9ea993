"""The event loop that a worker runs in: uvloop's, which takes about a fifth less processor time, or else asyncio's own.

In: the coroutine to run. Out: its result. uvloop has no build for every platform and interpreter; nothing else depends
on it. Threads that work beside the loop give way to it soon, and large blocks of memory go back to the system at once.
`settle` keeps Python's collector from holding the loop up, `keep_memory_low` glibc from keeping what a burst of
records has needed.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EVERY = 60.0
"""Seconds after which free memory is given back, again and again."""
SWITCH = 0.0001
"""Seconds for which a thread may go on while the loop waits for the interpreter. The loop lets go of it with each
connection that it takes and each piece that it reads, and so waits that long each time: at Python's own 5 ms beside an
evaluation half as many changes were read in a second, and at 1 ms a crowd's connections beside a plan took the loop
0.3 s of which it worked for 10 ms."""
BLOCK = 1 << 20
"""Bytes of memory from which on a block is the system's again as soon as it is free. glibc's own bound grows with what
is freed, up to 32 MiB; then bodies of requests leave holes among what stays."""
COLLECT = (50_000, 20, 20)
"""Objects that are made between two collections, and how many of these are short: one takes some 10 ms."""
_M_MMAP_THRESHOLD = -3


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it in an event loop of its own, and close that; `asyncio.run` otherwise."""
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(*COLLECT)
    _return_blocks()
    try:
        import uvloop  # not there on every platform
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def _return_blocks() -> None:
    """See `BLOCK`. Elsewhere than with glibc: nothing."""
    bound = getattr(ctypes.CDLL(None), "mallopt", None)
    if bound is not None:
        bound(_M_MMAP_THRESHOLD, BLOCK)


def settle() -> None:
    """Let full collections leave out what is there now: of a large site's objects each would take half a second.

    Called when a pipeline is ready. What an earlier one has left behind is collected first. What the start has needed
    goes back to the system: later it would hold up the first changes of a large site for half a second.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    give_back_memory()


async def keep_memory_low() -> None:
    """Give free memory back now and then, in a thread, until cancelled."""
    while True:
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(give_back_memory)


def give_back_memory() -> None:
    """Give the system the pages that hold nothing any more.

    glibc itself gives back only what is free at the end of each of its arenas: of a worker on a small site a sixth was
    free between the rows. It takes 5 ms there, 160 ms for 2 GiB, and lets other threads work. Elsewhere: nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
