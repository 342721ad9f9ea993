"""One run of the pipeline: a Faust app with its agents, wired in the order in which data flows.

In: settings, roles, the outside world. Out: a running pipeline, its readiness and its end. Made by `worker.py`, which
makes a new one where Kafka failed. `Pipeline.__init__` reads as the data flows: sources, tables, cycles, sinks.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from aiokafka.errors import KafkaError
from faust.exceptions import FaustError

from underhost.agents.alerts.alerting import Alerting
from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decide.cycles import Cycles
from underhost.agents.pipeline.decide.evaluation import Decisions, Engine
from underhost.agents.pipeline.decide.restored import Memories
from underhost.agents.pipeline.dispatch import actions as sink_agents
from underhost.agents.pipeline.dispatch.events import EventAgents
from underhost.agents.pipeline.dispatch.placing import Placing
from underhost.agents.pipeline.gates.fence import FencedPublisher, fenced
from underhost.agents.pipeline.gates.guards import Guards
from underhost.agents.pipeline.gates.resume import Resumes
from underhost.agents.pipeline.gates.watchdog import Watchdog, behind
from underhost.agents.pipeline.gauges import Gauges
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.publisher import AgentPublisher
from underhost.agents.pipeline.readiness import Readiness
from underhost.agents.pipeline.tables import agents as tables
from underhost.agents.pipeline.tables import recovery
from underhost.agents.pipeline.wiring import Reach, make_watchers
from underhost.agents.sinks import registry
from underhost.agents.sinks.bindings import action_of
from underhost.agents.sinks.ports import Writers
from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import commands
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Action, FindingEvent, Outcome, Placement
from underhost.schemas.topics import OUTCOMES, PODS, VIOLATIONS
from underhost.streams.faust.app import build_app
from underhost.streams.faust.membership import Membership
from underhost.streams.kafka.connect import translated
from underhost.streams.ports import Outgoing
from underhost.streams.publish import FaustPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings

log = logging.getLogger(__name__)

DONE = frozenset({"applied", "noop"})
SUSPEND_WITHIN = 1.0
"""Seconds at the end for what watchers and cycles publish; Kafka may not answer at all."""


class Pipeline:
    """One run, not started."""

    def __init__(
        self,
        settings: Settings,
        roles: Collection[str],
        connections: Connections,
        metrics: Metrics,
        *,
        engine: Engine | None,
        on_event: Callable[[Outgoing], None] | None,
        latest: LatestDecisions | None = None,
    ) -> None:
        self._settings, self._roles, self._metrics = settings, frozenset(roles), metrics
        self._latest = latest or LatestDecisions()
        self._failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._recovered = self._was_up = False
        self._placing = Placing()
        self.app = build_app(settings, app_id=role.app_id(roles, settings.site))
        self.app.on_failure = self._fail
        self.app.producer_only = not role.consumes(roles)
        # Without a consumer there is no group that could count on this worker or not.
        self._membership = Membership() if self.app.producer_only else self.app.membership
        writers = fenced(connections.writers, self._membership)
        plain = FencedPublisher(FaustPublisher(self.app), self._membership)
        self._publisher = AgentPublisher(plain, metrics, on_event)
        self._reader = open_reader(settings.kafka)
        # One thread evaluates: the sites of a worker take turns, so that the event loop keeps a processor.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")

        self._reach = Reach(settings, self._roles)
        self.sites = self._reach.sites
        held = None if self.app.producer_only else self.sites
        self.watchers = make_watchers(
            settings, self._roles, connections, plain, self._reader, held, metrics, self._fail
        )
        self._alerting = Alerting(settings.alerting, metrics.alerted, self._fail)
        self.tables = self._make_tables()
        self.guards = Guards(settings, self.sites, self.watchers)
        self._gauges = Gauges(metrics, self.app, self.sites, self.watchers, self.guards)
        log_file = None if settings.kafka.bootstrap_servers else settings.kafka.embedded
        self._resumes = Resumes(settings.site, self.watchers.accept, self._reader, self._publisher, log_file)
        self._listening: asyncio.Task[None] | None = None
        self._sinks = self._attach_sinks(writers)
        memories = Memories(settings, self.tables, engine, roles=self._roles, kinds=self._sinks.sinks)
        self._cycles = Cycles(
            self.sites,
            memories.begin,
            self._publisher,
            self._pool,
            has_vsphere=self._reach.has_vsphere,
            publishing=self._deciding,
            published=self._decided,
            standstill=self.guards.standstill,
            failed=self._fail,
        )
        self.readiness = self._stand()
        recovery.attach(self.app, self.sites, self.tables, on_suspended=self._suspend, on_resumed=self._resume)
        self._watchdog = Watchdog(
            self._membership, settings.kafka.session_timeout, behind=self._behind, alive=self._alive, failed=self._fail
        )

    def _stand(self) -> Readiness:
        return Readiness(
            self._roles,
            self.sites,
            self.watchers,
            self._cycles,
            self.guards,
            self._latest,
            self._membership,
            recovered=lambda: self._recovered,
            behind=self._behind,
        )

    def _make_tables(self) -> tables.Tables:
        made = tables.attach(
            self.app, self.sites, self._publisher.dead_letter, derived=role.derived_topics(self._roles)
        )
        made.watchers[OUTCOMES.short] = [self._answered]
        if role.ALERTS in self._roles:
            made.watchers[VIOLATIONS.short] = [self._alerting.observe]
        return made

    def _attach_sinks(self, writers: Writers) -> sink_agents.SinkRunner:
        site = self._settings.site
        runner = sink_agents.SinkRunner(
            site,
            registry.sinks_of(
                self._roles, registry.SinkParts(self._settings, writers, self._reach, self.watchers.refresh)
            ),
            self._publisher,
            self._publisher.dead_letter,
            answered=self._is_answered,
            failed=self._fail,
            membership=self._membership,
            forbids=lambda kind: self.guards.standstill(site).forbids(kind),
            limits=registry.limits_of(self._settings),
            decided_here=registry.must_be_wanted(self._roles, role.EVALUATOR),
        )
        binds = (lambda placement: action_of(placement, site)) if commands.BIND in runner.sinks else None
        sink_agents.attach(self.app, runner, action_of=binds)
        self._events = EventAgents(runner, self.sites, self.tables)
        if commands.EVENT in runner.sinks:
            self._events.attach(self.app)
        return runner

    # ------------------------------------------------------------------------------------------------------ its life
    @property
    def failure(self) -> asyncio.Future[Any]:
        """What a part of it has failed of, as soon as it has."""
        return self._failure

    @property
    def started(self) -> bool:
        """Whether it has been up with every source of ours listed: what fails later is tried again."""
        return self._was_up and (self.watchers.listed or not role.WATCHERS & self._roles)

    async def run(self) -> None:
        """Until cancelled. Raises what it failed of; for Kafka's own errors that is Unreachable."""
        try:
            await self.app.start()
            if self.app.producer_only:
                await self._resume()
            crashed = asyncio.ensure_future(self.app.wait())
            watching = asyncio.ensure_future(self._watchdog.run())
            try:
                await asyncio.wait([crashed, self._failure], return_when=asyncio.FIRST_COMPLETED)
            finally:
                crashed.cancel()
                watching.cancel()
        except (KafkaError, FaustError, OSError) as error:
            raise translated(error) from None
        error_ = self._failure.result() if self._failure.done() else self.app.crash_reason
        raise Unreachable("Kafka: the consumer has ended") if error_ is None else translated(error_)

    async def close(self) -> None:
        """End everything, in the order in which data flows. Whoever waits for Kafka is not waited for long."""
        suspending = asyncio.ensure_future(self._suspend())
        await asyncio.wait([suspending], timeout=SUSPEND_WITHIN)
        await self.app.stop()
        await self._reader.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _suspend(self) -> None:
        self._recovered = False
        self.sites.suspend()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self.watchers.stop()
        await self._cycles.suspend()
        self._latest.clear()
        self._placing.clear()
        await self._sinks.suspend()
        await self._alerting.stop()

    async def _resume(self) -> None:
        self._recovered = self._was_up = True
        self._sinks.resume()
        if commands.EVENT in self._sinks.sinks:
            self._events.resume()
        if role.ALERTS in self._roles:
            self._alerting.start(self.tables.records(VIOLATIONS, FindingEvent))
        if self.app.producer_only or self.sites.holds(self._settings.site):
            await self.watchers.start()
            if role.WATCHERS & self._roles:
                self._listening = asyncio.get_running_loop().create_task(self._resumes.run(), name="resumes")
                self._listening.add_done_callback(self._stopped_listening)
        self._cycles.resume()

    def _stopped_listening(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_result(translated(error))

    def _behind(self) -> str | None:
        """How far it is from what the topics held when the partitions became ours; None once it is there."""
        return None if self.app.producer_only else behind(self.app, self.sites, recovered=self._recovered)

    def _alive(self) -> None:
        """This event loop runs, whether or not there is something to fetch."""
        if not self.app.producer_only:
            self.app.consumer.keep_alive()

    # ------------------------------------------------------------------------------------------------ what it is told
    def _answered(self, site: str, record: msgspec.Struct) -> None:
        if isinstance(record, Outcome):
            self._metrics.answered(record)
            if site == self._settings.site:
                self._placing.observe(record)
            self._cycles.observe(site, record)

    def _is_answered(self, key: str, action: Action) -> bool:
        row = self.tables.row(OUTCOMES, key)
        return (
            row is not None and (last := msgspec.json.decode(row, type=Outcome)).id == action.id and last.result in DONE
        )

    def _deciding(self, site: str, decisions: Decisions) -> None:
        if site == self._settings.site:
            placed = decisions.placements.placements if decisions.placements is not None else ()
            self._placing.decide(placed)
            binds = [action_of(placement, site) for placement in placed]
            self._sinks.expect([*decisions.actions, *(bind for bind in binds if bind is not None)])

    def _decided(self, site: str, decisions: Decisions, seconds: float) -> None:
        if site == self._settings.site:
            self._sinks.confirm(decisions.confirmed)
        self._metrics.decided(site, decisions, seconds)
        self._latest.put(site, decisions)

    # --------------------------------------------------------------------------------------------------- what it tells
    def unsure(self, site: str) -> str | None:
        """Why nothing may be said of the site now; None when its picture is complete and trusted."""
        return self.readiness.unsure(site)

    def state(self, site: str) -> SiteState:
        """The rows of a site."""
        return self.sites.state(site)

    def located(self, site: str) -> Snapshot:
        """The newest snapshot of a site that was decided for, with the hosts of its nodes."""
        latest = self._latest.of(site)
        assert latest is not None
        return latest.snapshot

    def placing(self, site: str) -> Mapping[str, Placement]:
        """The pods that the binder is placing and that the rows do not show on a node yet."""
        return self._placing.shown(self.state(site).rows(PODS)) if site == self._settings.site else {}

    async def perform(self, action: Action, refused: str | None = None) -> Outcome | None:
        """Carry out a command, or refuse it, for somebody who waits for its outcome; None without a sink for it."""
        return await self._sinks.perform(action, refused)

    def measure(self) -> None:
        """Bring the gauges up to date."""
        self._gauges.refresh(reading=self._recovered and not self.app.producer_only)
