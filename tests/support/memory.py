"""How much memory Python's own objects take while a test does something."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class MemoryUsed:
    """In bytes, known after the block: `held` at its end, `most` at any moment of it."""

    held: int = 0
    most: int = 0


@contextmanager
def traced() -> Iterator[MemoryUsed]:
    """Trace what is taken in this block, and not before it."""
    used = MemoryUsed()
    tracemalloc.start()
    try:
        yield used
        used.held, used.most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
