"""What the parts of one run have in common: which sites it holds, what was decided, and whether it still works.

A run that is started again begins with a new one, but for the metrics and the latest decisions, which whoever looks at
them keeps.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.dispatch.in_flight import BindingsInFlight
from underhost.agents.pipeline.gates.wanted import WantedCommands
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.tables.sites import Sites, sites_of
from underhost.agents.sinks.own_vms import own_vms
from underhost.agents.sinks.registry import must_be_wanted
from underhost.agents.site.snapshot import Snapshot
from underhost.streams.faust.app import UnderhostApp
from underhost.streams.faust.membership import Membership
from underhost.streams.kafka.connect import translated
from underhost.streams.settings.model import Settings


@dataclass
class RunState:
    """One run's.

    Attributes:
        reads: whether it reads topics at all; a worker that only watches does not.
        wanted: the commands of our own site that this run's decisions stand by.
        in_flight: the bindings of our own site that the binder is making.
        decided_from: the newest picture of our own site that commands were decided from.
        recovered: its tables are there. was_up: they have been there before.
        failure: what a part of it has failed of, as soon as it has.
    """

    settings: Settings
    roles: frozenset[str]
    reads: bool
    sites: Sites
    membership: Membership
    metrics: Metrics
    latest: LatestDecisions
    wanted: WantedCommands
    in_flight: BindingsInFlight = field(default_factory=BindingsInFlight)
    decided_from: Snapshot | None = None
    recovered: bool = False
    was_up: bool = False
    failure: "asyncio.Future[BaseException]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: BaseException) -> None:
        """A part has failed: the run ends."""
        if not self.failure.done():
            self.failure.set_result(translated(error))

    def ended(self, task: "asyncio.Future[None]") -> None:
        """A task has ended, which may only be because it was cancelled, or because it is done."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    def decide(self, site: str, decisions: Decisions) -> None:
        """These are about to be published: the topics bring their commands to the dispatcher at once."""
        if site == self.settings.site:
            self.decided_from = decisions.snapshot
            self.in_flight.decide(decisions.placed, decisions.snapshot.pods)
            self.wanted.decide(decisions.commands, decisions.confirmed)

    def own_vms(self) -> frozenset[str] | None:
        """The VMs that the nodes of our own site run on, by moref; None before the first decision."""
        picture = self.decided_from
        return None if picture is None else own_vms(picture)

    def decided(self, site: str, decisions: Decisions, seconds: float) -> None:
        """These are published, after so many seconds of evaluation."""
        self.metrics.decided(site, decisions, seconds)
        self.latest.put(site, decisions)


def begin_run(
    settings: Settings,
    roles: Collection[str],
    kinds: Collection[str],
    app: UnderhostApp,
    metrics: Metrics,
    latest: LatestDecisions,
) -> RunState:
    """The state of a new run of this app, which from now on reports its failures there.

    `kinds` of commands have a sink in this worker.
    """
    reads = role.consumes(roles)
    app.producer_only = not reads
    only = role.only_site(roles, settings.site)
    run = RunState(
        settings,
        frozenset(roles),
        reads,
        sites_of(
            settings,
            role.state_topics(roles),
            role.derived_topics(roles),
            only=None if only is None else frozenset({only}),
        ),
        # Without a consumer there is no group that could count on this worker or not.
        app.membership if reads else Membership(),
        metrics,
        latest,
        WantedCommands(must_be_wanted(roles).intersection(kinds)),
    )
    app.on_failure, app.doubt = run.fail, run.membership.doubt
    return run
