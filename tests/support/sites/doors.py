"""Listeners before a worker that says the same to whatever it is asked, and somebody who knocks at them."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http.doors.rights import RIGHTS
from underhost.agents.http.listeners import Listeners, open_listeners
from underhost.agents.http.routes import HttpRoutes
from underhost.streams.settings.model import Settings

TOKEN = "correct-horse-battery-staple"
OURS = ("/healthz", "/readyz", "/metrics", "/api/v1/session")
"""Paths that the listeners answer themselves."""


class Answer(NamedTuple):
    """What a knock brought."""

    status: int
    body: Any
    headers: Any


async def _said(request: web.Request) -> web.Response:
    return web.json_response({"path": request.path})


def every_route() -> HttpRoutes:
    """A route for each row of the table of rights, which tells its own path."""
    rows = [row.split(" ", 1) for row in RIGHTS if row.split(" ", 1)[1] not in OURS]
    asked = [web.route(method, path, _said) for method, path in rows if "/extender/" not in path or method == "GET"]
    questions = [web.route(method, path, _said) for method, path in rows if "/extender/" in path and method == "POST"]
    return HttpRoutes(asked, [], [], questions)


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[Listeners]:
    """The listeners of these settings."""
    opened = await open_listeners(
        settings, every_route(), unready=dict, registry=CollectorRegistry(), refresh=lambda: None
    )
    try:
        yield opened
    finally:
        await opened.close()


async def knock(
    address: str, request: str, *, body: Any = None, tls: ssl.SSLContext | bool = True, **headers: str
) -> Answer:
    """Ask for `METHOD PATH` at an address, on a connection of its own."""
    method, path = request.split(" ", 1)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
        http.request(method, address.rstrip("/") + path, json=body, headers=given, ssl=tls) as response,
    ):
        data = await response.read()
        is_json = response.content_type == "application/json"
        return Answer(response.status, json.loads(data) if is_json and data else data, response.headers)


def bearer(token: str = TOKEN) -> dict[str, str]:
    """The header of who has the token."""
    return {"Authorization": f"Bearer {token}"}


def basic(token: str = TOKEN) -> dict[str, str]:
    """The header that a client makes of `http://underhost:TOKEN@…`."""
    return {"Authorization": aiohttp.encode_basic_auth("underhost", token)}
