"""The worker: settings in, a running pipeline out, until it is told to stop.

In: settings, the roles, and connections (by default what the settings say). Out: agents attached
in the order in which data flows: sources, tables, cycles (topology, evaluator, deciders), sinks. Faust runs inside our
own event loop: a signal ends the watchers, then the cycles, then Faust.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from underhost.agents.http.listeners import Listeners, check_addresses, open_listeners
from underhost.agents.http.routes import http_routes
from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.connections import Connections, connect
from underhost.agents.pipeline.decide.evaluator import PipelineEvaluator
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.observer import TopicObserver
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.pipeline.start_lines import begin_lines, found_line
from underhost.schemas.errors import BackendError, KafkaAway
from underhost.schemas.frames import use_one_thread
from underhost.schemas.topics import TOPICS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings

log = logging.getLogger(__name__)

STOP_WITHIN = 6.0
"""Seconds for a clean stop; what has not ended by then is left to the next start, which reads it again."""
GIVE_UP = 3.0
"""Seconds that Faust may take to notice that the pipeline has failed, or is cancelled."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a pipeline is started again after a fault of Kafka; doubled until one is up."""
LOOK = 0.1
"""Seconds between two looks whether all is ready."""

OnEvent = Callable[[Outgoing], None]


async def run_worker(
    settings: Settings,
    *,
    roles: Collection[str] | None = None,
    connections: Connections | None = None,
    evaluator: PipelineEvaluator | None = None,
    on_event: OnEvent | None = None,
    stop: asyncio.Event | None = None,
    web: bool = True,
    opened: socket.socket | None = None,
    latest: LatestDecisions | None = None,
    on_listening: Callable[[str], None] | None = None,
    on_visit: Callable[[], None] = lambda: None,
    on_waiting: Callable[[Mapping[str, str]], None] = lambda reasons: None,
) -> None:
    """Run until SIGTERM, SIGINT or `stop`, then end cleanly.

    `connections` replaces what the settings name (sources and writers), `evaluator` the real one; `on_event` is told of
    every derived record once it is published; `stop` also tells tests' and the demo's end; `opened` listens at
    `web.listen` already; `latest` holds what was decided last; `on_listening` is told the address of the page,
    `on_visit` that somebody has opened it, `on_waiting` what it waits for until it is ready, which is nothing.

    Raises InputError for a bad configuration, BackendError where a backend is unreachable or refuses before its first
    success; after it, everything is tried again for ever.
    """
    wanted, stopping = role.parse_roles(roles), stop or asyncio.Event()
    metrics, latest = Metrics(), latest or LatestDecisions()
    use_one_thread()
    with _signals(stopping):
        if web and role.WEB in wanted:
            await check_addresses(settings, opened=opened is not None)
        remarks = await _topics(settings, wanted, metrics)
        made = connections or await connect(settings, wanted)
        remarks |= _insecure(made, metrics)
        current: list[Pipeline] = []
        server = None
        try:
            _say_begin(settings, wanted)
            _say_first_findings(latest)
            decided, observer = latest, None
            if web and role.WEB in wanted:
                if role.EVALUATOR not in wanted:
                    # The page shows what others decide; what this worker decides itself is less than that.
                    reader, alone = open_reader(settings.kafka), wanted == {role.WEB}
                    observer, decided = TopicObserver(settings, latest, reader, at_once=alone), LatestDecisions()
                server = await _listen(settings, metrics, latest, current, observer, remarks, on_visit, opened)
                (on_listening or _say_page)(server.address)

            def new() -> Pipeline:
                current[:] = [
                    Pipeline(settings, wanted, made, metrics, evaluator=evaluator, on_event=on_event, latest=decided)
                ]
                return current[0]

            await _keep_running(new, stopping, lambda pipeline: _say_ready(pipeline, observer, on_waiting))
            log.info("site %s: ended", settings.site)
        finally:
            if server is not None:
                await server.close()
            await made.close()


async def _topics(settings: Settings, roles: Collection[str], metrics: Metrics) -> dict[str, str]:
    """The topics, made and checked; what deviates, for `/readyz`. Raises what `ensure_topics` raises."""
    changelogs = role.changelog_topics(roles, settings.site)
    made = role.written_topics(roles)
    # On Kafka its user may know of no other topics; who writes a topic makes it.
    used = tuple(topic for topic in TOPICS if topic in made or topic in role.read_topics(roles))
    topics = used if settings.kafka.bootstrap_servers else TOPICS
    others = frozenset(topic.name for topic in topics if topic not in made)
    remarks = await ensure_topics(settings.kafka, (*topics, *changelogs), others)
    for remark in remarks:
        log.error("%s", remark.line)
        metrics.topics.labels(remark.why).set(len(remark.topics))
    return {f"kafka {remark.why}": remark.line for remark in remarks}


def _insecure(made: Connections, metrics: Metrics) -> dict[str, str]:
    """What others may read or answer, said as loudly as can be and never refused; for `/readyz`."""
    for side, why in made.insecure.items():
        log.error("%s: INSECURE: %s", side, why)
        metrics.insecure.labels(side).set(1)
    return {f"insecure {side}": why for side, why in made.insecure.items()}


