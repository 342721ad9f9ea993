"""Is the worker alive, is it ready, what does it count: `/healthz`, `/readyz`, `/metrics`.

In: two callables and the registry of metrics. Out: routes. Assembled by `server.py`.
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(
    unready: Callable[[], dict[str, str]],
    registry: CollectorRegistry,
    refresh: Callable[[], None],
    stopped: Callable[[], dict[str, str]] = dict,
) -> list[web.RouteDef]:
    """`unready` gives a reason by what is not ready; `refresh` runs before metrics are read.

    `stopped` gives a reason by what is ready and yet writes nothing: it serves all who ask, the scheduler among them.
    """

    async def healthz(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(request: web.Request) -> web.Response:
        waiting, still = unready(), stopped()
        status = "waiting" if waiting else "stopped" if still else "ok"
        reasons = dict(sorted({**still, **waiting}.items()))
        return web.json_response({"status": status, "reasons": reasons}, status=503 if waiting else 200)

    async def metrics(request: web.Request) -> web.Response:
        refresh()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": METRICS_TYPE})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
