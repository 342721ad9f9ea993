"""One login at a vCenter that is kept for as long as it counts: for writers, which ask now and then.

In: settings. Out: a session for each use, made at the first one, and made anew once the server has forgotten it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from underhost.schemas.errors import Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import Session, SessionLost

T = TypeVar("T")

Connect = Callable[[VSphereSettings], Awaitable[Session]]


class KeptSession:
    """Logs in at the first use and again when the session was lost."""

    def __init__(self, settings: VSphereSettings, connect: Connect) -> None:
        self._settings, self._connect = settings, connect
        self._session: Session | None = None
        self._login = asyncio.Lock()

    async def use(self, with_it: Callable[[Session], Awaitable[T]]) -> T:
        """Use the session; one that has expired, which the server says before it does anything, is replaced once."""
        for attempt in (1, 2):
            async with self._login:
                if self._session is None:
                    self._session = await self._connect(self._settings)
                session = self._session
            try:
                return await with_it(session)
            except Unreachable as error:
                if self._session is session:
                    self._session = None
                if not isinstance(error, SessionLost) or attempt == 2:
                    await session.close()
                    raise
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Log out."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
