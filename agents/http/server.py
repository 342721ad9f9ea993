"""The worker's HTTP listener: all routes, behind one guard, on one address.

In: a listen address and the routes. Out: a listening server, with the probes: is the worker alive, is it ready, what
does it count. It is started before the agents, so that a start that takes long can be watched.
"""

import logging
import os
import socket
import ssl
from collections.abc import Callable, Collection

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from underhost.agents.http.budgets.arrivals import Entrance, listening_sockets
from underhost.agents.http.budgets.bodies import BODY, HELD, SENDING, HeldBodies, bounded
from underhost.agents.http.budgets.connections import CONNECTIONS, HeldConnections, WithoutNoise, counted
from underhost.agents.http.doors import door as doors
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.passwords import unpublished
from underhost.agents.http.guard import guard, harden, say
from underhost.agents.http.routes import HttpRoutes
from underhost.schemas.errors import InputError
from underhost.streams.settings.web import split_listen

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HEADERS, LONGEST_HEADER = 48, 4096
"""Headers of a request, and bytes of one: what is held of a request whose headers do not end."""
PATIENCE = 60.0
"""Seconds that a client may take to send a request, and may keep a connection on which it asks nothing: one that sends
half a request costs no more than that. kube-scheduler and Prometheus connect again by themselves."""
LINGER = 5.0
"""Seconds for which the rest of a request that is answered already is waited for."""


class HttpServer:
    """A listening server; `port` is the one that was bound, of use where 0 was asked for."""

    def __init__(self, runner: web.AppRunner, listener: Entrance, host: str, scheme: str) -> None:
        self._runner, self._listener = runner, listener
        self._host, self._scheme = host, scheme
        self.port = int(listener.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        """Where a person on this machine finds the page."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    async def close(self) -> None:
        """Stop listening and let go of connections."""
        self._listener.close()
        await self._runner.cleanup()


async def start_server(
    listen: str,
    *,
    unready: Callable[[], dict[str, str]],
    registry: CollectorRegistry,
    refresh: Callable[[], None],
    hosts: Collection[str] = (),
    routes: HttpRoutes | None = None,
    stopped: Callable[[], dict[str, str]] = dict,
    standby: Callable[[], dict[str, str]] = dict,
    noted: Callable[[], dict[str, str]] = dict,
    patience: float = PATIENCE,
    door: Door | None = None,
    tls: ssl.SSLContext | None = None,
    setting: str = "web.listen",
    opened: socket.socket | None = None,
) -> HttpServer:
    """Listen on `HOST:PORT`. `unready` gives a reason by what is not ready; `refresh` runs before metrics are read;
    `stopped` gives a reason by what is ready and writes nothing all the same, `standby` by what is another worker's;
    `noted` is what people should know though all is well.

    `hosts` are further names that the listener answers to, `routes` what there is beside the probes, `door` what they
    ask for (absent: reading is open, binding is not), `tls` how the listener shows who it is, `setting` names it;
    `opened` listens at that address already. Raises InputError where the address cannot be had, ValueError for none.
    """
    host, _ = split_listen(listen)
    inward = [unpublished, guard(hosts), counted, doors.at(door or Door()), bounded]
    app = web.Application(client_max_size=BODY, middlewares=inward)
    app[SENDING], app[HELD] = patience, HeldBodies()
    app[CONNECTIONS] = connections = HeldConnections()
    app.cleanup_ctx.append(connections.running)
    app.on_response_prepare.append(harden)
    app.add_routes(probes(unready, registry, refresh, stopped, standby, noted))
    if routes is not None:
        app.add_routes(routes.routes)
        app.cleanup_ctx.extend(routes.running)
        app.on_shutdown.extend(routes.ending)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_logger(),
        shutdown_timeout=1.0,
        keepalive_timeout=patience,
        lingering_time=min(LINGER, patience),
        auto_decompress=False,  # it would unpack what is refused
        max_headers=HEADERS,
        max_field_size=LONGEST_HEADER,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        sockets = [opened] if opened is not None else await sockets_at(listen, setting)
    except InputError:
        await runner.cleanup()
        raise
    listener = connections.enter(sockets, runner.server, tls)
    return HttpServer(runner, listener, host, "http" if tls is None else "https")


async def sockets_at(listen: str, setting: str) -> list[socket.socket]:
    """Sockets that listen at `HOST:PORT`. Raises InputError, with the setting, where the address cannot be had."""
    try:
        return await listening_sockets(*split_listen(listen))
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise InputError(f"{setting} {listen}: {why}") from error


def _logger() -> logging.Logger:
    """Where the server says what went wrong in it."""
    logger = logging.getLogger(f"{__name__}.requests")
    logger.filters[:] = [WithoutNoise()]
    return logger


def probes(
    unready: Callable[[], dict[str, str]],
    registry: CollectorRegistry,
    refresh: Callable[[], None],
    stopped: Callable[[], dict[str, str]],
    standby: Callable[[], dict[str, str]],
    noted: Callable[[], dict[str, str]],
) -> list[web.RouteDef]:
    """`/healthz`, `/readyz`, `/metrics`; who is `stopped` serves all who ask all the same, the scheduler among them."""

    async def healthz(request: web.Request) -> web.Response:
        return say("Health", {"status": "ok"})

    async def readyz(request: web.Request) -> web.Response:
        waiting, still, others = unready(), stopped(), standby()
        status = "waiting" if waiting else "stopped" if still else "standby" if others else "ok"
        reasons = dict(sorted({**noted(), **others, **still, **waiting}.items()))
        return say("Readiness", {"status": status, "reasons": reasons}, 503 if waiting else 200)

    async def metrics(request: web.Request) -> web.Response:
        refresh()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": METRICS_TYPE})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
