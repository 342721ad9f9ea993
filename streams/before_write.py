"""May this worker still write? Asked by the clients, right before each request that changes a cluster.

In: a question, which the fence of a role asks around a writer's method. Out: what the question raises, inside of the
client: credentials' plugins, logins and reads come before the request, and each may take longer than a lease does.
Outside of such a block nothing is asked. A thread asks as well, so that one which nobody waits for any more writes
nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from underhost.schemas.errors import Unreachable


@dataclass
class _WriteQuestion:
    """A question, and whether the call that it belongs to has ended."""

    ask: Callable[[], None]
    has_ended: bool = False


_question: ContextVar[_WriteQuestion | None] = ContextVar("asked before each write", default=None)


@contextmanager
def ask_before_writes(question: Callable[[], None]) -> Iterator[None]:
    """In this block, and in what it starts, each write asks; `question` raises where none may be made.

    It is asked in threads, too: it only reads.
    """
    asked = _WriteQuestion(question)
    token = _question.set(asked)
    try:
        yield
    finally:
        asked.has_ended = True
        _question.reset(token)


def before_write() -> None:
    """Called by a client that is about to send a write. Raises Unreachable where it must not be sent."""
    asked = _question.get()
    if asked is None:
        return
    if asked.has_ended:
        raise Unreachable("nothing is written by this worker: whoever asked for it has given up")
    asked.ask()
