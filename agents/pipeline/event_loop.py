"""The event loop that a worker runs in: uvloop's, which takes about a fifth less processor time, or else asyncio's own.

In: the coroutine to run. Out: its result. uvloop has no build for every platform and interpreter; nothing else depends
on it. `settle` keeps Python's collector from holding the loop up.
"""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it in an event loop of its own, and close that; `asyncio.run` otherwise."""
    try:
        import uvloop  # not there on every platform
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def settle() -> None:
    """Let full collections leave out what is there now: of a large site's objects each would take half a second.

    Called when a pipeline is ready. What an earlier one has left behind is collected first.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
