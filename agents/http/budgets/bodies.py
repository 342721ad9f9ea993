"""The bodies of requests: plain ones only, of bounded size, sent in bounded time, and so many bytes of all together.

In: requests. Out: their bodies, or a refusal. Bytes count as they come, not as they are announced, until the request is
answered: who announces much and sends nothing takes nothing from others. A compressed body is refused unread: a few
bytes of it can be very many.
"""

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from underhost.agents.http.budgets.connections import CONNECTIONS
from underhost.agents.http.budgets.work import has_left
from underhost.agents.http.guard import RequestRefused

BODY = 1 << 20
"""Bytes of a body, unless its route allows more."""
TOGETHER = 72 << 20
"""Bytes of all bodies that are not answered yet: one that is as large as any may be, and small ones."""

SENDING = web.AppKey("sending", float)
"""Seconds that a client may take to send the body of a request."""
_OWN = web.RequestKey("own", int)
"""Of a request: its bytes among those that are held."""


class HeldBodies:
    """How many bytes the bodies have that are not answered yet."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, request: web.Request, size: int) -> None:
        """So many more bytes of a request. Raises RequestRefused where there is no room."""
        if self.size + size > TOGETHER:
            raise RequestRefused(503, "the bodies of other requests take all the room; ask again")
        request[_OWN] = request.get(_OWN, 0) + size
        self.size += size

    def give_back(self, request: web.Request) -> None:
        """The request is answered."""
        self.size -= request.pop(_OWN, 0)


HELD = web.AppKey("held", HeldBodies)


@web.middleware
async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses a body in a content coding, and lets the room of a body go with its answer."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RequestRefused(415, "a body in a content coding is not read; send it plain")
    try:
        return await handler(request)
    finally:
        request.app[HELD].give_back(request)


async def body_of(request: web.Request, limit: int = BODY) -> bytearray:
    """The body of a request, of `limit` bytes at most; of `BODY` where it does not say how long it is.

    Raises HTTPRequestEntityTooLarge, HTTPRequestTimeout for a client that does not send what it has announced, and
    RequestRefused where others take all the room, ConnectionError for a client that has left.
    """
    announced, held = request.content_length, request.app[HELD]
    if announced is None:
        limit = min(limit, BODY)
    elif announced > limit:
        raise web.HTTPRequestEntityTooLarge(limit, announced)
    body, chunk = bytearray(), b""  # it grows with what comes: zeros for what is only announced would be memory, too
    try:
        with request.app[CONNECTIONS].waiting_for(request):
            async with asyncio.timeout(request.app[SENDING]):
                while chunk := await request.content.readany():
                    held.take(request, len(chunk))
                    if len(body) + len(chunk) > limit:
                        raise web.HTTPRequestEntityTooLarge(limit, len(body) + len(chunk))
                    body += chunk
    except BaseException as error:
        # The stream keeps the error of a lost connection, and the error this frame, until a collection.
        body, chunk = bytearray(), b""
        if isinstance(error, TimeoutError):
            raise web.HTTPRequestTimeout from None
        if isinstance(error, RuntimeError) and has_left(request):  # aiohttp's, where it was lost before it was read
            raise ConnectionResetError("the client has left") from None
        raise
    return body
