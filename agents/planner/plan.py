"""The repair of a site: the fewest moves that leave nothing broken, in an order that is never worse than now.

In: a snapshot, options, and what is asked. Out: a `RepairPlan`. Nothing is written anywhere. vMotions come first, as
they disturb no pod; then evictions for what they cannot end. Each step is tried on the site, and judged by the same
evaluator as everything else: what breaks something is no way out, and the plan is made again without it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from underhost.agents.affinity.followed import asked_of, followed
from underhost.agents.compiled.model import Model
from underhost.agents.drs.vm_graph import Concerns
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.assignment import Goal
from underhost.agents.planner.evicting import Evicted, Evictions, plan_evictions
from underhost.agents.planner.fleet import VmCluster, fleets_of
from underhost.agents.planner.goals import Goals
from underhost.agents.planner.moves import ClusterMoves, Cost, plan_moves
from underhost.agents.planner.order import PlannedMove, VMotion, in_waves
from underhost.agents.planner.reasons import NO_ORDER, Explainer
from underhost.agents.planner.replay import Replay, Replayed, subjects
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.repair.evictable import why_never
from underhost.agents.schedule.progress import told
from underhost.agents.site.not_judged import counted, not_judged
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import NotJudged, RepairCost, RepairPlan, RepairStep, Report, Unrepairable
from underhost.schemas.records import Finding

VMOTION, EVICT = "vmotion", "evict"
AGAIN = 20
"""How often the moves of a cluster are planned again because the evaluator refuses a step."""
EXPLAINED = 50
"""Findings that stay and are explained to the last fact; of the others it is told what keeps them in a few words."""


class Planned(NamedTuple):
    """A plan, and its vMotions as they are carried out."""

    document: RepairPlan
    moves: list[PlannedMove]


def repair(
    snapshot: Snapshot, options: Options, asked: RepairTerms | None = None, evaluator: Evaluator | None = None
) -> RepairPlan:
    """The plan. Raises InputError for a finding or a namespace that is not there, BadObjectError."""
    return planned(snapshot, options, asked, evaluator).document


def planned(
    snapshot: Snapshot, options: Options, asked: RepairTerms | None = None, evaluator: Evaluator | None = None
) -> Planned:
    """The plan with what carries it out. Raises as `repair`."""
    return _Repair(snapshot, evaluator or Evaluator(options), asked or RepairTerms()).plan()


class _Repair:
    def __init__(self, snapshot: Snapshot, evaluator: Evaluator, asked: RepairTerms) -> None:
        asked.check(snapshot)
        self._whole, self._evaluator, self._asked = snapshot, evaluator, asked
        self._replay = Replay(snapshot, evaluator)
        self._snapshot = self._replay.start
        self._before = evaluator.update(self._snapshot)
        self._findings = asked.wanted(self._before.findings)
        model = evaluator.state(self._snapshot).model
        asked_by_all = asked_of(model)
        binding = followed(model, asked_by_all)
        concerns = Concerns(model, *binding)
        self._fleets = self._polite = self._fleets_of(model, concerns)
        running, concerned = model.running, concerns.classes
        self._holding = {pod for pod, at in running.at.items() if concerned[running.class_at[at]]}
        if asked_by_all != binding:
            self._polite = self._fleets_of(model, Concerns(model, *asked_by_all))
        self._goals = Goals(self._snapshot, model, self._fleets)
        self._of_fleet, self._others = self._goals.of(self._findings)
        self._beyond = [one for one in self._others if not self._goals.might_end(one)]

    def plan(self) -> Planned:
        """See `planned`."""
        now = Replayed(self._snapshot, self._before, None)
        moved: dict[int, ClusterMoves] = {}
        for at in sorted(self._of_fleet):
            used = sum(len(one.steps) for one in moved.values())
            most = None if self._asked.most_vmotions is None else self._asked.most_vmotions - used
            moved[at], now = self._moves(at, now.snapshot, most)
        evictions = self._evict(now)
        after = now.report if not evictions.steps else self._evaluator.update(evictions.snapshot)
        every = chain.from_iterable(self._of(at, one) for at, one in moved.items())
        moves = sorted(every, key=lambda move: move.wave)
        return Planned(self._document(moved, _steps(moves, evictions.steps), evictions, after), moves)

    def _fleets_of(self, model: Model, concerns: Concerns) -> list[VmCluster]:
        found = fleets_of(self._snapshot, model, self._asked.room, concerns)
        return [fleet.holding(self._asked.held) for fleet in found]

    def _moves(self, at: int, snapshot: Snapshot, most: int | None) -> tuple[ClusterMoves, Replayed]:
        """The moves of one cluster: of equally cheap ones those that break nobody's rule, however far it reaches."""
        fleet, goals = self._fleets[at], self._of_fleet[at]
        cheapest = self._passing(fleet, goals, snapshot, most)
        if self._polite is self._fleets:
            return cheapest
        polite = self._passing(self._polite[at], goals, snapshot, most)
        return polite if polite[0].cost.key == cheapest[0].cost.key else cheapest

    def _passing(
        self, fleet: VmCluster, goals: Sequence[Goal], snapshot: Snapshot, most: int | None
    ) -> tuple[ClusterMoves, Replayed]:
        """The moves that the evaluator lets pass."""
        barred = fleet.places(self._asked.barred)
        bound: Cost | None = None
        for _ in range(AGAIN):
            found = plan_moves(fleet, goals, barred, most)
            bound = bound or found.bound  # what the evaluator refuses now, it may let pass once pods have gone
            steps = in_waves(fleet, fleet.at, found.steps)
            tried = self._replay.of(snapshot, fleet, steps)
            if tried.broken is None:
                return ClusterMoves(steps, found.cost, bound, found.proven and not barred), tried
            barred.add(tried.broken)
        unmet = Cost(unmet=len(goals))
        return ClusterMoves([], unmet, Cost(), proven=False), self._replay.of(snapshot, fleet, [])

    def _evict(self, now: Replayed) -> Evictions:
        """Evictions for what is left; the site with its claims, where it has some, as they say where pods may go."""
        left = self._left(now.report)
        snapshot = now.snapshot
        if self._whole is not self._snapshot:
            snapshot = replace(snapshot, claims=self._whole.claims)
        if self._asked.evictions is None or not left:
            return Evictions(snapshot=snapshot)
        report = self._evaluator.update(snapshot)
        return plan_evictions(snapshot, report, self._evaluator, self._left(report), self._asked.evictions)

    def _left(self, report: Report) -> list[Finding]:
        """What shall end, and has not: a finding that has lost some of its pods may have another id now."""
        wanted: defaultdict[tuple[str, str, str | None], set[str]] = defaultdict(set)
        for one in self._findings:
            wanted[one.severity, one.rule, one.source] |= subjects(one)
        return [
            one
            for one in report.findings
            if not wanted.get((one.severity, one.rule, one.source), set()).isdisjoint(subjects(one))
        ]

    # -------------------------------------------------------------------------------------------------- the document
    def _document(
        self, moved: Mapping[int, ClusterMoves], steps: list[RepairStep], evictions: Evictions, after: Report
    ) -> RepairPlan:
        known = {one.id for one in after.findings}
        before = {one.id for one in self._before.findings}
        left = self._left(after)
        cost = RepairCost(
            findings_left=len(left),
            evictions=len(evictions.steps),
            vmotions=sum(len(one.steps) for one in moved.values()),
            memory_mib=self._copied(moved),
        )
        bound = self._bound([one.bound for one in moved.values()], cost)
        return RepairPlan(
            steps=steps,
            objective=cost,
            lower_bound=bound,
            unrepairable=self._unrepairable(left, moved, evictions),
            resolved_findings=[one for one in self._before.findings if one.id not in known],
            new_findings=[one for one in after.findings if one.id not in before],
            left_findings=left,
            optimal=(cost.findings_left, cost.evictions) == (bound.findings_left, bound.evictions)
            and all(one.proven for one in moved.values())
            and not (cost.vmotions and self._spares_moves()),
            not_judged=[*not_judged(self._whole), *self._without_room()],
        )

    def _bound(self, bounds: Sequence[Cost], cost: RepairCost) -> RepairCost:
        """No plan costs less.

        A finding of which no pod may ever be evicted stays unless vMotions end it; one that they cannot end takes an
        eviction, unless it shares a pod with another. One that they might end though none is planned for it costs
        nothing here; and those that other pods' leaving may end, too, are ended by one eviction, for all we know.
        """
        own = [one for one in self._beyond if self._goals.ends_by_its_pods(one)]
        others = len(self._beyond) - len(own)
        able = any(map(self._evictable, self._findings))
        never = sum(not self._evictable(one) for one in own) + (0 if able else others)
        unmet = 0 if self._free_vms(self._findings) else sum(one.unmet for one in bounds)
        seen: set[str] = set()
        evictions = 0
        for finding in filter(self._evictable, own):
            pods = subjects(finding)
            evictions += seen.isdisjoint(pods)
            seen |= pods
        if self._spares_moves():
            bounds = ()
        return RepairCost(
            findings_left=min(cost.findings_left, never + unmet),
            evictions=min(cost.evictions, max(evictions, int(able and others > 0))),
            vmotions=min(cost.vmotions, sum(one.vmotions for one in bounds)),
            memory_mib=min(cost.memory_mib, sum(one.memory for one in bounds)),
        )

    def _spares_moves(self) -> bool:
        """Whether an eviction that there must be might do instead of vMotions, which are planned first."""
        theirs = all(map(self._goals.ends_by_its_pods, self._beyond))
        return bool(self._beyond) and self._free_vms(self._beyond if theirs else self._findings)

    def _free_vms(self, findings: Iterable[Finding]) -> bool:
        """Whether some of the pods of these may be evicted and are what VMs are moved for, or held by."""
        going = {pod for one in findings for pod in self._evictable(one)}
        parted = {pod for one in self._findings if one not in self._others for pod in subjects(one)}
        return not going.isdisjoint(self._holding | parted)

    def _evictable(self, finding: Finding) -> set[str]:
        """Those of its pods that may be evicted at all, wherever the next one would go."""
        terms, pods = self._asked.evictions, self._whole.pods
        if terms is None:
            return set()
        return {pod for pod in subjects(finding) if pod in pods and why_never(self._whole, pods[pod], terms) is None}

    def _of(self, at: int, moved: ClusterMoves) -> list[PlannedMove]:
        fleet, goals = self._fleets[at], self._of_fleet[at]
        return [
            PlannedMove(
                fleet.vms[step.vm].ref,
                fleet.vms[step.vm].name,
                fleet.name,
                fleet.hosts[step.from_].ref,
                fleet.hosts[step.from_].name,
                fleet.hosts[step.to].ref,
                fleet.hosts[step.to].name,
                step.wave,
                _because(step, moved.steps, goals),
            )
            for step in moved.steps
        ]

    def _unrepairable(
        self, left: Sequence[Finding], moved: Mapping[int, ClusterMoves], evictions: Evictions
    ) -> list[Unrepairable]:
        goal_of = {goal.finding: (at, goal) for at, goals in self._of_fleet.items() for goal in goals}
        if left:
            self._evaluator.state(self._snapshot)  # the model that the words are taken from is of the beginning again
        found = []
        for number, finding in enumerate(told("explaining what stays", left)):
            conflict: list[str] = []
            helps: list[str] = []
            place = goal_of.get(finding.id) or self._goal_about(finding, goal_of)
            if place is not None and number < EXPLAINED:
                at, goal = place
                fleet, steps = self._fleets[at], moved[at].steps
                final = list(fleet.at)
                for step in steps:
                    final[step.vm] = step.to
                met = [one for one in self._of_fleet[at] if one.met(fleet.at, final)]
                conflict, helps = Explainer(fleet, met, self._goals).why(goal)
            if self._asked.most_vmotions is not None and conflict in ([], [NO_ORDER]) and place is not None:
                conflict, helps = [f"no more than {self._asked.most_vmotions} vMotions are asked for"], []
            if whose := self._goals.why_left(finding):
                conflict, helps = [whose], []
            why = evictions.why.get(finding.id, {})
            conflict += [f"{pod} cannot be evicted: {reason}" for pod, reason in sorted(why.items())]
            if self._asked.evictions is None and not whose:
                conflict.append("no evictions are asked for")
            found.append(Unrepairable(finding.id, conflict, helps))
        return found

    def _goal_about(self, finding: Finding, goal_of: Mapping[str, tuple[int, Goal]]) -> tuple[int, Goal] | None:
        """The goal of the finding that this one was a part of."""
        about = subjects(finding)
        for one in self._findings:
            if one.id in goal_of and one.rule == finding.rule and about <= subjects(one):
                return goal_of[one.id]
        return None

    def _copied(self, moved: Mapping[int, ClusterMoves]) -> int:
        """MiB that the vMotions copy; 0 where it is not known of each."""
        sizes = [self._fleets[at].size[step.vm] for at, one in moved.items() for step in one.steps]
        return sum(sizes) if all(sizes) else 0

    def _without_room(self) -> list[NotJudged]:
        """Hosts that do not say what they have: they take anything; VMs that do not say what they need go anywhere."""
        fleets = [self._fleets[at] for at in self._of_fleet]
        silent = sum(not host.memory_mib for fleet in fleets for host in fleet.hosts)
        counting = [fleet for fleet in fleets if any(host.memory_mib for host in fleet.hosts)]
        unsized = 0 if self._asked.room.reserved else sum(not size for fleet in counting for size in fleet.size)
        found = [
            (silent, f"the room of {counted(silent, 'host')}"),
            (unsized, f"the memory of {counted(unsized, 'VM')}"),
        ]
        return [NotJudged(what, "the inventory does not say it") for count, what in found if count]


def _steps(moves: Sequence[PlannedMove], evicted: Sequence[Evicted]) -> list[RepairStep]:
    """vMotions of all clusters side by side, then evictions."""
    last = max((move.wave for move in moves), default=0)
    found = [
        RepairStep(0, move.wave, VMOTION, move.from_name, move.to_name, move.because, vm=move.name) for move in moves
    ]
    for one in sorted(evicted, key=lambda one: one.wave):
        found.append(RepairStep(0, last + one.wave, EVICT, one.from_, one.to, [one.because], pod=one.pod))
    for number, step in enumerate(found, 1):
        step.step = number
    return found


def _because(step: VMotion, steps: Sequence[VMotion], goals: Sequence[Goal]) -> list[str]:
    """The findings that a step is for: its own VM's, or those of the VM that it makes way for."""
    own = [goal.finding for goal in goals if step.vm in goal.vms]
    if own:
        return sorted(own)
    served = {other.vm for other in steps if other.to == step.from_}
    return sorted(goal.finding for goal in goals if served & goal.vms) or sorted(goal.finding for goal in goals)
