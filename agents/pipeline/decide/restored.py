"""What a site's evaluations begin with: its memory, read from the tables at the moment the site becomes ready.

In: the tables of derived topics, settings, roles. Out: an `Evaluation`. Everything that was published before is in the
tables by then: ready means that they have caught up.
"""

import time
from collections.abc import Collection, Iterable

from underhost.agents.pipeline.decide.evaluation import Engine, Evaluation, Memory
from underhost.agents.pipeline.decide.evaluator import PolarsEngine
from underhost.agents.pipeline.decide.label_stale import StaleLabels
from underhost.agents.pipeline.decide.open_findings import Findings
from underhost.agents.pipeline.decide.placements import Placements
from underhost.agents.pipeline.decide.reports import Reports
from underhost.agents.pipeline.decide.unfinished import Orders
from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.node_hosts import Topology
from underhost.agents.sinks.bindings import action_of
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Options
from underhost.schemas import topics
from underhost.schemas.records import Action, FindingEvent, NodeHost, Outcome, Placement
from underhost.schemas.severities import LABEL_STALE
from underhost.streams.settings.model import Settings

OUR_SCHEDULER = "underhost"


def options_of(settings: Settings) -> Options:
    """How the evaluator judges in the pipeline: only pods of our scheduler are placed."""
    return Options(
        host_keys=(settings.host_label.key, *settings.host_label.aliases),
        physical_host=settings.physical_host,
        scheduler_names=(OUR_SCHEDULER,),
    )


class Memories:
    """Makes evaluations for the sites of one pipeline."""

    def __init__(
        self,
        settings: Settings,
        tables: Tables,
        engine: Engine | None,
        *,
        evaluates: bool,
        kinds: Collection[str],
        tells: bool = False,
    ) -> None:
        """`evaluates`: findings and placements are decided here; `kinds` of commands have a sink here; `tells`: it is
        to be told what becomes of pods of ours, here or in another worker."""
        self._settings, self._tables, self._evaluates, self._kinds = settings, tables, evaluates, frozenset(kinds)
        self._tells = tells
        self._options = options_of(settings)
        self._engine = engine

    def begin(self, site: str) -> Evaluation:
        """An evaluation that remembers what was published for the site before."""
        now = time.monotonic()
        outcomes = list(self._tables.records(topics.OUTCOMES, Outcome, site))
        placements = Placements(
            site, self._tables.records(topics.PLACEMENTS, Placement, site), lambda row: order_id(row, site)
        )
        for outcome in outcomes:
            placements.observe(outcome, now)
        open_findings = list(self._tables.records(topics.VIOLATIONS, FindingEvent, site))
        stale = [row.id for row in open_findings if row.severity == LABEL_STALE and row.state != "resolved"]
        engine = self._engine or PolarsEngine()
        reports = Reports(engine, self._options)
        memory = Memory(
            topology=Topology(site, self._tables.records(topics.NODE_HOSTS, NodeHost, site)),
            orders=Orders(site, self._tables.records(topics.ACTIONS, Action, site), outcomes, now),
            findings=Findings(site, open_findings) if self._evaluates else None,
            placements=placements if self._evaluates else None,
            stale=StaleLabels(self._options, known=stale),
            deciders=[*self._deciders(site, reports, outcomes, now), *self._tellers(placements)],
        )
        return Evaluation(engine, self._options, memory, time.monotonic, reports)

    def _deciders(self, site: str, reports: Reports, outcomes: Iterable[Outcome], now: float) -> list[Decider]:
        # Nothing is ordered that nobody here can carry out; another site's commands are its own workers'.
        deciders: list[Decider] = []
        if site == self._settings.site and "label" in self._kinds:
            from underhost.agents.sinks.labels.node_labels import LabelDecider

            deciders.append(LabelDecider(self._settings.host_label))
        if site == self._settings.site and "drs-rule" in self._kinds:
            from underhost.agents.sinks.drs.rules import DrsDecider, Pacing

            drs = self._settings.drs_rules
            pacing = Pacing(edits=drs.edits_per_minute)
            deciders.append(DrsDecider(site, self._options, pacing=pacing, mandatory=drs.mandatory))
        if site == self._settings.site and "evict" in self._kinds:
            from underhost.agents.sinks.evictions.decider import EvictionDecider, terms_of

            earlier = self._tables.records(topics.ACTIONS, Action, site)
            terms = terms_of(self._settings.evictions, binds=self._settings.sinks.bindings)
            deciders.append(
                EvictionDecider(
                    self._settings.evictions,
                    terms,
                    self._options,
                    reports,
                    earlier=earlier,
                    outcomes=outcomes,
                    now=now,
                )
            )
        return deciders

    def _tellers(self, placements: Placements) -> list[Decider]:
        if not self._evaluates or not self._tells:
            return []
        from underhost.agents.sinks.events.waiting import WaitingDecider

        return [WaitingDecider(placements)]


def order_id(placement: Placement, site: str) -> str:
    """The id of the command that a placement is to the binder; "" while the pod waits."""
    action = action_of(placement, site)
    return action.id if action is not None else ""
