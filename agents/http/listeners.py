"""The listeners of a worker: the page's, and kube-scheduler's where it has one of its own; each with its own door.

In: settings and routes. Out: listening servers. Files that the doors are made of are read here first, so that a worker
whose door cannot be made does not listen at all.
"""

import logging
import socket
from dataclasses import replace
from typing import Any

from underhost.agents.http.doors import session
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.tls import listener_tls
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import HttpServer, sockets_at, start_server
from underhost.streams.settings.model import Settings
from underhost.streams.settings.web import ListenerTlsSettings, asks_for_certificates, is_loopback

log = logging.getLogger(__name__)


class Listeners:
    """What listens; the first is the page's."""

    def __init__(self, servers: list[HttpServer]) -> None:
        self._servers = servers

    @property
    def address(self) -> str:
        """Where a person on this machine finds the page."""
        return self._servers[0].address

    @property
    def questions(self) -> str:
        """Where kube-scheduler asks, without `extender/`."""
        return self._servers[-1].address

    async def close(self) -> None:
        """Stop listening, and let go of connections."""
        for server in reversed(self._servers):
            await server.close()


async def check_addresses(settings: Settings, *, opened: bool = False) -> None:
    """Raises InputError where an address cannot be had; `opened`: the page's is ours already.

    Nothing listens after it: who asks a worker that is not there yet is turned away at once, and does not wait.
    """
    page, own = settings.web.listen, settings.extender.listen
    wanted = [("web.listen", page)] if not opened else []
    wanted += [("extender.listen", own)] if own is not None else []
    for setting, listen in wanted:
        for each in await sockets_at(listen, setting):
            each.close()


async def open_listeners(
    settings: Settings, routes: HttpRoutes, *, opened: socket.socket | None = None, **probes: Any
) -> Listeners:
    """Listen; `opened` is where the page's does already, `probes` the rest of what `start_server` takes.

    Raises InputError.
    """
    page, own = settings.web, settings.extender
    token = None if page.token_file is None else TokenFile(page.token_file)
    door = Door(token, certificates=asks_for_certificates(page.tls), open_to_read=page.open_to_read)
    tls, own_tls = listener_tls(page.tls, "web.tls"), listener_tls(own.tls, "extender.tls", required=True)
    _warn("web", page.listen, page.tls)
    at_page = [*routes.routes, *session.routes(door), *(routes.questions if own.listen is None else ())]
    first = await start_server(
        page.listen, routes=replace(routes, routes=at_page), door=door, tls=tls, opened=opened, **probes
    )
    if own.listen is None:
        return Listeners([first])
    _warn("extender", own.listen, own.tls)
    try:
        second = await start_server(
            own.listen,
            routes=HttpRoutes(routes.questions, [], []),
            door=Door(token, certificates=asks_for_certificates(own.tls), open_to_read=False),
            tls=own_tls,
            setting="extender.listen",
            **probes,
        )
    except BaseException:  # a cancellation, too: nobody else can close the first
        await first.close()
        raise
    return Listeners([first, second])


def _warn(group: str, listen: str, tls: ListenerTlsSettings | None) -> None:
    if tls is None and not is_loopback(listen):
        log.warning(
            "%s.listen %s: whoever is on the network there can read the token; %s.tls hides it", group, listen, group
        )
