"""What each route asks of whoever comes: one table, in which every route of the worker has its row.

In: a request. Out: its right. A route that is in no row may only be used with a credential.
"""

from enum import Enum

from aiohttp import web


class Asked(Enum):
    """What is asked for a request."""

    OPEN = "nothing: it says nothing of the site, or has to be read by probes and scrapers"
    READ = "nothing where reading is open, else a credential: it shows what is held"
    ASK = "a credential where there is one to show: it changes something, or costs more than reading what is held"
    BIND = "a credential, whatever is configured: it writes to the cluster"


RIGHTS = {
    "GET /healthz": Asked.OPEN,
    "GET /readyz": Asked.OPEN,
    "GET /metrics": Asked.OPEN,
    "GET /": Asked.OPEN,
    "GET /static/{name}": Asked.OPEN,
    "GET /runbooks/{name}": Asked.OPEN,
    "GET /api/v1/session": Asked.OPEN,
    "POST /api/v1/session": Asked.OPEN,
    "DELETE /api/v1/session": Asked.OPEN,
    "GET /extender/readyz": Asked.OPEN,
    "GET /api/v1/sites": Asked.READ,
    "GET /api/v1/severities": Asked.READ,
    "GET /api/v1/map": Asked.READ,
    "GET /api/v1/findings": Asked.READ,
    "GET /api/v1/activity": Asked.READ,
    "GET /api/v1/events": Asked.READ,
    "GET /api/v1/nodes/{name}": Asked.READ,
    "GET /api/v1/hosts/{name}": Asked.READ,
    "GET /api/v1/pods/{namespace}/{name}": Asked.ASK,
    "GET /api/v1/history": Asked.ASK,
    "GET /api/v1/snapshot": Asked.ASK,
    "POST /api/v1/whatif": Asked.ASK,
    "POST /api/v1/repair": Asked.ASK,
    "POST /api/v1/maintain": Asked.ASK,
    "POST /extender/filter": Asked.ASK,
    "POST /extender/prioritize": Asked.ASK,
    "POST /extender/preempt": Asked.ASK,
    "GET /api/v1/repair/apply/{id}": Asked.ASK,
    "GET /api/v1/maintenance": Asked.READ,
    "GET /api/v1/maintenance/apply/{id}": Asked.ASK,
    "POST /api/v1/repair/apply": Asked.BIND,
    "POST /api/v1/maintenance/apply": Asked.BIND,
    "POST /extender/bind": Asked.BIND,
}
"""By method and path. The page's own files are open, as they hold nothing of a site and sign people in."""

PAST = "at"
"""The parameter that asks for another moment, which is worked out from the topics."""


def right_of(request: web.Request) -> Asked:
    """What is asked for a request; nothing for a path that there is not."""
    resource = request.match_info.route.resource
    if resource is None:
        return Asked.OPEN
    method = "GET" if request.method == "HEAD" else request.method
    right = RIGHTS.get(f"{method} {resource.canonical}", Asked.ASK)
    return Asked.ASK if right is Asked.READ and PAST in request.query else right
