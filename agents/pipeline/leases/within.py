"""A limit of time around one write: another worker may write from its end on.

In: the limit, and what to say. Out: the write ends in time, or is cancelled. Who may write, and how a limit moves
when a lease is renewed, is left to `roles.py` and `gates/fence.py`.
"""

from types import TracebackType

from underhost.schemas.errors import Unreachable
from underhost.streams.limits import Limit


class Within:
    """Entered around each write, so it is no generator. Raises Unreachable (`why`) where the write had to be ended.

    It may have been done then.
    """

    def __init__(self, limit: Limit, why: str) -> None:
        self._limit, self._why = limit, why

    def __enter__(self) -> None:
        self._limit.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._limit.__exit__(kind, error, trace)
        except TimeoutError:
            raise Unreachable(self._why) from None
        if isinstance(error, TimeoutError) and self._limit.is_over:
            raise Unreachable(self._why) from None
