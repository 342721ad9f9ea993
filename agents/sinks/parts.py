"""What sinks and deciders are made of: one value for each, from which the factories of the table take what they need.

In: settings, writers, the evaluator and what is remembered of earlier runs. Out: `SinkParts`, `DeciderParts`, and what
several deciders share. Sinks and deciders are imported where they are made (`registry.py`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.sinks.own_vms import VmsAsked
from underhost.agents.sinks.ports import PendingPods, Writers
from underhost.agents.site.snapshot import Options
from underhost.schemas import commands
from underhost.schemas.records import Action, FindingEvent, Outcome
from underhost.streams.settings.model import Settings

if TYPE_CHECKING:
    from underhost.agents.evaluate.evaluator import SiteEvaluator
    from underhost.agents.planner.fleet import Room
    from underhost.agents.repair.evictable import EvictionTerms
    from underhost.agents.sinks.drs.decider import NeededRules
    from underhost.agents.sinks.moves.decider import MoveDecider


@dataclass(frozen=True)
class SinkParts:
    """What sinks are made of.

    Attributes:
        is_node, labels_of: the nodes of the site and their labels (None for an unknown one), as the watch has shown
            them last.
        refresh: makes the watchers read again what vCenter does not announce.
    """

    settings: Settings
    writers: Writers
    is_node: Callable[[str], bool]
    labels_of: Callable[[str], Mapping[str, str] | None]
    vms: VmsAsked
    refresh: Callable[[], None]


@dataclass(frozen=True)
class DeciderParts:
    """What the deciders of one site are made of, at the moment when the site becomes ready.

    Attributes:
        evaluator: of the site; it compiles the site for all of them.
        pending: the pods that the evaluator places; None where nobody evaluates here.
        earlier, outcomes: the newest command of each target in earlier runs, and what became of them.
        now: monotonic seconds.
        held_until: for (kind, target), until when it is left alone because a write of ours is not seen yet, monotonic
            seconds; 0.0 where none is awaited.
        findings: the open findings by id as their topic has them, the very same mapping until one changes.
        kinds: those that are decided here. campaigns: the repairs, and maintenance, that people ask for.
    """

    site: str
    settings: Settings
    options: Options
    evaluator: "SiteEvaluator"
    pending: PendingPods | None
    earlier: Sequence[Action]
    outcomes: Sequence[Outcome]
    now: float
    held_until: Callable[[str, str], float]
    findings: Callable[[], Mapping[str, FindingEvent]]
    kinds: Collection[str]
    campaigns: Campaigns

    @cached_property
    def mover(self) -> "MoveDecider":
        """The decider of the mover, of which the evictor wants to know what is left to it."""
        from underhost.agents.planner.terms import RepairTerms
        from underhost.agents.sinks.moves.decider import MoveDecider
        from underhost.agents.sinks.moves.drs_turn import DrsTurn
        from underhost.agents.sinks.moves.planning import PlansBeside, repair_plan

        settings, moves = self.settings, self.settings.moves
        evicts = settings.sinks.evictions and commands.EVICT in self.kinds
        return MoveDecider(
            moves,
            RepairTerms(
                evictions=eviction_terms(settings) if evicts else None,
                room=self.room,
            ),
            self.evaluator,
            PlansBeside(self.options, repair_plan),
            enabled=settings.sinks.moves,
            campaigns=self.campaigns,
            drs=DrsTurn(self.needed_rules) if settings.sinks.drs_rules else None,
            share=settings.shares.moves,
            earlier=self.earlier,
            outcomes=self.outcomes,
            now=self.now,
        )

    @property
    def room(self) -> "Room":
        """How the hosts' room is counted where VMs are moved."""
        from underhost.agents.planner.fleet import Room

        moves = self.settings.moves
        return Room(moves.headroom, moves.reserved, moves.admission)

    @cached_property
    def needed_rules(self) -> "NeededRules":
        """The DRS rules that the site needs, worked out once for all who ask."""
        from underhost.agents.sinks.drs.decider import NeededRules

        return NeededRules(self.evaluator, self.options)


def eviction_terms(settings: Settings) -> "EvictionTerms":
    """What the evictor may evict."""
    from underhost.agents.sinks.evictions.decider import terms_of

    return terms_of(settings.evictions, binds=settings.sinks.bindings)
