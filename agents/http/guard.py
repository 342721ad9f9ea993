"""What every request passes through: who may ask, and what a browser may do with the answer.

In: any request. Out: its answer with the headers that keep a browser honest, or a refusal as JSON; routes raise theirs.
The page has no password: what protects it is the address that it listens on, and that no other site's page in the same
browser can speak to it. A public name that an attacker points at this address (DNS rebinding) is refused by the Host
header, a form, a script or an image of another site by Origin and Sec-Fetch-Site, whatever it asks: reading costs,
too. There is no CORS.
"""

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from underhost.schemas.documents import API_VERSION
from underhost.schemas.errors import BackendError, InputError

OPEN = ("/healthz", "/readyz", "/metrics")
"""Probes and scrapers come by whatever name the machine has, and learn nothing about the site."""
READING = ("GET", "HEAD")
PAGE = "/"
"""Where links from elsewhere lead."""
INSIDE = (".svc", ".cluster.local", ".localhost")
"""Ends of names that no public name server answers for."""
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LONGEST = 1000
"""Characters of an error."""


class RequestRefused(Exception):
    """A request is answered with an error: its status, and why in one line."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def guard(hosts: Collection[str] = ()) -> Middleware:
    """The middleware; `hosts` are further names that the page may be called by."""
    named = frozenset(host.lower() for host in hosts)

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            _check(request, named)
            return await handler(request)
        except RequestRefused as error:
            return refuse(error.status, error.why)
        except InputError as error:
            return refuse(422, "; ".join(error.faults))
        except BackendError as error:
            return refuse(503, str(error))
        except web.HTTPRequestEntityTooLarge as error:  # whose reason differs from Python to Python
            return refuse(error.status, "the body is too large")
        except web.HTTPException as error:
            if error.status < 400:
                return error
            refusal = refuse(error.status, error.reason.lower())
            if error.status == web.HTTPRequestTimeout.status_code:
                refusal.force_close()
            return refusal

    return guarded


async def harden(request: web.Request, response: web.StreamResponse) -> None:
    """Runs before the headers of any answer are sent, a stream's too."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.popall("Server", None)


def say(kind: str, fields: Mapping[str, object], status: int = 200) -> web.Response:
    """A small document, an error or what a probe says, with what every JSON document begins with."""
    return web.json_response(dict(sorted({"apiVersion": API_VERSION, "kind": kind, **fields}.items())), status=status)


def refuse(status: int, why: str) -> web.Response:
    """An error as every route of the API says it; of what was sent, no more than a line is repeated."""
    return say("Error", {"error": why if len(why) <= LONGEST else f"{why[:LONGEST]}…"}, status)


def _check(request: web.Request, named: frozenset[str]) -> None:
    """Raises RequestRefused for a request that no route may see."""
    if request.path not in OPEN and not is_ours(request.host, named):
        raise RequestRefused(421, "this host name is not served; name it in web.hosts")
    if request.path in OPEN and request.method in READING:
        return
    origin = request.headers.get("Origin")
    if origin is not None and not _is_origin(origin, request.host):
        raise RequestRefused(403, "a request of another origin")
    asking = request.headers.get("Sec-Fetch-Site", "same-origin")
    if asking not in ("same-origin", "none") and not _is_link(request):
        raise RequestRefused(403, "a request of another site")
    if request.method in READING:
        return
    if request.body_exists and request.content_type != "application/json":
        raise RequestRefused(415, "application/json is expected")


def _is_origin(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _is_link(request: web.Request) -> bool:
    """Whether a person follows a link to the page, as in a message about a finding: it opens as a page of its own."""
    to = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    return request.method in READING and request.path == PAGE and to == ("navigate", "document")


def is_ours(host: str, named: Collection[str]) -> bool:
    """Whether a Host header is an address, a name that only a local network knows, or one that was named."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return False
    if name in named or name.endswith(INSIDE):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return bool(name) and "." not in name
    return True
