"""How far a long evaluation is: the loops of the evaluator count, and whoever listens is told.

In: the items of a loop. Out: the same items; after each, the listener hears what is done, how many of how many, and may
end the work by raising something. Called by the loops that can take seconds; what cannot be counted says `alive`. The
command line listens (`output/progress.py`), and a worker that plans for somebody; the pipeline does not.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def listen(listener: Listener | None) -> None:
    """Tell this listener, from now on, in this thread."""
    _listener.set(listener)


def alive() -> None:
    """Work that counts nothing goes on: the listener hears nothing new, and may end the work."""
    listener = _listener.get()
    if listener is not None:
        listener("", 0, 0)


def told(what: str, items: Sequence[Item], shares: int = 1) -> Iterable[Item]:
    """The items; where nobody listens, themselves. `shares`: so many processes are at as many items as this one."""
    listener = _listener.get()
    return items if listener is None else _counted(what, items, shares, listener)


def _counted(what: str, items: Sequence[Item], shares: int, listener: Listener) -> Iterator[Item]:
    for done, item in enumerate(items):
        listener(what, done * shares, len(items) * shares)
        yield item