async def _listen(
    settings: Settings,
    metrics: Metrics,
    latest: LatestDecisions,
    running: Sequence[Pipeline],
    observer: TopicObserver | None,
    remarks: Mapping[str, str],
    on_visit: Callable[[], None],
    opened: socket.socket | None,
) -> Listeners:
    """The worker's HTTP, from before the first pipeline to after the last; `remarks` stand in every readiness.

    `running` holds the pipeline that runs, if one does.
    """

    def current() -> Pipeline | None:
        return next(iter(running), None)

    def unready() -> dict[str, str]:
        return _unready(current(), observer)

    def reasons() -> dict[str, str]:
        unknown = {what: why for what, why in standby().items() if what.startswith("site ")}
        return {**unknown, **stopped(), **(observer.reasons() if observer is not None else {}), **unready()}

    def measure() -> None:
        if (pipeline := current()) is not None:
            pipeline.readiness.measure()

    def stopped() -> dict[str, str]:
        pipeline = current()
        still = pipeline.readiness.stopped() if pipeline is not None else {}
        return still if observer is None else {**observer.stopped(), **still}

    def standby() -> dict[str, str]:
        pipeline = current()
        return pipeline.readiness.standby() if pipeline is not None else {}

    def noted() -> dict[str, str]:
        pipeline = current()
        return {**remarks, **(pipeline.readiness.noted() if pipeline is not None else {})}

    routes = http_routes(settings, latest, reasons, current, metrics.registry, observer, on_visit)
    return await open_listeners(
        settings,
        routes,
        opened=opened,
        unready=unready,
        registry=metrics.registry,
        refresh=measure,
        hosts=settings.web.hosts,
        stopped=stopped,
        standby=standby,
        noted=noted,
    )


def _unready(pipeline: Pipeline | None, observer: TopicObserver | None) -> dict[str, str]:
    waiting = pipeline.readiness.unready() if pipeline is not None else {"worker": "starting"}
    return waiting if observer is None else {**observer.unready(), **waiting}


def _say_page(address: str) -> None:
    log.info("the page: %s", address)


def _say_begin(settings: Settings, wanted: Collection[str]) -> None:
    """What this worker is, what it watches, whether it writes."""
    log.info("site %s: %s begins", settings.site, ", ".join(name for name in role.ALL if name in wanted))
    for line in begin_lines(settings, wanted):
        log.info("site %s: %s", settings.site, line)
    if role.EVALUATOR in wanted:
        log.info("site %s: volumes of claims are not judged here, only in dumps", settings.site)


def _say_first_findings(latest: LatestDecisions) -> None:
    """One line of what is open, once that is known for the first time."""

    def hear(site: str, decisions: Decisions | None) -> None:
        if decisions is not None and decisions.findings is not None:
            log.info("site %s: %s", site, found_line(decisions.snapshot, decisions.findings.open.values()))
            hear_no_more()

    hear_no_more = latest.listen(hear)


SayReady = Callable[[Pipeline], Coroutine[Any, Any, None]]
"""Says once that a pipeline, and what is shown of it, is ready."""


async def _keep_running(new: Callable[[], Pipeline], stopping: asyncio.Event, say_ready: SayReady) -> None:
    """Run pipelines, one after another, until told to stop.

    Raises what the first one fails of before it was up, but for a Kafka that went away: it has answered before.
    """
    pause, succeeded = FIRST_PAUSE, False
    while True:
        pipeline = new()
        error, started = await _run_one(pipeline, stopping, say_ready)
        succeeded = succeeded or started
        if error is None:
            return
        if not isinstance(error, BackendError) or not (succeeded or isinstance(error, KafkaAway)):
            raise error
        log.error("the pipeline is started again in %.0f s: %s", pause, error)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stopping.wait()
                return
        pause = FIRST_PAUSE if started else min(LONGEST_PAUSE, pause * 2)


async def _say_ready(
    pipeline: Pipeline, observer: TopicObserver | None, on_waiting: Callable[[Mapping[str, str]], None]
) -> None:
    """One line when all is ready for the first time; what it waits for is in the log of the cycle and at /readyz."""
    while True:
        await asyncio.sleep(LOOK)
        reasons = _unready(pipeline, observer)
        on_waiting(reasons)
        if not reasons:
            return log.info("ready")


async def _run_one(
    pipeline: Pipeline, stopping: asyncio.Event, say_ready: SayReady
) -> tuple[BaseException | None, bool]:
    """One pipeline from its start to its end: what it failed of (None: told to stop), and whether it had been up."""
    ended: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
    saying = asyncio.ensure_future(say_ready(pipeline))
    running: asyncio.Future[Any] = asyncio.ensure_future(pipeline.run())
    try:
        await asyncio.wait([ended, running, pipeline.failure], return_when=asyncio.FIRST_COMPLETED)
        if pipeline.failure.done():
            await asyncio.wait([running], timeout=GIVE_UP)
    finally:
        for task in (ended, saying, running):
            task.cancel()
        # Faust can swallow a cancellation while it starts: what a source failed of has to be said all the same.
        await asyncio.wait([running], timeout=GIVE_UP)
        started = pipeline.started
        await _within(STOP_WITHIN, pipeline.close())
    if stopping.is_set():
        return None, started
    if running.done() and not running.cancelled():
        return running.exception(), started
    return pipeline.failure.result() if pipeline.failure.done() else None, started


async def _within(seconds: float, ending: Coroutine[Any, Any, None]) -> None:
    """Wait so long. What has not ended then goes on ending: cancelled, Faust would leave its consumer alive."""
    task = asyncio.ensure_future(ending)
    await asyncio.wait([task], timeout=seconds)
    if task.done():
        return task.result()
    log.warning("not everything has ended within %.0f s", seconds)


@contextmanager
def _signals(stopping: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set the event; a worker in another thread is left alone."""
    loop = asyncio.get_running_loop()
    taken = []
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stopping.set)
        except (ValueError, RuntimeError, NotImplementedError):
            continue
        taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
