"""The table of command kinds: one row says who decides a command, who carries it out, and what may stop it.

In: settings, roles, and what sinks and deciders are made of. Out: the sinks and deciders that a worker has, and the
facts of each kind. A new sink is a module of this room, a row here, and its name in `schemas/commands.py`. Factories
import sinks and deciders: a worker starts without modules, and the clients behind them, of roles that it has not.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from underhost.agents.sinks import shown
from underhost.agents.sinks.evictions.sink import outdated
from underhost.agents.sinks.maintenance.sink import outdated as outdated_maintenance
from underhost.agents.sinks.moves.vain import outdated as outdated_move
from underhost.agents.sinks.parts import DeciderParts, SinkParts, eviction_terms
from underhost.agents.sinks.ports import Decider, Sink, Writers
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import commands, topics
from underhost.schemas.commands import WRITTEN
from underhost.schemas.records import Action
from underhost.schemas.topics import Topic
from underhost.streams.settings.model import Settings

EVALUATOR = "evaluator"
"""The role that decides what rules decide; the others of this table each carry out one kind."""


class RestsOnHosts(Enum):
    """Whether a command may be wrong where the host of a VM is not known as it is now: stale vSphere data stops it."""

    ALWAYS, IF_REQUIRED, NEVER = "always", "where physicalHost is required", "never"


@dataclass(frozen=True)
class CommandKind:
    """One kind of commands.

    Attributes:
        name: as it travels.
        role: the role (`--agents`) that carries it out.
        writer: what its sink needs of a cluster, a field of `Writers`.
        state, derived: the topics that the role keeps tables of, of objects and of what the worker itself publishes.
        sink: makes the sink.
        decider: makes the decider; None where no decider orders it.
        evaluator_decides: it is decided where the evaluator runs, not where its sink does.
        lanes: commands that are carried out side by side.
        patience: seconds that its sink may take for one.
        rests_on_hosts: see the class.
        must_be_wanted: only a command that this run's decisions stand by is carried out. What is told of the past, in
            contrast, stays true.
        frequent: commands come by the hundred; that one has succeeded is no reason to evaluate.
        shows: for a command and the picture that it was ordered from, the test whether a later picture shows what it
            has written; None: no source shows it.
        stands: seconds for which a command may wait to be carried out; an older one is refused, and decided anew.
        outdated: whether nobody needs to remember a command any more, at a time in seconds since 1970; None: its target
            has one command at a time, and ends with its object.
    """

    name: str
    role: str
    writer: str
    state: tuple[Topic, ...]
    derived: tuple[Topic, ...]
    sink: Callable[[SinkParts], Sink]
    decider: Callable[[DeciderParts], Decider] | None
    evaluator_decides: bool = False
    lanes: int = 1
    patience: float = 60.0
    rests_on_hosts: RestsOnHosts = RestsOnHosts.ALWAYS
    must_be_wanted: bool = True
    frequent: bool = False
    shows: Callable[[Action, Snapshot], Callable[[Snapshot], bool]] | None = None
    stands: float = float("inf")
    outdated: Callable[[Action, float], bool] | None = None

    @property
    def is_remembered(self) -> bool:
        """Whether a decider needs to know its commands after a restart, so that it does nothing over and over."""
        return self.outdated is not None

    def enabled(self, settings: Settings) -> bool:
        """Whether its sink writes; otherwise it says what it would write."""
        return bool(getattr(settings.sinks, WRITTEN[self.name].setting))


# ------------------------------------------------------------------------------------------------------- the factories
def _label_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.labels.sink import LabelSink

    assert parts.writers.kubernetes is not None
    settings = parts.settings
    return LabelSink(parts.writers.kubernetes, settings.host_label, enabled=settings.sinks.labels, seen=parts.labels_of)


def _label_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.labels.decider import LabelDecider

    return LabelDecider(parts.settings.host_label, partial(parts.held_until, commands.LABEL))


def _pod_label_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.pod_labels.sink import PodLabelSink

    assert parts.writers.kubernetes is not None
    settings = parts.settings
    return PodLabelSink(parts.writers.kubernetes, settings.host_label, enabled=settings.sinks.pod_labels)


def _pod_label_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.pod_labels.decider import PodLabelDecider

    return PodLabelDecider(parts.settings.host_label, partial(parts.held_until, commands.POD_LABEL))


def _bind_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.bindings import BindSink
    from underhost.agents.sinks.labels.sink import needed_by

    assert parts.writers.kubernetes is not None
    settings = parts.settings
    return BindSink(
        parts.writers.kubernetes,
        enabled=settings.sinks.bindings,
        is_node=parts.is_node,
        keys=needed_by(settings.host_label),
    )


def _drs_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.drs.sink import DrsSink

    assert parts.writers.drs is not None
    settings = parts.settings
    enabled = settings.sinks.drs_rules
    return DrsSink(parts.writers.drs, settings.site, enabled=enabled, vms=parts.vms, refresh=parts.refresh)


def _drs_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.drs.decider import DrsDecider, Pacing

    settings = parts.settings.drs_rules
    pacing = Pacing(edits=settings.edits_per_minute, tenant_edits=parts.settings.shares.drs_edits)
    needed = parts.needed_rules
    held_until = partial(parts.held_until, commands.DRS_RULE)
    return DrsDecider(
        parts.site, needed, held_until, pacing=pacing, mandatory=settings.mandatory, left_out=needed.left_out
    )


def _move_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.moves.sink import MoveSink

    assert parts.writers.moves is not None
    settings = parts.settings
    return MoveSink(parts.writers.moves, settings.site, enabled=settings.sinks.moves, vms=parts.vms)


def _move_decider(parts: DeciderParts) -> Decider:
    return parts.mover


def _maintenance_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.maintenance.sink import MaintenanceSink

    assert parts.writers.maintenance is not None
    on, within = parts.settings.sinks.maintenance, parts.settings.maintenance.timeout
    return MaintenanceSink(parts.writers.maintenance, enabled=on, within=within, vms=parts.vms, refresh=parts.refresh)


def _maintenance_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.maintenance.decider import MaintenanceDecider
    from underhost.agents.sinks.moves.planning import PlansBeside, maintenance_plan

    return MaintenanceDecider(
        parts.settings.maintenance,
        parts.room,
        parts.evaluator,
        PlansBeside(parts.options, maintenance_plan),
        parts.mover.moving,
        parts.campaigns,
        enabled=parts.settings.sinks.maintenance,
        before=(parts.earlier, parts.outcomes),
    )


def _eviction_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.evictions.sink import EvictionSink

    assert parts.writers.kubernetes is not None
    excepted = parts.settings.evictions.except_namespaces
    return EvictionSink(parts.writers.kubernetes, enabled=parts.settings.sinks.evictions, except_namespaces=excepted)


def _eviction_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.evictions.decider import EvictionDecider
    from underhost.agents.sinks.evictions.drs_first import DrsFirst

    settings = parts.settings
    drs = DrsFirst(parts.site, parts.needed_rules)
    return EvictionDecider(
        settings.evictions,
        eviction_terms(settings),
        parts.evaluator,
        moves=parts.mover if commands.MOVE in parts.kinds else None,
        drs_until=drs.until if settings.sinks.drs_rules else None,
        earlier=parts.earlier,
        outcomes=parts.outcomes,
        now=parts.now,
    )


def _event_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.events.sink import EventSink

    assert parts.writers.events is not None
    site, sinks, share = parts.settings.site, parts.settings.sinks, parts.settings.shares.events
    return EventSink(parts.writers.events, site, enabled=sinks.events, binds=sinks.bindings, share=share)


def _waiting_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.events.in_the_way import InTheWay
    from underhost.agents.sinks.events.waiting import WaitingDecider

    assert parts.pending is not None
    return WaitingDecider(parts.pending, InTheWay(parts.evaluator, parts.options).of)


def _report_sink(parts: SinkParts) -> Sink:
    from underhost.agents.sinks.reports.sink import ReportSink

    assert parts.writers.reports is not None
    return ReportSink(parts.writers.reports, parts.settings.site)


def _report_decider(parts: DeciderParts) -> Decider:
    from underhost.agents.sinks.reports.decider import ReportDecider

    return ReportDecider(parts.site, parts.findings)


# ----------------------------------------------------------------------------------------------------------- the table
_ROWS = (
    CommandKind(
        commands.LABEL,
        role="labeller",
        writer="kubernetes",
        state=(topics.NODES, topics.VMS, topics.HOSTS),
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_label_sink,
        decider=_label_decider,
        lanes=32,
        shows=shown.labels_shown,
    ),
    CommandKind(
        commands.POD_LABEL,
        role="pod-labeller",
        writer="kubernetes",
        state=tuple(topic for topic in topics.SOURCE_TOPICS if topic is not topics.DRS_RULES),
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_pod_label_sink,
        decider=_pod_label_decider,
        lanes=8,
        frequent=True,
        shows=shown.pod_labels_shown,
    ),
    CommandKind(
        commands.BIND,
        role="binder",
        writer="kubernetes",
        state=(topics.NODES, topics.HOSTS),  # what their markers say: whether anything may be written
        derived=(topics.OUTCOMES,),
        sink=_bind_sink,
        decider=None,  # a placement is the order
        evaluator_decides=True,
        lanes=64,  # a busy server takes longer for each, and more in all
        rests_on_hosts=RestsOnHosts.IF_REQUIRED,
        frequent=True,
        shows=shown.binding_shown,
        stands=300.0,
    ),
    CommandKind(
        commands.DRS_RULE,
        role="drs",
        writer="drs",
        state=topics.SOURCE_TOPICS,
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_drs_sink,
        decider=_drs_decider,
        shows=shown.rule_shown,
    ),
    CommandKind(
        commands.MOVE,
        role="mover",
        writer="moves",
        state=topics.SOURCE_TOPICS,
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_move_sink,
        decider=_move_decider,
        lanes=16,
        patience=3600.0,  # a VM of a terabyte takes its time
        shows=shown.move_shown,
        stands=300.0,
        outdated=outdated_move,
    ),
    CommandKind(
        commands.MAINTENANCE,
        role="mover",  # which empties the host first: two workers could not take turns at that
        writer="maintenance",
        state=topics.SOURCE_TOPICS,
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_maintenance_sink,
        decider=_maintenance_decider,
        lanes=4,
        patience=7200.0,
        shows=shown.maintenance_shown,
        stands=300.0,
        outdated=outdated_maintenance,
    ),
    CommandKind(
        commands.EVICT,
        role="evictor",
        writer="kubernetes",
        state=topics.SOURCE_TOPICS,
        derived=(topics.ACTIONS, topics.OUTCOMES),
        sink=_eviction_sink,
        decider=_eviction_decider,
        shows=shown.eviction_shown,
        outdated=outdated,
    ),
    CommandKind(
        commands.EVENT,
        role="events",
        writer="events",
        state=(topics.NODES, topics.PODS, topics.HOSTS),
        derived=(topics.NODE_HOSTS, topics.VIOLATIONS, topics.ACTIONS, topics.OUTCOMES),
        sink=_event_sink,
        decider=_waiting_decider,
        evaluator_decides=True,
        lanes=2,
        rests_on_hosts=RestsOnHosts.NEVER,
        must_be_wanted=False,
        frequent=True,
    ),
    CommandKind(
        commands.REPORT,
        role="reporter",
        writer="reports",
        state=(topics.NODES, topics.PODS, topics.WORKLOADS),
        derived=(topics.VIOLATIONS, topics.ACTIONS, topics.OUTCOMES),
        sink=_report_sink,
        decider=_report_decider,
        lanes=8,
        rests_on_hosts=RestsOnHosts.NEVER,
        frequent=True,
    ),
)
COMMANDS: Mapping[str, CommandKind] = {row.name: row for row in _ROWS}
"""Every kind that has a sink, by name; `resume` has none: each worker that watches listens for it itself."""


# ------------------------------------------------------------------------------------------------- what a worker needs
def kinds_of(roles: Collection[str], writers: Writers) -> list[str]:
    """The kinds that a worker of these roles carries out: those whose sink has its writer."""
    return [row.name for row in COMMANDS.values() if row.role in roles and getattr(writers, row.writer) is not None]


def deciders_of(kinds: Iterable[str], parts: DeciderParts) -> list[Decider]:
    """The deciders of these kinds, in the order of the table."""
    wanted = set(kinds)
    return [row.decider(parts) for row in COMMANDS.values() if row.name in wanted and row.decider is not None]


def limits_of(settings: Settings) -> dict[str, int]:
    """Writes a minute by kind, of the sinks that write at all."""
    return {
        row.name: getattr(settings.limits, WRITTEN[row.name].setting)
        for row in COMMANDS.values()
        if row.enabled(settings)
    }


def decided_by(roles: Collection[str]) -> frozenset[str]:
    """The kinds whose decider, or whose evaluator, a worker of these roles has."""
    return frozenset(
        row.name for row in COMMANDS.values() if (EVALUATOR if row.evaluator_decides else row.role) in roles
    )


def host_based(settings: Settings) -> frozenset[str]:
    """The kinds that rest on which host a VM runs on."""
    required = settings.physical_host == "required"
    stopped = {RestsOnHosts.ALWAYS, RestsOnHosts.IF_REQUIRED} if required else {RestsOnHosts.ALWAYS}
    return frozenset(row.name for row in COMMANDS.values() if row.rests_on_hosts in stopped)


def must_be_wanted(roles: Collection[str]) -> frozenset[str]:
    """The kinds that a worker of these roles decides itself, and carries out only while its decisions stand by them."""
    return frozenset(kind for kind in decided_by(roles) if COMMANDS[kind].must_be_wanted)
