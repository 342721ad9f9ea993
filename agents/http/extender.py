"""The routes of kube-scheduler: `/extender/{filter,prioritize,bind,preempt}`, as `kube-scheduler/extender/v1`.

In: its requests. Out: routes, metrics. The answers are `agents/extender/answers.py`'s.
What is no question of that API is answered 400, what cannot be answered now 503, each with one line; never 200 with an
answer that only looks like one. After a 503 the connection is closed, so that a Service can lead to another worker.
"""

import asyncio
import time
from collections import Counter as Count
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from underhost.agents.extender.answers import Answering, Extender
from underhost.agents.extender.messages import reason_of
from underhost.agents.http.budgets import shape
from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.guard import refuse, say
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.site.snapshot import Options
from underhost.schemas import extender as wire
from underhost.schemas.errors import InputError, Unready
from underhost.streams.settings.labels import HostLabelSettings

PREFIX = "/extender"
LIMIT, BINDING = 64 << 20, 64 << 10
"""Bytes of a question: 5,000 nodes sent whole are 50 MB and more; by name they are 100 kB. And of a binding."""
VALUES, NODES, VICTIMS = 2_000_000, 20_000, 500_000
"""Values of a question, those in strings counted: a node sent whole has some 300. Nodes. And values of all victims,
each of which becomes an object here: a pod that is sent whole has some 200, and kube-scheduler tries a tenth of nodes.
"""
SMALL = 256 << 10
"""Bytes up to which a question is read in the event loop: it takes less than a millisecond."""
POD = shape.Bounds(depth=64, values=50_000)
"""Of the pod; etcd keeps no object of more than 1.5 MB."""
POD_SIZE = 2 << 20
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


VERBS: dict[str, tuple[type[Any], Callable[[Extender, Any], Awaitable[Any]]]] = {
    "filter": (wire.ExtenderArgs, Extender.filter),
    "prioritize": (wire.ExtenderArgs, Extender.prioritize),
    "preempt": (wire.ExtenderPreemptionArgs, Extender.preempt),
    "bind": (wire.ExtenderBindingArgs, Extender.bind),
}
"""By verb, the form of its question and what answers it."""


class ExtenderRoutes:
    """The four verbs, and a probe."""

    def __init__(
        self,
        site: str,
        options: Options,
        pipeline: "Callable[[], Answering | None]",
        latest: LatestDecisions,
        registry: CollectorRegistry,
        host_label: HostLabelSettings,
    ) -> None:
        self._latest, self._metrics = latest, ExtenderMetrics(registry)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="extender")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="questions")
        self._extender = Extender(site, options, pipeline, self._pool, labels=BindingLabels(host_label))
        self._metrics.assumed.set_function(lambda: self._extender.assumed)

    def routes(self) -> list[web.RouteDef]:
        """The routes of the verbs."""
        return [web.post(f"{PREFIX}/{verb}", self._answering(verb)) for verb in VERBS]

    def probes(self) -> list[web.RouteDef]:
        """The route that says whether this worker answers, for the page's listener, where a kubelet can ask it."""
        return [web.get(f"{PREFIX}/readyz", self._readyz)]

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """While the server listens, the extender follows what is decided."""
        follower = self._extender.follower
        end = self._latest.listen(lambda site, decisions: follower.wake())
        yield
        end()
        follower.close()
        for pool in (self._pool, self._reading):
            pool.shutdown(wait=False, cancel_futures=True)

    def _answering(self, verb: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        form, answered = VERBS[verb]

        async def handle(request: web.Request) -> web.StreamResponse:
            began, limit = time.perf_counter(), BINDING if verb == "bind" else LIMIT
            try:
                body = await body_of(request, limit)
                question = _decode(body, form) if len(body) <= SMALL else await self._read(body, form)
                del body
                answer = await answered(self._extender, question)
                self._count(answer)
                response = web.Response(body=msgspec.json.encode(answer), content_type="application/json")
            except InputError as error:
                response = refuse(400, " ".join(str(error).split()))
            except Unready as error:
                response = _unready(error)
            except web.HTTPRequestEntityTooLarge:
                response = refuse(413, f"a question may have {limit >> 10} KiB; set nodeCacheCapable: true")
            self._metrics.requests.labels(verb, response.status).inc()
            self._metrics.seconds.labels(verb).observe(time.perf_counter() - began)
            return response

        return handle

    async def _read(self, body: bytearray, form: type[T]) -> T:
        """A large question; one after another, so that what they are made of is in memory once. Raises InputError."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, _decode, body, form)

    def _count(self, answer: object) -> None:
        """What an answer refuses."""
        if isinstance(answer, wire.ExtenderFilterResult):
            for reason, count in Count(map(reason_of, answer.failed_nodes.values())).items():
                self._metrics.refused.labels(reason).inc(count)
        elif isinstance(answer, wire.ExtenderBindingResult) and answer.error:
            self._metrics.unbound.labels(answer.error.partition(":")[0]).inc()

    async def _readyz(self, request: web.Request) -> web.StreamResponse:
        """Whether this worker answers: where several run, a Service leads kube-scheduler to the one that does."""
        try:
            self._extender.check()
        except Unready as error:
            return _unready(error)
        return say("Readiness", {"status": "ok"})


class _Thing(msgspec.Struct, gc=False):
    """An object of which nothing is kept."""


class _Things(msgspec.Struct):
    items: list[_Thing] | None = None


class _Sizes(msgspec.Struct, rename="pascal"):
    """What is looked at before anything is made of a question: empty objects take much more than they are long."""

    pod: msgspec.Raw = msgspec.Raw(b"")
    nodes: _Things | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"")
    node_name_to_victims: msgspec.Raw = msgspec.Raw(b"")
    node_name_to_meta_victims: msgspec.Raw = msgspec.Raw(b"")


def _decode(body: bytearray, type_: type[T]) -> T:
    """The question. Raises InputError."""
    try:
        if len(body) > SMALL:
            _check(body)
        else:
            body.decode()  # parts of the pod are read later, each by itself
        question = msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not {type_.__name__}: {error}") from error
    if isinstance(question, wire.ExtenderArgs) and len(question.node_names or ()) > NODES:
        raise InputError(f"more than {NODES} nodes")
    return question


def _check(body: bytearray) -> None:
    """Raises InputError for a question that means too much, msgspec.MsgspecError."""
    if shape.has_more_values(body, VALUES):
        raise InputError(f"the body has more than {VALUES} values")
    sizes = msgspec.json.decode(body, type=_Sizes)
    if memoryview(sizes.pod).nbytes > POD_SIZE:
        raise InputError(f"Pod: more than {POD_SIZE >> 20} MiB")
    pod = bytes(sizes.pod)
    pod.decode()
    shape.check(pod, POD)
    nodes = len(sizes.nodes.items or ()) if sizes.nodes is not None else 0
    if nodes > NODES or shape.has_more_values(memoryview(sizes.node_names), NODES):
        raise InputError(f"more than {NODES} nodes")
    for victims in (sizes.node_name_to_victims, sizes.node_name_to_meta_victims):
        if shape.has_more_values(memoryview(victims), VICTIMS):
            raise InputError(f"the victims have more than {VICTIMS} values")


def _unready(error: Unready) -> web.Response:
    response = refuse(503, str(error))
    response.force_close()
    return response
