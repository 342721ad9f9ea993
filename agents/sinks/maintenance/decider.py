"""Which host has its turn, and what its turn has come to: the decider of maintenance that a person has asked for.

In: snapshots and what the evaluator says of them, plans that are made beside (`moves/planning.py`), what is asked for
(`run.py`), outcomes. Out: `move` and `maintenance` actions. Hosts have their turn wave by wave, so many at a time: the
VMs of the site's nodes move away, then vSphere puts the host into maintenance mode; the next turn begins once it is
out. Before each step the plan is made anew, and the step is checked on the newest picture. What nobody has expected
(`surprises.py`) stops all of it: nothing more is begun, what is under way ends, and an outcome says why.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.order import PlannedMove
from underhost.agents.planner.recheck import Recheck
from underhost.agents.sinks.maintenance import run as states
from underhost.agents.sinks.maintenance.run import MaintenanceRun
from underhost.agents.sinks.maintenance.sink import COULD_NOT, ENTER, EXIT, DesiredMaintenance
from underhost.agents.sinks.maintenance.surprises import Surprises, in_vain, unfit
from underhost.agents.sinks.maintenance.turns import (
    HostTurn,
    not_moved_by_drs,
    others_on,
    standing,
    unfinished,
    vms_on,
    were_not_begun,
)
from underhost.agents.sinks.moves.campaign import ORDERED, Campaigns
from underhost.agents.sinks.moves.moving import LOST, UNSEEN, Moving
from underhost.agents.sinks.moves.planning import PlanMaker
from underhost.agents.sinks.orders import DONE, DRY_RUN, REFUSED, order
from underhost.agents.sinks.own_vms import own_vms
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.maintenance import Chosen, PlannedMaintenance
from underhost.schemas import commands
from underhost.schemas.documents import RepairDone
from underhost.schemas.errors import BadObjectError, InputError
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import CONNECTED, MAINTENANCE
from underhost.streams.derived import rfc3339
from underhost.streams.settings.sinks import MaintenanceSettings

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at a plan that is being made."""
PAUSE = 5.0
"""Seconds before the next plan where the caps let nothing of the last be ordered."""


