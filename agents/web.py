"""The worker's HTTP: is it alive, is it ready, what does it count.

In: a listen address and two callables. Out: `/healthz`, `/readyz`, `/metrics`. Started by `worker.py` before the
agents, so that a start that takes long can be watched. The page and the API are not here yet.
"""

import os
from collections.abc import Callable
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from underhost.schemas.errors import InputError

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BODY_LIMIT = 1 << 20


class Web:
    """A listening server; `port` is the one that was bound, of use where 0 was asked for."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner = runner
        self.port = port

    async def close(self) -> None:
        """Stop listening and let go of connections."""
        await self._runner.cleanup()


async def start_web(
    listen: str, *, unready: Callable[[], dict[str, str]], registry: CollectorRegistry, refresh: Callable[[], None]
) -> Web:
    """Listen on `HOST:PORT`. `unready` gives a reason by what is not ready; `refresh` runs before metrics are read.

    Raises InputError where the address is none or cannot be had.
    """
    host, port = split_listen(listen)

    async def healthz(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(request: web.Request) -> web.Response:
        reasons = unready()
        status = {"status": "waiting" if reasons else "ok", "reasons": dict(sorted(reasons.items()))}
        return web.json_response(status, status=503 if reasons else 200)

    async def metrics(request: web.Request) -> web.Response:
        refresh()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": METRICS_TYPE})

    app = web.Application(client_max_size=BODY_LIMIT)
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise InputError(f"web.listen {listen}: {why}") from error
    return Web(runner, _port(runner.addresses))


def split_listen(listen: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `:PORT`. Raises InputError."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise InputError(f"web.listen {listen!r}: HOST:PORT is expected")
    return host.strip("[]") or "0.0.0.0", int(port)


def _port(addresses: list[Any]) -> int:
    return int(addresses[0][1])
