"""May this worker still write? Asked by the clients, right before each request that changes a cluster.

In: a question, which the fence of a role asks around a writer's method. Out: what the question raises, inside of the
client: credentials' plugins, logins, reads and handshakes come before the request, and each may take longer than a
lease does. Outside of such a block nothing is asked. A thread asks as well, so that one which nobody waits for any more
writes nothing.
"""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType

from underhost.schemas.errors import Unreachable


class WriteQuestion:
    """A question that each write asks in this block, and in what it starts; it raises where none may be made.

    It is asked in threads, too: it only reads. After the block nothing is written any more.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self.ask, self.has_ended = ask, False

    def __enter__(self) -> None:
        self._token = _question.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.has_ended = True
        _question.reset(self._token)


_question: ContextVar[WriteQuestion | None] = ContextVar("asked before each write", default=None)


def before_write() -> None:
    """Called by a client that is about to send a write. Raises Unreachable where it must not be sent."""
    asked = _question.get()
    if asked is None:
        return
    if asked.has_ended:
        raise Unreachable("nothing is written by this worker: whoever asked for it has given up")
    asked.ask()
