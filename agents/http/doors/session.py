"""`/api/v1/session`: the page signs in with the token once, and gets a cookie that no script can read.

In: `{"token": T}`. Out: the cookie, whether the client is signed in, and whether it may read without (`reads`). The
cookie goes to no other site (SameSite) and, under TLS, over nothing else. It holds a signed session, never the token.
"""

import msgspec
from aiohttp import web

from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.doors.door import Door, Shown
from underhost.agents.http.doors.token import SESSION_SECONDS
from underhost.agents.http.guard import RequestRefused, say

PATH = "/api/v1/session"
LONGEST = 4096
"""Bytes of a body."""


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    token: str


def routes(door: Door) -> list[web.RouteDef]:
    """The routes of a door."""

    def standing(signed_in: bool) -> web.Response:
        needed = door.token is not None
        return say("Session", {"needed": needed, "reads": door.open_to_read, "signedIn": signed_in})

    async def look(request: web.Request) -> web.Response:
        return standing(door.shown(request) is Shown.GOOD)

    async def sign_in(request: web.Request) -> web.Response:
        try:
            given = msgspec.json.decode(await body_of(request, LONGEST), type=SignIn)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestRefused(422, str(error)) from error
        if door.token is None:
            return standing(signed_in=False)
        if not door.token.is_it(given.token):
            raise RequestRefused(403, "that is not the token")
        answer = standing(signed_in=True)
        answer.set_cookie(
            door.token.cookie,
            door.token.new_session(),
            max_age=SESSION_SECONDS,
            path="/",
            secure=request.secure,
            httponly=True,
            samesite="Strict",
        )
        return answer

    async def sign_out(request: web.Request) -> web.Response:
        answer = standing(signed_in=False)
        if door.token is not None:
            answer.del_cookie(door.token.cookie, path="/", secure=request.secure, httponly=True, samesite="Strict")
        return answer

    return [web.get(PATH, look), web.post(PATH, sign_in), web.delete(PATH, sign_out)]
