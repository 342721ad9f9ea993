"""`/api/v1/events`: what changes, as server-sent events, for as many followers as come.

In: a feed, and the version that the follower has seen (`since=`, or `Last-Event-ID` where its browser connects again).
Out: events `change` and `activity`, a `ping` now and then so that a dead connection shows, which says whether the site
is up to date, and `reset` where the follower has to read everything again. A follower that does not read is let go:
what it misses is kept for it once, for all, in the feed.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

import msgspec
from aiohttp import web

from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.feed import ChangeFeed
from underhost.agents.http.feeds import ChangeFeeds

HEARTBEAT = 15.0
"""Seconds between two pings."""
SLOW = 20.0
"""Seconds for which a follower may not read what is sent to it."""
FOLLOWERS, EACH = 200, 50
"""Followers at one time, and those of one client: a proxy's is that of all people behind it."""
RESET = b"event: reset\ndata: {}\n\n"


def routes(feeds: ChangeFeeds, on_follow: Callable[[], None] = lambda: None) -> list[web.RouteDef]:
    """The route of the events; `on_follow` is called for every follower."""
    following = ClientPlaces(FOLLOWERS, EACH, "other followers are connected")

    async def events(request: web.Request) -> web.StreamResponse:
        site = request.query.get("site", feeds.default())
        feed = feeds.wanted(site)
        with following.place(request):
            on_follow()
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
            await response.prepare(request)
            # A follower that does not read, or is gone, is let go: there is nobody to tell.
            with contextlib.suppress(TimeoutError, ConnectionError):
                seen = request.headers.get("Last-Event-ID") or request.query.get("since", "")
                await _follow(response, feed, seen, lambda: feeds.reason(site))
            return response

    return [web.get("/api/v1/events", events)]


async def _follow(response: web.StreamResponse, feed: ChangeFeed, seen: str, reason: Callable[[], str]) -> None:
    """`reason` is why the site is not up to date, "" where it is."""
    await _send(response, b"retry: 1000\n\n")
    await feed.refresh()
    position, pinged = feed.position(seen), float("-inf")
    while position is not None and not feed.ended:
        changed = feed.changed
        await feed.refresh()
        news = feed.since(position)
        if news is None:
            break
        position, lines = news
        left = pinged + HEARTBEAT - time.monotonic()
        if left <= 0:
            lines = [*lines, b"event: ping\ndata: %s\n\n" % msgspec.json.encode({"reason": reason()})]
            pinged = time.monotonic()
        if lines:
            await _send(response, b"".join(lines))
        else:
            await _wait(changed, left)
    await _send(response, RESET)


async def _send(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(SLOW):
        await response.write(data)


async def _wait(changed: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
