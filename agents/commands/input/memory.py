"""Memory of a command that reads a whole site: what is made of the input lives as long as the process.

In: nothing. Out: settings of this process, of the garbage collector and of the C library's allocator.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MADE = 5_000_000
"""Objects between two collections. A million pods make three million."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3), as glibc numbers them."""
_NEVER, _LARGEST = 2**31 - 1, 32 << 20
"""Bytes; glibc takes no larger threshold for what is mapped."""


@contextmanager
def kept() -> Iterator[None]:
    """What is read in here lives as long as the command: no garbage collection looks at it, neither now nor later."""
    gc.disable()
    if sys.platform == "linux":
        keep_freed(ctypes.CDLL(None))
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_MADE)
        gc.enable()


def keep_freed(libc: object) -> None:
    """Have glibc keep what is freed for the next use; given back to the system it would come again page by page.

    Judging makes and frees arrays of a megabyte by the hundred. Another C library is left as it is.
    """
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _NEVER)
