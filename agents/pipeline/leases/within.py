"""A limit of time around one write: another worker may write from its end on.

In: the seconds, and what to say. Out: the write ends in time, or is cancelled. Who may write, and how a limit moves
when a lease is renewed, is left to `roles.py` and `gates/fence.py`.
"""

import asyncio
from types import TracebackType

from underhost.schemas.errors import Unreachable


class Within:
    """Entered around each write, so it is no generator. Without `seconds` there is no limit.

    `among` holds it while it runs, for whoever moves it. Raises Unreachable (`why`) where the write had to be ended: it
    may have been done.
    """

    def __init__(self, seconds: float | None, why: str, among: set[asyncio.Timeout] | None = None) -> None:
        self._limit, self._why, self._among = asyncio.timeout(seconds), why, among

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        if self._among is not None:
            self._among.add(self._limit)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._among is not None:
            self._among.discard(self._limit)
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Unreachable(self._why) from None
        if isinstance(error, TimeoutError) and self._limit.expired():
            raise Unreachable(self._why) from None
