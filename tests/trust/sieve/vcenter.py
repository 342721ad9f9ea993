"""What a worker is shown of the vCenter: everything, but the updates of the inventory can be held back.

In: SOAP requests. Out: the real answers. Held updates either come late, or never: their connection is cut, so that the
worker logs in and lists again.
"""

import asyncio
import re
import ssl

from aiohttp import web
from trust.sieve.forwarder import Cut, Forwarder, OnWrite

UPDATES = b"WaitForUpdatesEx"
CHANGE = b"ReconfigureComputeResource_Task"


class VCenterView(Forwarder):
    """What the workers of the plan `scope` see of the vCenter at `target`."""

    def __init__(self, target: str, trusted: ssl.SSLContext, on_write: OnWrite, scope: str) -> None:
        super().__init__(target, trusted, on_write)
        self._scope = scope
        self._flowing, self._expired = asyncio.Event(), asyncio.Event()
        self._flowing.set()

    def hold(self) -> None:
        """Answer no request for updates any more."""
        self._flowing.clear()
        self._expired.clear()

    def release(self) -> None:
        """Answer those that wait."""
        self._flowing.set()

    def expire(self) -> None:
        """Cut those that wait."""
        self._expired.set()
        self._flowing.set()

    def write_of(self, request: web.Request, body: bytes) -> str | None:
        """See `Forwarder.write_of`: `rule add`."""
        if CHANGE not in body:
            return None
        operation = re.search(rb"<operation>(\w+)</operation>", body)
        return f"rule {operation[1].decode() if operation is not None else '?'}"

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """See `Forwarder.answer`."""
        response = await super().answer(request, body)
        if UPDATES in body and not self._flowing.is_set():
            await self._flowing.wait()
            if self._expired.is_set():
                raise Cut
        return response
