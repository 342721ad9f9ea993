"""The door of a listener: who has shown what, and whether that is enough for what is asked.

In: any request that the guard has let by. Out: it goes on to its route, or a refusal: 401 for who has shown nothing,
403 for who has shown something wrong. A credential is a certificate that the listener's CAs have signed, the token
(`Authorization: Bearer`), or the page's session; for the extender's questions also the token as a password, as
kube-scheduler sends what stands in its `urlPrefix`, and never the session.
"""

import base64
import binascii
from enum import Enum

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from underhost.agents.http.doors.rights import Asked, right_of
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.http.guard import refuse

EXTENDER = "/extender/"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="underhost"'}


class Shown(Enum):
    """What somebody has shown."""

    NOTHING = "nothing"
    WRONG = "something that is no credential of this door"
    GOOD = "a credential"


class Door:
    """What a listener asks for.

    Args:
        token: what is compared with what is shown; None where there is none.
        certificates: whether the listener's TLS checks those of clients.
        open_to_read: whether reading what is held needs nothing.
    """

    def __init__(
        self, token: TokenFile | None = None, *, certificates: bool = False, open_to_read: bool = True
    ) -> None:
        self.token, self._certificates, self.open_to_read = token, certificates, open_to_read

    @property
    def asks(self) -> bool:
        """Whether there is a credential to show."""
        return self.token is not None or self._certificates

    def shown(self, request: web.Request) -> Shown:
        """What the client has shown."""
        if self._certificates and request.get_extra_info("peercert"):
            return Shown.GOOD
        if self.token is None:
            return Shown.NOTHING
        if (header := request.headers.get("Authorization")) is not None:
            given = _given(header, password=request.path.startswith(EXTENDER))
            return Shown.GOOD if given is not None and self.token.is_it(given) else Shown.WRONG
        session = request.cookies.get(self.token.cookie)
        if session is not None and not request.path.startswith(EXTENDER) and self.token.is_session(session):
            return Shown.GOOD
        return Shown.NOTHING

    def refusal(self, request: web.Request) -> web.Response | None:
        """Why a request may not go on; None where it may."""
        right = right_of(request)
        if right is Asked.OPEN or (right is Asked.READ and self.open_to_read):
            return None
        if not self.asks:
            return (
                None
                if right is Asked.ASK
                else refuse(403, "nobody may change anything here: web.tokenFile is not configured")
            )
        shown = self.shown(request)
        if shown is Shown.GOOD:
            return None
        if shown is Shown.WRONG:
            return refuse(403, "that is not the token")
        what = "a client certificate" if self.token is None else "the token"
        refusal = refuse(401, f"{what} is needed")
        refusal.headers.update(CHALLENGE)
        return refusal


def at(door: Door) -> Middleware:
    """The middleware of a door."""

    @web.middleware
    async def asked(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = door.refusal(request)
        if refusal is None:
            return await handler(request)
        if request.body_exists:
            refusal.force_close()  # a body that nobody reads is not waited for
        return refusal

    return asked


def _given(header: str, *, password: bool) -> str | None:
    """The token of an Authorization header: of `Bearer`, or with `password` of `Basic`; None for any other."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic" or not password:
        return None
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None
