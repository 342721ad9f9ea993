"""What a site's evaluations begin with: its memory, read from the tables at the moment the site becomes ready.

In: the tables of derived topics, settings, roles. Out: an `Evaluation`. Everything that was published before is in the
tables by then: ready means that they have caught up.
"""

import time
from collections.abc import Collection
from functools import partial

from underhost.agents.pipeline.decide.evaluation import Evaluation, SiteMemory
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator, PipelineEvaluator
from underhost.agents.pipeline.decide.label_stale import StaleLabels, StalePods
from underhost.agents.pipeline.decide.left_vms import LeftVms
from underhost.agents.pipeline.decide.open_findings import PublishedFindings
from underhost.agents.pipeline.decide.own_writes import OwnWrites
from underhost.agents.pipeline.decide.placements import BindingQueue
from underhost.agents.pipeline.decide.tenants import Tenants
from underhost.agents.pipeline.decide.unfinished import UnfinishedCommands
from underhost.agents.pipeline.roles import EVALUATOR
from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.held_findings import HeldFindings
from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.pipeline.tables.sites import joining_of
from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.sinks.parts import DeciderParts
from underhost.agents.sinks.registry import COMMANDS, deciders_of
from underhost.agents.site.snapshot import Options
from underhost.schemas import topics
from underhost.schemas.commands import REPORT
from underhost.schemas.records import RESOLVED, Action, FindingEvent, NodeHost, Outcome, Placement
from underhost.schemas.severities import LABEL_STALE
from underhost.schemas.shares import Shares
from underhost.streams.settings.model import Settings


def options_of(settings: Settings) -> Options:
    """How the evaluator judges in the pipeline: only pods of our scheduler are placed."""
    return Options(
        host_keys=joining_of(settings).host_keys((settings.host_label.key, *settings.host_label.aliases)),
        physical_host=settings.physical_host,
        cross_namespace=settings.cross_namespace,
        shares=Shares(**settings.shares.model_dump()),
        scheduler_names=(OUR_SCHEDULER,),
    )


class Evaluations:
    """Begins the evaluations of the sites of one run."""

    def __init__(
        self,
        settings: Settings,
        tables: Tables,
        evaluator: PipelineEvaluator | None,
        roles: Collection[str],
        kinds: Collection[str],
        findings: HeldFindings,
        campaigns: Campaigns,
    ) -> None:
        """`kinds` of commands have a sink in this worker."""
        self._findings, self._campaigns = findings, campaigns
        self._settings, self._tables, self._evaluates = settings, tables, EVALUATOR in roles
        self._here = [row.name for row in COMMANDS.values() if row.name in kinds and not row.evaluator_decides]
        # What the evaluator decides is carried out here, or by another worker, which the settings let write.
        self._anywhere = [
            row.name
            for row in COMMANDS.values()
            if row.evaluator_decides and (row.name in kinds or (row.role not in roles and row.enabled(settings)))
        ]
        self._options = options_of(settings)
        self._evaluator = evaluator

    def begin(self, site: str) -> Evaluation:
        """An evaluation that remembers what was published for the site before."""
        now, tables = time.monotonic(), self._tables
        outcomes = list(tables.records(topics.OUTCOMES, Outcome, site))
        earlier = list(tables.records(topics.ACTIONS, Action, site))
        open_findings = list(tables.records(topics.VIOLATIONS, FindingEvent, site))
        stale = [row.id for row in open_findings if row.severity == LABEL_STALE and row.state != RESOLVED]
        bindings = None
        if self._evaluates:
            placed = tables.records(topics.PLACEMENTS, Placement, site)
            bindings = BindingQueue(site, placed)
            for outcome in outcomes:
                bindings.observe(outcome, now)
        evaluator = self._evaluator or LazyEvaluator(self._options)
        # Nothing is ordered that nobody can carry out; another site's commands are its own workers'.
        kinds = [*(self._here if site == self._settings.site else ()), *(self._anywhere if self._evaluates else ())]
        own_writes = OwnWrites(site)
        if REPORT in kinds:
            self._findings.begin(site)
        parts = DeciderParts(
            site=site,
            settings=self._settings,
            options=self._options,
            evaluator=evaluator,
            pending=bindings,
            earlier=earlier,
            outcomes=outcomes,
            now=now,
            held_until=own_writes.held_until,
            findings=partial(self._findings.of, site),
            kinds=kinds,
            campaigns=self._campaigns if site == self._settings.site else Campaigns(),
        )
        left_vms = LeftVms(site)
        for outcome in outcomes:
            left_vms.observe(outcome)
        memory = SiteMemory(
            node_hosts=NodeHosts(site, tables.records(topics.NODE_HOSTS, NodeHost, site)),
            unfinished=UnfinishedCommands(site, earlier, outcomes, now),
            findings=PublishedFindings(site, open_findings) if self._evaluates else None,
            bindings=bindings,
            binding_labels=BindingLabels(self._settings.host_label),
            tenants=Tenants(site, self._options.shares),
            left_vms=left_vms,
            stale=StaleLabels(self._options, known=stale),
            stale_pods=StalePods(self._options),
            own_writes=own_writes,
            deciders=deciders_of(kinds, parts),
        )
        return Evaluation(site, evaluator, memory)
