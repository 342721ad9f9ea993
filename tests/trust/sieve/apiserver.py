"""What a worker is shown of the real API server: one plan's part of it, now, later, or as it was.

In: the plan's name, which is its namespace and begins the names of its nodes. Out: real lists and watches without the
objects of other plans, so that several plans share one API server. A watch can be held, and then go on (a slow API
server) or expire (the worker lists again and never sees what was between). Lists can show an old state, as an API
server with a stale cache does for `resourceVersion=0`. All else is passed on.
"""

import asyncio
import json
import re
import ssl
from collections import defaultdict
from typing import Any
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from trust.sieve.forwarder import Forwarder, OnWrite

from underhost.streams.kubernetes.kinds import KINDS

PLURALS = {kind.path: kind.plural for kind in KINDS}
EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
WRITES = (
    (r"POST /api/v1/namespaces/[^/]+/pods/[^/]+/binding", "bind"),
    (r"POST /api/v1/namespaces/[^/]+/pods/[^/]+/eviction", "evict"),
    (r"(?:PATCH|PUT) /api/v1/namespaces/[^/]+/pods/[^/]+/status", "condition"),
    (r"PATCH /api/v1/namespaces/[^/]+/pods/[^/]+", "pod-label"),
    (r"(?:POST|PATCH|PUT) /apis/events.k8s.io/v1/.*", "event"),
    (r"(?:POST|PATCH|PUT) /api/v1/namespaces/[^/]+/events.*", "event"),
)
"""What a write is called; a PATCH of a node is a label or a taint by its content type, with the node's name."""
NOT_COUNTED = "/apis/coordination.k8s.io/"
"""Leases are renewed all the time."""


class ApiServerView(Forwarder):
    """What the workers of the plan `scope` see of the API server at `target`.

    Attributes:
        listed_at: the resourceVersion whose state lists show; "" shows them as they are.
        lists: how often each kind (plural) was listed.
    """

    def __init__(self, target: str, trusted: ssl.SSLContext, on_write: OnWrite, scope: str) -> None:
        super().__init__(target, trusted, on_write)
        self._scope = scope
        self._flowing: defaultdict[str, asyncio.Event] = defaultdict(_set)
        self._expired: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.listed_at = ""
        self.lists: defaultdict[str, int] = defaultdict(int)

    # ------------------------------------------------------------------------------------------ what a plan does to it
    def hold(self, *kinds: str) -> None:
        """Deliver nothing more on the watches of these kinds (plurals)."""
        for kind in kinds:
            self._flowing[kind].clear()

    def release(self, *kinds: str) -> None:
        """Deliver what was held back, in order."""
        for kind in kinds:
            self._flowing[kind].set()

    def expire(self, *kinds: str) -> None:
        """End these watches with a 410, without what was held back."""
        for kind in kinds:
            for expired in self._expired[kind]:
                expired.set()
        self.release(*kinds)

    # -------------------------------------------------------------------------------------------------------- requests
    def write_of(self, request: web.Request, body: bytes) -> str | None:
        """See `Forwarder.write_of`: `bind`, `label n1`."""
        if request.method == "GET" or request.path.startswith(NOT_COUNTED):
            return None
        asked = f"{request.method} {request.path}"
        if (node := re.fullmatch(r"PATCH /api/v1/nodes/([^/]+)", asked)) is not None:
            what = "taint" if "json-patch" in request.content_type else "label"
            return f"{what} {self.short(node[1])}"
        for pattern, what in WRITES:
            if re.fullmatch(pattern, asked):
                return what
        return asked.replace(self._scope, "SITE")

    def short(self, name: str) -> str:
        """A node's name without the plan's."""
        return name.removeprefix(f"{self._scope}-")

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """See `Forwarder.answer`."""
        kind = PLURALS.get(request.path) if request.method == "GET" else None
        if kind is None:
            return await super().answer(request, body)
        query = dict(parse_qsl(request.query_string))
        return await (self._watch(request, kind) if query.get("watch") else self._list(request, kind, query))

    async def _list(self, request: web.Request, kind: str, query: dict[str, str]) -> web.StreamResponse:
        if self.listed_at:
            query |= {"resourceVersion": self.listed_at, "resourceVersionMatch": "Exact"}
        async with self.ask(request, query=urlencode(query)) as answer:
            data = await answer.read()
            if answer.status == 200:
                page = json.loads(data)
                page["items"] = [item for item in page.get("items") or () if self._shows(item)]
                data = json.dumps(page).encode()
                self.lists[kind] += 1
            return self.passed_on(answer, data)

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        async with self.ask(request) as answer:
            if answer.status != 200:
                return self.passed_on(answer, await answer.read())
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            expired = asyncio.Event()
            self._expired[kind].add(expired)
            ending = asyncio.ensure_future(expired.wait())
            relaying = asyncio.ensure_future(self._relay(answer, response, kind, expired))
            try:
                await asyncio.wait({relaying, ending}, return_when=asyncio.FIRST_COMPLETED)
                if expired.is_set():
                    relaying.cancel()
                    await response.write(json.dumps(EXPIRED).encode() + b"\n")
                else:
                    relaying.result()
            finally:
                self._expired[kind].discard(expired)
                relaying.cancel()
                ending.cancel()
            return response

    async def _relay(self, answer: Any, response: web.StreamResponse, kind: str, expired: asyncio.Event) -> None:
        """The lines of a watch that are the plan's, each as soon as nothing is held; none once it has expired."""
        rest = b""
        async for piece in answer.content.iter_any():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                event = json.loads(line) if line else None
                if event is not None and (event["type"] in {"BOOKMARK", "ERROR"} or self._shows(event["object"])):
                    await self._flowing[kind].wait()
                    if expired.is_set():
                        return
                    await response.write(line + b"\n")

    def _shows(self, item: dict[str, Any]) -> bool:
        metadata = item["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        if namespace is not None:
            return bool(namespace == self._scope)
        return name == self._scope or bool(name.startswith(f"{self._scope}-"))


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
