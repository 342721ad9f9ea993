"""kube-scheduler that sends the token as the password of its `urlPrefix` must not be made to publish it.

Where an extender answers anything but 200, kube-scheduler puts the whole `urlPrefix` into its error: into its log and,
unless the extender is `ignorable`, into Events and conditions of the tenant's pod. So who has come with the right
password is told what is wrong in the answer itself, which kube-scheduler takes for the same failure; where the answer
has no place for it the connection ends, as Go leaves passwords out of what it says of connections.
"""

import logging

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from underhost.agents.http.doors.door import EXTENDER
from underhost.agents.http.guard import refuse

log = logging.getLogger(__name__)

WITH_ERROR = ("filter", "bind")
"""Verbs whose answer may be an error."""
TOLD = (200, 401, 403)
"""What is told as it is: 401 and 403 mean that the password opens nothing here, so that a person sees what is wrong. It
is published, so that a new token is given to the worker before kube-scheduler. What is refused before anybody looks at
the password is told in the answer to whoever shows one."""


class _WhyNot(msgspec.Struct):
    error: str = ""


@web.middleware
async def unpublished(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The middleware; it stands before all others, as any of them may refuse."""
    scheme = request.headers.get("Authorization", "").partition(" ")[0]
    if not request.path.startswith(EXTENDER) or scheme.lower() != "basic":
        return await handler(request)
    try:
        response = await handler(request)
    except Exception:  # the server would log it, too, and answer 500, past this middleware
        log.exception("a question at %s has failed", request.path)
        response = refuse(500, "a defect of underhost, whose log says more")
    if response.status in TOLD:
        return response
    if request.path.removeprefix(EXTENDER) not in WITH_ERROR:
        if request.transport is not None:
            request.transport.abort()
        return response
    answer = web.json_response({"Error": _why(response)})
    answer.force_close()  # as after a 503: a Service may lead to another worker
    return answer


def _why(response: web.StreamResponse) -> str:
    try:
        return msgspec.json.decode(getattr(response, "body", None) or b"{}", type=_WhyNot).error
    except msgspec.DecodeError:
        return f"{response.status} {response.reason}"
