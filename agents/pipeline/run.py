"""One run of the pipeline: sources, topics, tables, evaluation and deciders, gates, sinks.

In: settings, roles, connections. Out: a running pipeline, its readiness and its end. `agents/worker.py` makes one, and
a new one where Kafka failed. `Pipeline.__init__` reads in the order in which data flows; what stands beside comes last.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from aiokafka.errors import KafkaError
from faust.exceptions import FaustError
from msgspec import Struct

from underhost.agents.alerts.alerting import Alerting
from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decide.cycle import Cycles, SiteCycle
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator, PipelineEvaluator
from underhost.agents.pipeline.decide.restored import Evaluations, options_of
from underhost.agents.pipeline.decide.self_check import SelfCheck
from underhost.agents.pipeline.dispatch import consumers
from underhost.agents.pipeline.dispatch.announcements import Announcements
from underhost.agents.pipeline.dispatch.dispatcher import Dispatcher
from underhost.agents.pipeline.gates.fence import FencedPublisher, LeasedPublisher, MembershipGate, fenced
from underhost.agents.pipeline.gates.guards import Guards, InventoryGate
from underhost.agents.pipeline.gates.limits import WriteLimits
from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.gates.resume import PER_MINUTE, Resumes
from underhost.agents.pipeline.gates.watchdog import Watchdog
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.leases.roles import RoleLease, RoleLeases
from underhost.agents.pipeline.leases.seeking import Seeking
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.publisher import AgentPublisher
from underhost.agents.pipeline.publishing import Publishing
from underhost.agents.pipeline.readiness import Readiness
from underhost.agents.pipeline.repairs import PipelineRepairs
from underhost.agents.pipeline.state import RunState, begin_run
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables import agents as tables
from underhost.agents.pipeline.tables import recovery
from underhost.agents.pipeline.tables.held import HeldReader
from underhost.agents.pipeline.tables.held_findings import HeldFindings
from underhost.agents.sinks import registry
from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.sinks.orders import FAILED, outcome
from underhost.agents.sinks.parts import SinkParts
from underhost.agents.sinks.ports import Sink
from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import EVENT, REPORT, RESUME
from underhost.schemas.errors import KafkaAway
from underhost.schemas.records import Action, FindingEvent, Outcome, Placement
from underhost.schemas.topics import OUTCOMES, PODS, VIOLATIONS
from underhost.streams.faust.app import build_app
from underhost.streams.kafka.connect import translated
from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.publish import FaustPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings
from underhost.streams.settings.self_check import SelfCheckSettings

SUSPEND_WITHIN = 1.0
"""Seconds at the end for what watchers and cycles publish; Kafka may not answer at all."""


RELEASE_WITHIN = 1.0
"""Seconds at the end in which the leases are given back; else others wait until they end."""


class Pipeline:
    """One run, not started."""

    def __init__(
        self,
        settings: Settings,
        roles: Collection[str],
        connections: Connections,
        metrics: Metrics,
        *,
        evaluator: PipelineEvaluator | None,
        on_event: Callable[[Outgoing], None] | None,
        latest: LatestDecisions | None = None,
    ) -> None:
        site, self._closing = settings.site, False
        self.app = build_app(settings, app_id=role.app_id(roles, site), only=role.only_site(roles, site))
        kinds = registry.kinds_of(roles, connections.writers)
        self._state = run = begin_run(settings, roles, kinds, self.app, metrics, latest or LatestDecisions())
        self.sites = run.sites
        self._writers, self._kinds = connections.writers, kinds

        # Who acts: one worker for each role.
        self._seeking = self._seeking_of(run)
        self._leases = self._leases_of(connections)

        # Sources to topics.
        transport = FaustPublisher(self.app)
        to_topics = self._publishing = Publishing(transport, partial(transport.unpublishable, site))
        publisher = AgentPublisher(FencedPublisher(to_topics, run.membership), metrics, on_event)
        self._reader = open_reader(settings.kafka)
        self.tables = self._tables_of(publisher)  # before the watchers, which read from them what the topics hold
        self.watchers = self._watchers_of(connections, to_topics)

        # Topics to tables.
        recovery.attach(self.app, self.sites, self.tables, on_suspended=self._suspend, on_resumed=self._resume)

        # Tables to evaluation to deciders, whose commands go to the topics. In one thread, where the sites take turns.
        self._guards = Guards(settings, self.sites, self.watchers, standby=self._standby)
        self._findings, self._campaigns = HeldFindings(self.tables), Campaigns()
        begin = self._evaluations(evaluator).begin
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._cycles = Cycles(run, lambda site: SiteCycle(site, run, begin, self._guards, publisher, self._pool))
        self._listen()

        # Topics to commands, each past the gates to its sink.
        self._dispatcher = Dispatcher(
            site,
            self._sinks(),
            self._gates(),
            run.wanted,
            publisher,
            answered=self.tables.is_done,
            ended=run.ended,
            left=self._is_left,
        )
        self._announcements = Announcements(site, self.sites, self.tables)
        consumers.attach(self.app, self._dispatcher, self._announcements)

        log_file = None if settings.kafka.bootstrap_servers else settings.kafka.embedded
        gates = [MembershipGate(run.membership), WriteLimits({RESUME: PER_MINUTE})]
        self._resumes = Resumes(site, self.watchers.accept, self._reader, publisher, log_file, run.ended, gates=gates)
        self._decided = registry.decided_by(roles)
        self._look_on(settings.self_check if evaluator is None else SelfCheckSettings(interval=0.0))

    def _tables_of(self, publisher: AgentPublisher) -> tables.Tables:
        run, derived = self._state, role.derived_topics(self._state.roles)
        return tables.attach(
            self.app, run.sites, derived, publisher.dead_letter, self._reader.state, run.metrics.refused
        )

    def _seeking_of(self, run: RunState) -> Seeking:
        site = run.settings.site
        return Seeking(
            run.roles,
            run.membership,
            is_log_ours=run.settings.kafka.bootstrap_servers is None,
            is_ours=lambda name: self._leases.of(name).is_ours,
            silent=lambda: self._guards.silent(site),
            unready=lambda: run.sites.unready(site),
        )

    def _leases_of(self, connections: Connections) -> RoleLeases:
        run, settings = self._state, self._state.settings
        return RoleLeases(
            connections.leases,
            settings.site,
            settings.lease.seconds,
            role.leased(run.roles, settings, connections.writers),
            publishing=role.publish_without_lease(run.roles, settings),
            is_candidate=self._seeking.is_candidate,
            may_seek=self._seeking.may_seek,
            changed=self._lease_changed,
            ended=run.ended,
        )

    def _watchers_of(self, connections: Connections, publisher: Publisher) -> Watchers:
        run = self._state
        return Watchers(
            run.settings.site,
            connections.sources,
            lambda name: LeasedPublisher(publisher, run.membership, self._leases.of(name)),
            HeldReader(self.app, self.tables, self._reader) if run.reads else self._reader,
            self.sites if run.reads else None,
            failed=run.fail,
            metrics=run.metrics,
            names=run.roles,
        )

    def _evaluations(self, evaluator: PipelineEvaluator | None) -> Evaluations:
        run = self._state
        return Evaluations(
            run.settings, self.tables, evaluator, run.roles, self._kinds, self._findings, self._campaigns
        )

    def _listen(self) -> None:
        """What the cycles are told of that no evaluation reads."""
        self.tables.watch(OUTCOMES, self._answered)
        if REPORT in self._kinds:
            self.tables.watch(VIOLATIONS, self._found)

    def _sinks(self) -> list[Sink]:
        """A sink for each kind, whose writers are behind the fence of its role."""
        settings, membership = self._state.settings, self._state.membership
        is_node = partial(self.sites.is_node, settings.site)
        labels_of = partial(self.sites.labels_of, settings.site)
        vms = self._state.own_vms
        parts = SinkParts(settings, self._writers, is_node, labels_of, vms, self.watchers.refresh)
        writers = {kind: fenced(self._writers, membership, self._lease_of(kind)) for kind in self._kinds}
        return [registry.COMMANDS[kind].sink(replace(parts, writers=writers[kind])) for kind in self._kinds]

    def _gates(self) -> list[Gate]:
        """What is asked right before each write, in this order."""
        run = self._state
        return [
            InventoryGate(self._guards, run.settings.site),
            run.wanted,
            MembershipGate(run.membership),
            WriteLimits(registry.limits_of(run.settings)),
        ]

    def _look_on(self, checks: SelfCheckSettings) -> None:
        """What stands beside the flow: alerts, readiness, the watchdog."""
        run, settings = self._state, self._state.settings
        self._alerting = Alerting(settings.alerting, run.metrics.alerted, run.fail, settings.shares.alerts)
        if role.ALERTS in run.roles:
            self.tables.watch(VIOLATIONS, self._alerting.observe)
            consumers.attach_webhooks(self.app, self._alerting)
        self.readiness = Readiness(
            run, self.app, self.watchers, self.tables, self._cycles, self._guards, self._leases, self._publishing
        )
        self._self_check = SelfCheck(
            checks,
            options_of(settings),
            run.latest,
            run.metrics,
            failure=self._cycles.failure,
            renew=self._cycles.renew,
            make=LazyEvaluator,
        )
        self.repairs = PipelineRepairs(
            settings.site, self._kinds, self._campaigns, self._leases, self.unsure, self._cycles.nudge
        )
        self._watchdog = Watchdog(
            run.membership,
            settings.kafka.session_timeout,
            behind=self.readiness.behind,
            alive=self._alive,
            failed=run.fail,
        )

    # ------------------------------------------------------------------------------------------------------ its life
    @property
    def failure(self) -> asyncio.Future[Any]:
        """What a part of it has failed of, as soon as it has."""
        return self._state.failure

    @property
    def started(self) -> bool:
        """Whether it has been up with every source listed, here or elsewhere: what fails later is tried again."""
        watched = (self.watchers.has_listed(name) or self._leases.of(name).stands_by for name in role.WATCHERS)
        return self._state.was_up and (not self._seeking.owns_site or all(watched))

    async def run(self) -> None:
        """Until cancelled. Raises what it failed of; for Kafka's own errors that is KafkaAway."""
        try:
            await self.app.start()
            if not self._state.reads:
                await self._resume()
            crashed = asyncio.ensure_future(self.app.wait())
            beside = [asyncio.ensure_future(self._watchdog.run()), asyncio.ensure_future(self._publishing.run())]
            try:
                await asyncio.wait([crashed, self.failure], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (crashed, *beside):
                    task.cancel()
        except (KafkaError, FaustError, OSError) as error:
            raise translated(error) from None
        error_ = self.failure.result() if self.failure.done() else self.app.crash_reason
        raise KafkaAway("Kafka: the consumer has ended") if error_ is None else translated(error_)

    async def close(self) -> None:
        """End everything, in the order in which data flows. Whoever waits for Kafka is not waited for long."""
        self._closing = True
        suspending = asyncio.ensure_future(self._suspend())
        await asyncio.wait([suspending], timeout=SUSPEND_WITHIN)
        self._seeking.owns_site = False
        releasing = asyncio.ensure_future(self._leases.close())
        await asyncio.wait([releasing], timeout=RELEASE_WITHIN)
        await self.app.stop()
        await self._reader.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _suspend(self) -> None:
        """The partitions may move: nothing of ours may run after this."""
        self._state.recovered = False
        self.sites.suspend()
        self._dispatcher.stop()  # at once: a source may take its time to end, and nobody waits for that for long
        await self._resumes.stop()
        await self.watchers.stop()
        await self._self_check.stop()
        await self._cycles.suspend()
        self.repairs.suspend()
        self._state.decided_from = None
        self._state.latest.clear()
        self._state.in_flight.clear()
        await self._dispatcher.suspend()
        await self._alerting.stop()

    async def _resume(self) -> None:
        """The partitions are held, and their tables recovered; in a run that ends nothing begins by that."""
        if self._closing:
            return
        run = self._state
        run.recovered = run.was_up = True
        run.wanted.begin()
        self._dispatcher.resume()
        if EVENT in self._dispatcher.sinks:
            self._announcements.resume()
        if role.ALERTS in run.roles:
            self._alerting.start(self.tables.records(VIOLATIONS, FindingEvent))
        self._seeking.owns_site = not run.reads or self.sites.holds(run.settings.site)
        self._leases.start()
        if self._seeking.owns_site:
            self.watchers.start([name for name in role.WATCHERS if self._leases.of(name).is_ours])
            if role.WATCHERS & run.roles:
                self._resumes.start()
        self._cycles.resume()
        if role.EVALUATOR in run.roles:
            self._self_check.start(run.ended)

    async def _lease_changed(self, name: str) -> None:
        """A role's lease was won, or lost: what was begun in another term ends before anything else happens."""
        self._dispatcher.abandon(registry.kinds_of([name], self._writers))
        await self.watchers.stop([name])
        if self._state.recovered and self._seeking.owns_site and self._leases.of(name).is_ours:
            self.watchers.start([name])
        self._cycles.poke(self._state.settings.site)

    def _lease_of(self, kind: str) -> RoleLease:
        return self._leases.of(registry.COMMANDS[kind].role)

    def _standby(self, kinds: Iterable[str]) -> dict[str, str]:
        """Those of these kinds that are not carried out here now, though there is a sink, with the reason."""
        doubts = {kind: self._lease_of(kind).doubt() for kind in kinds if kind in self._kinds}
        return {kind: doubt for kind, doubt in doubts.items() if doubt is not None}

    async def _is_left(self, action: Action, since: float) -> bool:
        """Whether a command from the topics is another worker's to answer: the one that holds the lease decides, too.

        What others decide is answered here, so that they decide it again. What people are told nobody decides again: it
        waits until it is settled who tells them.
        """
        lease = self._lease_of(action.kind)
        if action.kind == EVENT:
            return not await lease.falls_to_us(since)
        doubt = lease.doubt()
        if doubt is None or action.kind not in self._decided:
            return False
        # Nobody's outcome may come for what a worker ordered that has died: here it counts as failed.
        self._cycles.observe(self._state.settings.site, outcome(action, FAILED, doubt))
        return True

    def _alive(self) -> None:
        """This event loop runs, whether or not there is something to fetch."""
        if self._state.reads:
            self.app.consumer.keep_alive()

    def _found(self, site: str, record: Struct) -> None:
        """A finding that opened, changed or was resolved, live from its topic."""
        if isinstance(record, FindingEvent):
            self._findings.observe(site, record)
            self._cycles.nudge(site)

    def _answered(self, site: str, record: Struct) -> None:
        """An outcome, live from its topic."""
        if isinstance(record, Outcome):
            self._state.metrics.answered(record)
            if site == self._state.settings.site:
                self._state.in_flight.observe(record)
            self._cycles.observe(site, record)

    # -------------------------------------------------------------------------------- what may be asked of it meanwhile
    def unsure(self, site: str) -> str | None:
        """Why nothing may be said of the site now; None when its picture is complete and trusted."""
        return self.readiness.unsure(site)

    def state(self, site: str) -> SiteState:
        """The rows of a site."""
        return self.sites.state(site)

    def located(self, site: str) -> Snapshot:
        """The newest snapshot of a site that was decided for, with the hosts of its nodes."""
        latest = self._state.latest.of(site)
        assert latest is not None
        return latest.snapshot

    def placing(self, site: str) -> Mapping[str, Placement]:
        """The pods that the binder is placing and that the rows do not show on a node yet."""
        own = site == self._state.settings.site
        return self._state.in_flight.shown(self.state(site).rows(PODS)) if own else {}

    async def perform(self, action: Action, refused: str | None = None) -> Outcome | None:
        """Carry out a command, or refuse it, for somebody who waits for its outcome; None without a sink for it."""
        return await self._dispatcher.perform(action, refused)
