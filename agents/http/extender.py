"""The routes of kube-scheduler: `/extender/{filter,prioritize,bind,preempt}`, as `kube-scheduler/extender/v1`.

In: its requests. Out: routes, metrics. The answers are `agents/extender/answers.py`'s.
What is no question of that API is answered 400, what cannot be answered now 503, each with one line; never 200 with an
answer that only looks like one. After a 503 the connection is closed, so that a Service can lead to another worker.
"""

import time
from collections import Counter as Count
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from underhost.agents.extender.answers import Answering, Extender
from underhost.agents.http.guard import body_of, refuse
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.site.snapshot import Options
from underhost.schemas import extender as wire
from underhost.schemas.errors import InputError, Unready

PREFIX = "/extender"
LIMIT = 256 << 20
"""Bytes of a request: 5,000 nodes sent whole are 50 MB and more; by name they are 100 kB."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

T = TypeVar("T")


class ExtenderMetrics:
    """What the extender counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "underhost_extender_requests", "Questions of kube-scheduler.", ["verb", "code"], registry=registry
        )
        self.seconds = Histogram(
            "underhost_extender_seconds", "Time of one answer.", ["verb"], buckets=BUCKETS, registry=registry
        )
        self.refused = Counter(
            "underhost_extender_refused_nodes", "Nodes that the filter refused.", ["reason"], registry=registry
        )
        self.unbound = Counter(
            "underhost_extender_refused_bindings", "Bindings that were not made.", ["result"], registry=registry
        )
        self.assumed = Gauge("underhost_extender_assumed_pods", "Pods being placed by our answers.", registry=registry)


class ExtenderRoutes:
    """The four verbs, and a probe. The extender itself, and all that it imports, is made for the first question."""

    def __init__(
        self,
        site: str,
        options: Options,
        pipeline: "Callable[[], Answering | None]",
        latest: LatestDecisions,
        registry: CollectorRegistry,
    ) -> None:
        self._site, self._options, self._pipeline, self._latest = site, options, pipeline, latest
        self._metrics = ExtenderMetrics(registry)
        self._metrics.assumed.set_function(lambda: self._extender.assumed if self._extender is not None else 0)
        self._extender: Extender | None = None

    def routes(self) -> list[web.RouteDef]:
        """The routes."""
        verbs: dict[str, Callable[[bytes], Awaitable[Any]]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        return [
            web.get(f"{PREFIX}/readyz", self._readyz),
            *(web.post(f"{PREFIX}/{verb}", self._answering(verb, answer)) for verb, answer in verbs.items()),
        ]

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """While the server listens, the extender follows what is decided."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="extender")
        end = self._latest.listen(lambda site, decisions: self._wake())
        yield
        end()
        if self._extender is not None:
            self._extender.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _wake(self) -> None:
        if self._extender is not None:
            self._extender.follower.wake()

    def _get(self) -> Extender:
        if self._extender is None:
            self._extender = Extender(self._site, self._options, self._pipeline, self._pool)
        return self._extender

    def _answering(
        self, verb: str, answer: Callable[[bytes], Awaitable[Any]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            began = time.perf_counter()
            try:
                body = await body_of(request, LIMIT)
                response = _ok(await answer(body))
            except InputError as error:
                response = refuse(400, " ".join(str(error).split()))
            except Unready as error:
                response = _unready(error)
            except web.HTTPRequestEntityTooLarge:
                response = refuse(413, f"a question may have {LIMIT >> 20} MiB; set nodeCacheCapable: true")
            self._metrics.requests.labels(verb, response.status).inc()
            self._metrics.seconds.labels(verb).observe(time.perf_counter() - began)
            return response

        return handle

    # ------------------------------------------------------------------------------------------------------- the verbs
    async def _filter(self, body: bytes) -> wire.ExtenderFilterResult:
        result = await self._get().filter(_decode(body, wire.ExtenderArgs))
        for reason, count in Count(result.failed_nodes.values()).items():
            self._metrics.refused.labels(reason).inc(count)
        return result

    async def _prioritize(self, body: bytes) -> list[wire.HostPriority]:
        return await self._get().prioritize(_decode(body, wire.ExtenderArgs))

    async def _preempt(self, body: bytes) -> wire.ExtenderPreemptionResult:
        return await self._get().preempt(_decode(body, wire.ExtenderPreemptionArgs))

    async def _bind(self, body: bytes) -> wire.ExtenderBindingResult:
        result = await self._get().bind(_decode(body, wire.ExtenderBindingArgs))
        if result.error:
            self._metrics.unbound.labels(result.error.partition(":")[0]).inc()
        return result

    async def _readyz(self, request: web.Request) -> web.StreamResponse:
        """Whether this worker answers: where several run, a Service leads kube-scheduler to the one that does."""
        try:
            self._get().check()
        except Unready as error:
            return _unready(error)
        return web.json_response({"status": "ok"})


def _decode(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not {type_.__name__}: {error}") from error


def _ok(answer: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


def _unready(error: Unready) -> web.Response:
    response = refuse(503, str(error))
    response.force_close()
    return response
