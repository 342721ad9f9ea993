"""What each route asks of whoever comes: one table, in which every route of the worker has its row.

In: a request. Out: its right. A route that is in no row may only be used with a credential.
"""

from enum import Enum

from aiohttp import web


class Right(Enum):
    """What is asked for a request."""

    OPEN = "nothing: it says nothing of the site, or has to be read by probes and scrapers"
    READ = "nothing where reading is open, else a credential: it shows what is held"
    ASK = "a credential where there is one to show: it changes something, or costs more than reading what is held"
    BIND = "a credential, whatever is configured: it writes to the cluster"


RIGHTS = {
    "GET /healthz": Right.OPEN,
    "GET /readyz": Right.OPEN,
    "GET /metrics": Right.OPEN,
    "GET /": Right.OPEN,
    "GET /static/{name}": Right.OPEN,
    "GET /api/v1/session": Right.OPEN,
    "POST /api/v1/session": Right.OPEN,
    "DELETE /api/v1/session": Right.OPEN,
    "GET /extender/readyz": Right.OPEN,
    "GET /api/v1/sites": Right.READ,
    "GET /api/v1/severities": Right.READ,
    "GET /api/v1/map": Right.READ,
    "GET /api/v1/findings": Right.READ,
    "GET /api/v1/activity": Right.READ,
    "GET /api/v1/events": Right.READ,
    "GET /api/v1/pods/{namespace}/{name}": Right.ASK,
    "GET /api/v1/history": Right.ASK,
    "GET /api/v1/snapshot": Right.ASK,
    "POST /api/v1/whatif": Right.ASK,
    "POST /extender/filter": Right.ASK,
    "POST /extender/prioritize": Right.ASK,
    "POST /extender/preempt": Right.ASK,
    "POST /extender/bind": Right.BIND,
}
"""By method and path. The page's own files are open, as they hold nothing of a site and sign people in."""

PAST = "at"
"""The parameter of map and findings that asks for another moment, which is worked out from the topics."""


def right_of(request: web.Request) -> Right:
    """What is asked for a request; nothing for a path that there is not."""
    resource = request.match_info.route.resource
    if resource is None:
        return Right.OPEN
    method = "GET" if request.method == "HEAD" else request.method
    right = RIGHTS.get(f"{method} {resource.canonical}", Right.ASK)
    return Right.ASK if right is Right.READ and PAST in request.query else right