class MaintenanceDecider(Decider):
    """Gives the hosts of one site their turns.

    Args:
        room: how the hosts' room is counted. evaluator: of the site. plans: makes the plans.
        moving: the vMotions of the site, of which the mover's decider hears what becomes.
        enabled: whether the sink writes: otherwise no VM moves either.
        before: the newest command of each target, and what became of it, in earlier runs.
        clock: seconds since 1970.
    """

    kind = commands.MAINTENANCE

    def __init__(
        self,
        settings: MaintenanceSettings,
        room: Room,
        evaluator: SiteEvaluator,
        plans: PlanMaker[Chosen, PlannedMaintenance],
        moving: Moving,
        campaigns: Campaigns,
        *,
        enabled: bool,
        before: tuple[Iterable[Action], Sequence[Outcome]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._room, self._evaluator, self._plans = settings, room, evaluator, plans
        self._moving, self._campaigns, self._enabled, self._clock = moving, campaigns, enabled, clock
        self._of_before = unfinished(*before, clock())
        self._unsaid: list[tuple[str, DesiredMaintenance]] = []
        self._run: MaintenanceRun | None = None
        self._forget()

    def _forget(self) -> None:
        """What is known of one run alone."""
        self._surprises: Surprises | None = None
        self._turns: dict[str, HostTurn] = {}
        self._left: list[str] | None = None
        self._names: dict[str, tuple[str, str]] = {}
        self._moves: dict[str, tuple[str, float]] = {}
        self._asked: Chosen | None = None
        self._again, self._why = 0.0, ""
        self._plans.forget()

    @property
    def hears(self) -> Collection[str]:
        """See `Decider.hears`."""
        return (commands.MAINTENANCE, commands.MOVE)

    # --------------------------------------------------------------------------------------------------------- deciding
    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """See `Decider.decide`."""
        self.due = None
        run, actions = self._look(), list[Action]()
        if run is not None:
            try:
                actions = self._drive(run, snapshot, now)
            except BadObjectError as error:
                self._why = self._why or f"the site cannot be judged: {error}"
            if self._why:
                self._stop(run, now)
        for ref, said in self._of_before if snapshot.hosts else ():
            self._unsaid.append((ref, said(snapshot)))
            self._of_before = []
        return [*actions, *self._said(snapshot)]

    def stand_still(self, why: str, now: float) -> None:
        """See `Decider.stand_still`: a picture that is too old, or a lease that is another worker's, stops it."""
        run = self._look()
        if run is not None:
            self._why = self._why or f"writes stop: {why}"
            self._stop(run, now)

    def _look(self) -> MaintenanceRun | None:
        """The run that a person has asked for."""
        run = self._campaigns.under_way(MaintenanceRun)
        if run is not self._run:
            self._forget()
            self._run = run
        return run

    def _drive(self, run: MaintenanceRun, snapshot: Snapshot, now: float) -> list[Action]:
        """The next step of all hosts that have their turn; or others have theirs."""
        findings = self._evaluator.update(snapshot).findings
        if self._surprises is None:
            self._surprises = Surprises(findings)
        self._follow(run, snapshot, now)
        self._why = self._why or self._surprises.of(snapshot, findings, self._turns) or self._overdue(now)
        if self._why:
            return []
        actions = [self._take_out(run, turn, snapshot, now) for turn in self._in(states.IN_MODE) if run.terms.out]
        if self._moving.pace.under_way:
            self.wait_until(min(one.at + LOST for one in self._moving.pace.under_way.values()))
        elif emptying := self._in(states.EMPTYING):
            actions += self._empty(run, emptying, snapshot, now)
        elif not self._turns:
            self._begin_turn(run, snapshot, now)
        elif waiting := [turn.name for turn in self._in(states.IN_MODE) if not run.terms.out]:
            run.wait(f"a person or vLCM, to take {', '.join(waiting)} out of maintenance mode")
        return actions

    def _in(self, state: str) -> list[HostTurn]:
        return [turn for turn in self._turns.values() if turn.state == state and turn.shown is None]

    def _follow(self, run: MaintenanceRun, snapshot: Snapshot, now: float) -> None:
        """What the picture shows of hosts whose mode was changed."""
        for turn in list(self._turns.values()):
            state = snapshot.hosts[turn.ref].state if turn.ref in snapshot.hosts else ""
            if turn.shown is not None and state == (MAINTENANCE if turn.state == states.IN_MODE else CONNECTED):
                turn.shown = None
            if turn.shown is not None:
                self.wait_until(turn.shown + UNSEEN)
            elif turn.state in (states.IN_MODE, states.HAD) and state == CONNECTED:
                run.host(turn.name, states.HAD)
                del self._turns[turn.ref]

    def _overdue(self, now: float) -> str:
        """What nobody has answered, or no picture shown; "" where there is no such thing."""
        for turn in self._turns.values():
            if turn.shown is not None and now - turn.shown >= UNSEEN:
                return f"no inventory shows the mode that host {turn.name} was brought into"
            if turn.id and now - turn.at >= 2 * LOST:
                return f"nobody has said what became of host {turn.name}"
        lost = [name for name, at in self._moves.values() if now - at >= LOST]
        return f"nobody has said what became of the vMotion of VM {lost[0]}" if lost else ""

    # ------------------------------------------------------------------------------------------------------------ plans
    def _planned(self, asked: Chosen, snapshot: Snapshot, now: float) -> PlannedMaintenance | None:
        """The plan for these hosts, as the site is now; None while it is being made, or cannot be."""
        if self._again > now:
            self.wait_until(self._again)
            return None
        if not self._plans.is_busy or asked != self._asked:
            self._plans.begin(snapshot, asked)
            self._asked = asked
        try:
            plan = self._plans.take()
        except (BadObjectError, InputError) as error:
            self._why = f"no plan can be made: {error}"
            return None
        except Exception as error:
            log.exception("a maintenance could not be planned")
            self._why = f"no plan can be made: {type(error).__name__}: {error}"
            return None
        if plan is None:
            self.wait_until(now + LOOK)
            return None
        self._why = unfit(plan)
        return None if self._why else plan

    def _begin_turn(self, run: MaintenanceRun, snapshot: Snapshot, now: float) -> None:
        """The next hosts have their turn, or all had it."""
        if self._left == []:
            run.end()
            return
        most = self._settings.max_hosts
        chosen = run.terms.chosen
        at_once = min(chosen.at_once or most, most)
        if self._left is not None:
            chosen = Chosen(hosts=tuple(self._left))
        plan = self._planned(Chosen(chosen.all, chosen.clusters, chosen.hosts, at_once), snapshot, now)
        if plan is None:
            return
        refs = [ref for wave in plan.waves for ref in wave.hosts]
        if self._left is None:
            self._names = {ref: (snapshot.hosts[ref].name, snapshot.hosts[ref].cluster) for ref in refs}
            run.plan(self._names[ref][0] for ref in refs)
            assert self._surprises is not None
            self._surprises.watch(snapshot, {cluster for _, cluster in self._names.values()})
        first = plan.waves[0].hosts[:most] if plan.waves else ()
        self._left = [ref for ref in refs if ref not in first]
        for ref in first:
            name, cluster = self._names[ref]
            here = vms_on(snapshot, ref)
            self._why = self._why or not_moved_by_drs(snapshot, name, cluster, here)
            self._turns[ref] = HostTurn(ref, name, cluster, frozenset(here), states.EMPTYING, now)
            run.host(name, states.EMPTYING)
        self.wait_until(now)

    def _empty(self, run: MaintenanceRun, turns: Sequence[HostTurn], snapshot: Snapshot, now: float) -> list[Action]:
        """The vMotions of these hosts, as many as may be at a time; those that are empty enter maintenance mode."""
        if not self._enabled:
            return [self._enter(run, turn, snapshot, now) for turn in turns]
        plan = self._planned(Chosen(hosts=tuple(turn.ref for turn in turns)), snapshot, now)
        if plan is None:
            return []
        wave = plan.waves[0] if plan.waves else None
        if wave is None or set(wave.hosts) != {turn.ref for turn in turns}:
            names = ", ".join(turn.name for turn in turns)
            self._why = f"the plan is not valid any more: {names} cannot be emptied at a time"
            return []
        own = own_vms(snapshot)
        moves = {turn.ref: self._moves_of(turn, wave.moves, own, snapshot) for turn in turns}
        if not self._why:
            self._why = self._recheck([move for each in moves.values() for move in each], snapshot)
        if self._why:
            return []
        actions = [self._enter(run, turn, snapshot, now) for turn in turns if not moves[turn.ref]]
        return actions + self._order(run, [move for each in moves.values() for move in each], snapshot, now)

    def _moves_of(
        self, turn: HostTurn, targets: Mapping[str, str], own: Collection[str], snapshot: Snapshot
    ) -> list[PlannedMove]:
        """The moves of the plan that empty this host."""
        here, moves = vms_on(snapshot, turn.ref), list[PlannedMove]()
        self._why = self._why or not_moved_by_drs(snapshot, turn.name, turn.cluster, here)
        for ref in sorted(here.keys() & own):
            to = targets.get(ref)
            if to is None or to not in snapshot.hosts:
                self._why = self._why or f"VM {here[ref].name} on host {turn.name} has no place in the plan"
                continue
            host = snapshot.hosts[to].name
            moves.append(PlannedMove(ref, here[ref].name, turn.cluster, turn.ref, turn.name, to, host, 1, []))
        return moves

    def _recheck(self, moves: Sequence[PlannedMove], snapshot: Snapshot) -> str:
        """Why one of the moves is not taken now: room, rules of vSphere's or of pods', quorums; "" where all are."""
        recheck = Recheck(snapshot, self._evaluator, self._room)
        for move in moves:
            if why := recheck.why_not(move):
                return f"VM {move.name} is not moved from host {move.from_name} to host {move.to_name}: {why}"
        return ""

    # -------------------------------------------------------------------------------------------------- what is ordered
    def _order(self, run: MaintenanceRun, moves: Sequence[PlannedMove], snapshot: Snapshot, now: float) -> list[Action]:
        """As many of the moves as the caps admit."""
        pace, actions = self._moving.pace, list[Action]()
        for move in moves:
            if pace.room_at(now) > now or not pace.admits(move.cluster, (move.from_, move.to)):
                continue
            because = f"host {move.from_name} is emptied for its maintenance"
            action = self._moving.begin(move, because, snapshot, now)
            self._moves[action.id] = move.name, now
            run.order(RepairDone(action.id, commands.MOVE, move.from_name, move.to_name, ORDERED, vm=move.name))
            actions.append(action)
        if moves and not actions:
            self._again = max(now + PAUSE, pace.room_at(now))
            run.wait("the vMotions of the last minute")
            self.wait_until(self._again)
        return actions

    def _enter(self, run: MaintenanceRun, turn: HostTurn, snapshot: Snapshot, now: float) -> Action:
        """The host is put into maintenance mode."""
        turn.state = states.ENTERING
        run.host(turn.name, turn.state)
        return self._change(run, turn, ENTER, snapshot, now)

    def _take_out(self, run: MaintenanceRun, turn: HostTurn, snapshot: Snapshot, now: float) -> Action:
        """The host is taken out of maintenance mode."""
        turn.state = states.LEAVING
        run.host(turn.name, turn.state)
        return self._change(run, turn, EXIT, snapshot, now)

    def _change(self, run: MaintenanceRun, turn: HostTurn, mode: str, snapshot: Snapshot, now: float) -> Action:
        desired = DesiredMaintenance(
            name=turn.name,
            cluster=turn.cluster,
            mode=mode,
            others=others_on(snapshot, turn.ref) if mode == ENTER else [],
            out=run.terms.out,
            then=[self._names[ref][0] for ref in self._left or ()],
            at=rfc3339(self._clock()),
        )
        action = self._action(turn.ref, desired, "a person has asked for the maintenance of this host", snapshot)
        turn.id, turn.at = action.id, now
        return action

    def _action(self, ref: str, desired: DesiredMaintenance, because: str, snapshot: Snapshot) -> Action:
        return order(self.kind, f"host/{ref}", msgspec.to_builtins(desired), because, snapshot.offsets)

    # ------------------------------------------------------------------------------------------------ what became of it
    def observe(self, outcome: Outcome, now: float) -> None:
        """See `Decider.observe`."""
        run = self._run
        if run is None or run.is_over:
            return
        if outcome.kind == commands.MOVE:
            name, _ = self._moves.pop(outcome.id, ("", 0.0))
            run.say(outcome.id, outcome.result, outcome.reason)
            if name and outcome.result not in DONE:
                self._why = self._why or in_vain(f"VM {name}", outcome)
            return
        turn = next((turn for turn in self._turns.values() if turn.id == outcome.id), None)
        if turn is None:
            return
        turn.id = ""
        if outcome.result in DONE:
            turn.state = states.IN_MODE if turn.state == states.ENTERING else states.HAD
            turn.shown = now
            run.host(turn.name, states.IN_MODE if turn.state == states.IN_MODE else states.LEAVING)
            return
        if outcome.result in (DRY_RUN, REFUSED) or outcome.reason.startswith(COULD_NOT):
            turn.state = states.EMPTYING if turn.state == states.ENTERING else states.IN_MODE
            run.host(turn.name, turn.state)
        self._why = self._why or in_vain(f"host {turn.name}", outcome)

    # ---------------------------------------------------------------------------------------------------------- its end
    def _stop(self, run: MaintenanceRun, now: float) -> None:
        """Nothing more is begun; once what is under way has ended, it is said why, and how things stand."""
        self._plans.forget()
        lost = bool(self._overdue(now))
        if not lost and (self._moves or any(turn.id for turn in self._turns.values())):
            run.wait(f"what is under way, and then stops: {self._why}")
            return
        left = [self._names[ref][0] for ref in self._left or ()]
        why = "; ".join([self._why, *standing(self._turns.values()), *([were_not_begun(left)] if left else [])])
        run.end(why)
        refs = [*self._turns, *(self._left or ())]
        if refs:
            name, cluster = self._names[refs[0]]
            self._unsaid.append((refs[0], DesiredMaintenance(name=name, cluster=cluster, refuse=why)))
            self.wait_until(now)

    def _said(self, snapshot: Snapshot) -> list[Action]:
        """Commands that the sink refuses, so that an outcome says why a run has stopped."""
        unsaid, self._unsaid = self._unsaid, []
        at = rfc3339(self._clock())
        return [
            self._action(ref, msgspec.structs.replace(desired, at=at), desired.refuse, snapshot)
            for ref, desired in unsaid
        ]
