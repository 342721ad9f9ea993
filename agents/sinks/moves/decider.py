"""Which vMotions are due: the decider of the mover.

In: snapshots and what the evaluator says of them, plans that are made beside (`planning.py`), what people ask for
(`campaign.py`); the commands of earlier runs. Out: `move` actions. A plan is made once findings have stood for a while,
or at once where a person asks; its first wave is ordered, each move re-checked against the newest picture and within
the caps (`pace.py`); once all of that is over the plan is made anew. What vMotions do not end is left to the evictor; a
VM whose moves are in vain is left to a person (`vain.py`), and one that DRS is about to move to DRS (`drs_turn.py`).
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.planner.order import PlannedMove
from underhost.agents.planner.recheck import Recheck
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import ORDERED, Campaign, Campaigns
from underhost.agents.sinks.moves.drs_turn import DrsTurn
from underhost.agents.sinks.moves.moving import LOST, Moving
from underhost.agents.sinks.moves.once_more import as_planned, is_unknown
from underhost.agents.sinks.moves.pace import MoveUnderWay
from underhost.agents.sinks.moves.planning import PlanMaker
from underhost.agents.sinks.moves.shares import MoveShares
from underhost.agents.sinks.moves.sink import VAIN
from underhost.agents.sinks.moves.vain import desired_move
from underhost.agents.sinks.orders import DONE, DRY_RUN, REFUSED, UNANSWERED, order, seconds_of
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import EVICT, MOVE
from underhost.schemas.documents import RepairDone, RepairPlan, Unrepairable
from underhost.schemas.errors import BadObjectError, InputError
from underhost.schemas.records import Action, Finding, Outcome
from underhost.schemas.shares import Capped, Shares
from underhost.streams.derived import rfc3339
from underhost.streams.settings.sinks import MoveSettings

if TYPE_CHECKING:
    from underhost.agents.planner.plan import Planned

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at a plan that is being made."""
PAUSE = 5.0
"""Seconds before the next plan where nothing of the last could be ordered."""
AGAIN = 60.0
"""Seconds after which findings that no vMotion ends are planned for again; what is new is planned for at once."""
REST = 4.0
"""Seconds of rest after each second of a processor that a plan has cost, unless a person asks: whoever breaks rules
again and again costs the worker no more than a fifth of the interpreter's time."""
FRESH = 300.0
"""Seconds for which a command of an earlier run may be ordered once more."""
IN_A_ROW, TROUBLE = 3, 600.0
"""Moves in vain without one that succeeds, after which no VM is moved for so many seconds."""
DRY = "sinks.moves is off: this was a dry run"
STALLED = 900.0
"""Seconds after which a repair that a person has asked for, and that comes no further, ends."""


class MoveDecider(Decider):
    """Orders vMotions for one site.

    Attributes:
        moving: the vMotions of the site, whoever orders them.

    Args:
        terms: what is repaired by itself. evaluator: of the site. plans: makes the plans.
        enabled: whether the sink writes: otherwise nothing is planned but what a person asks for.
        drs: whose turn it is; None where no DRS rule of ours is written.
        share: vMotions of one namespace in an hour.
        earlier, outcomes: the newest command of each target, and what became of it, in earlier runs.
        now: monotonic seconds. clock: seconds since 1970.
    """

    kind = MOVE

    def __init__(
        self,
        settings: MoveSettings,
        terms: RepairTerms,
        evaluator: SiteEvaluator,
        plans: "PlanMaker[RepairTerms, Planned]",
        *,
        enabled: bool,
        campaigns: Campaigns,
        drs: DrsTurn | None = None,
        share: int = Shares().moves,
        earlier: Iterable[Action],
        outcomes: Sequence[Outcome],
        now: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._terms, self._evaluator, self._plans = settings, terms, evaluator, plans
        self._automatic = enabled and settings.automatic
        self._campaigns, self._drs, self._clock = campaigns, drs, clock
        earlier = [action for action in earlier if action.kind == MOVE]
        self.moving = Moving(settings, clock, earlier, outcomes)
        self._pace, self._vain, self._unknown = self.moving.pace, self.moving.vain, self.moving.unknown
        self._vain.remember(earlier, outcomes, now, clock())
        self._shares = MoveShares(share)
        self._shares.remember(earlier, now, clock())
        self._since: dict[str, float] = {}
        self._thought: frozenset[str] = frozenset()
        self._again = self._trouble = self._rested = 0.0
        self._in_a_row = 0
        self._campaign: Campaign | None = None
        self._stirred = 0.0
        self._through: frozenset[str] | None = frozenset() if self._automatic else None
        self._evicting: frozenset[str] = frozenset()
        self._left: list[Finding] = []
        self._is_dry = False

    @property
    def hears(self) -> Collection[str]:
        """See `Decider.hears`."""
        return (MOVE, EVICT)

    @property
    def capped(self) -> Sequence[Capped]:
        """See `Decider.capped`."""
        return self._shares.capped

    # ------------------------------------------------------------------------------------------- what the evictor asks
    def leaves(self, finding: Finding) -> bool:
        """Whether a finding is left to the evictor: no vMotion ends it, or none is made for it here."""
        return self._through is None or finding.id in self._through or not self._terms.wants(finding)

    def hurries(self, finding: str) -> bool:
        """Whether a person has asked for the eviction that ends the finding."""
        return finding in self._evicting

    # --------------------------------------------------------------------------------------------------------- deciding
    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """See `Decider.decide`."""
        self.due = None
        if not snapshot.vsphere:
            return []
        try:
            return [*self._once_more(snapshot, now), *self._decide(snapshot, now)]
        except BadObjectError:
            return []  # nothing is moved where the rules cannot be judged; the evaluator says why they cannot

    def _decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        if self.moving.settle(snapshot, now):
            self._again = 0.0
        if self._campaigns.others(Campaign):
            self._rest(frozenset() if self._automatic else None)  # whose moves these are: nobody else's, meanwhile
            self._is_dry = False
            return []
        campaign = self._look_for_campaign(now)
        if campaign is None and not self._automatic:
            self._rest(None)
            return []
        wanted = self._left = self._wanted(campaign, snapshot, now)
        if self._pace.under_way:
            self._through = frozenset()
            self.wait_until(self._unknown.due)
            self.wait_until(min(one.at + LOST for one in self._pace.under_way.values()))
            return []
        if campaign is not None and (self._is_dry or not wanted):
            campaign.end(wanted, DRY if self._is_dry else "")
            self._is_dry, wanted = False, []
        if not wanted:
            self._rest(frozenset() if self._automatic else None)
            self.wait_until(self._shares.room_at(now))
            return []
        return self._plan(campaign, snapshot, wanted, now)

    def _plan(
        self, campaign: Campaign | None, snapshot: Snapshot, wanted: Sequence[Finding], now: float
    ) -> list[Action]:
        """Orders of a plan that is made; or it is begun, where that is due."""
        if self._trouble > now:
            if campaign is not None:
                campaign.end(wanted, f"{IN_A_ROW} moves in a row were in vain")
            self.wait_until(self._trouble)
            return []
        ids = frozenset(finding.id for finding in wanted)
        if not self._plans.is_busy:
            if now < self._again and ids <= self._thought and (campaign is None or ids == self._thought):
                self.wait_until(self._again)
                return []
            if campaign is None and now < self._rested:
                self.wait_until(self._rested)
                return []
            self._thought = ids
            self._plans.begin(snapshot, self._asked(campaign, now))
        try:
            plan = self._plans.take()
        except (BadObjectError, InputError) as error:
            return self._without_plan(campaign, wanted, str(error), now)
        except Exception as error:
            log.exception("a repair could not be planned")
            return self._without_plan(campaign, wanted, f"{type(error).__name__}: {error}", now)
        if plan is None:
            self.wait_until(now + LOOK)
            return []
        self._again, self._rested = now + AGAIN, now + REST * self._plans.took
        if plan.moves:
            self._through = self._evicting = frozenset()
            return self._order(campaign, plan.moves, snapshot, now)
        self._through, self._evicting = self._thought, frozenset()
        if campaign is not None and ids != self._thought:
            self._again = now  # it was made of another picture
        elif campaign is not None:
            self._leave(campaign, plan.document, now)
        self.wait_until(max(self._again, now + LOOK))
        return self.moving.refusals(snapshot)

    def _asked(self, campaign: Campaign | None, now: float) -> RepairTerms:
        terms = replace(self._terms, spared=self._shares.spared) if campaign is None else campaign.terms
        if campaign is not None and terms.most_vmotions is not None:
            terms = replace(terms, most_vmotions=max(0, terms.most_vmotions - campaign.moved))
        if campaign is not None and terms.evictions is not None:
            terms = replace(terms, evictions=self._terms.evictions)
        return replace(terms, held=self._vain.held(now), barred=self._vain.barred(now))

    def _without_plan(self, campaign: Campaign | None, wanted: Sequence[Finding], why: str, now: float) -> list[Action]:
        """Nothing is moved, and the evictor goes on as if nobody moved VMs."""
        self._again, self._through = now + AGAIN, None
        self._rested = now + REST * self._plans.took
        if campaign is not None:
            campaign.end(wanted, f"no plan could be made: {why}")
        self.wait_until(self._again)
        return []

    def _rest(self, through: frozenset[str] | None) -> None:
        """There is nothing to do."""
        self._plans.forget()
        self._through, self._evicting, self._thought = through, frozenset(), frozenset()

    def _wanted(self, campaign: Campaign | None, snapshot: Snapshot, now: float) -> list[Finding]:
        """The findings that are to end now."""
        terms = self._terms if campaign is None else campaign.terms
        found = [one for one in self._evaluator.update(snapshot).findings if terms.wants(one)]
        self._since = {one.id: self._since.get(one.id, now) for one in found}
        if campaign is not None:
            return found
        ripe = {id_: since + self._settings.wait for id_, since in self._since.items()}
        for at in ripe.values():
            if at > now:
                self.wait_until(at)
        return self._shares.left(found, (one for one in found if ripe[one.id] <= now), now)

    # -------------------------------------------------------------------------------------------------- what is ordered
    def _order(
        self, campaign: Campaign | None, moves: Sequence[PlannedMove], snapshot: Snapshot, now: float
    ) -> list[Action]:
        """The moves of the first wave, as far as they are still right and within the caps."""
        free = self._pace.room_at(now)
        if free > now:
            self._again = free
            self.wait_until(free)
            if campaign is not None:
                campaign.wait("the vMotions of the last minute")
            return []
        first = self._shares.in_turn(move for move in moves if move.wave == 1)
        theirs = {} if self._drs is None else self._drs.until(snapshot, [move.vm for move in first], now)
        recheck = Recheck(snapshot, self._evaluator, self._terms.room if campaign is None else campaign.terms.room)
        actions: list[Action] = []
        for move in first:
            if move.vm in theirs or self._pace.room_at(now) > now:
                continue
            if campaign is None and not self._shares.admits(move, now):
                continue
            if not self._pace.admits(move.cluster, (move.from_, move.to)) or self._vain.undone(
                move.vm, move.from_, now
            ):
                continue
            if why := recheck.why_not(move):
                log.info("a move of a plan is not made: %s", why)
                continue
            actions.append(self._begin(campaign, move, snapshot, now))
        if not actions:
            self._again = min(theirs.values(), default=now + PAUSE)
            if campaign is not None:
                campaign.wait("DRS, which is to move VMs for a rule of ours" if theirs else "another plan")
            self.wait_until(self._again)
        return actions

    def _begin(self, campaign: Campaign | None, move: PlannedMove, snapshot: Snapshot, now: float) -> Action:
        because = f"the fewest moves that leave nothing broken: findings {', '.join(move.because)}"
        whose = self._shares.namespaces_of(move) if campaign is None else []
        action = self.moving.begin(move, because, snapshot, now, whose)
        self._shares.begin(whose, now)
        self._stirred = now
        if campaign is not None:
            campaign.order(RepairDone(action.id, MOVE, move.from_name, move.to_name, ORDERED, vm=move.name))
        return action

    def _once_more(self, snapshot: Snapshot, now: float) -> list[Action]:
        """The commands whose end nobody knows. What is not right any more is followed: vCenter may have begun it."""
        actions: list[Action] = []
        recheck: Recheck | None = None
        for before in self._unknown.take(now):
            desired, vm = desired_move(before), before.target.partition("/")[2]
            if desired is None or desired.refuse:
                continue
            age, one = self._clock() - seconds_of(desired.at), self._pace.under_way.get(vm)
            if one is None and age >= LOST:
                continue  # no vMotion takes that long; one of this run is not judged by a clock that may be set
            is_right = bool(desired.because) and age <= FRESH
            if is_right:
                terms = self._terms if self._campaign is None else self._campaign.terms
                recheck = recheck or Recheck(snapshot, self._evaluator, terms.room)
                is_right = not recheck.why_not(as_planned(vm, desired))
            asked = before.desired if is_right else {**before.desired, "follow": rfc3339(self._clock())}
            action = order(MOVE, before.target, asked, before.because, snapshot.offsets)
            if one is None:
                where, repairs = (desired.cluster, desired.from_, desired.to), bool(desired.because)
                one = MoveUnderWay(before, [before.id], vm, *where, now, repairs=repairs)
                self._pace.begin(one)
                # Of an earlier run, whose command may stand for this one, and may never be answered.
                self._unknown.wait(before, now + UNANSWERED)
            one.ids.append(action.id)
            actions.append(action)
        return actions

    # ------------------------------------------------------------------------------------------------ what became of it
    def observe(self, outcome: Outcome, now: float) -> None:
        """See `Decider.observe`."""
        if outcome.kind == EVICT:
            self._evicted(outcome, now)
            return
        vm = outcome.target.partition("/")[2]
        one = self._pace.under_way.get(vm)
        is_its = one is not None and outcome.id in one.ids
        if one is not None and is_its and outcome.id != one.ids[-1] and outcome.result not in DONE:
            return  # of a command that was ordered once more: the newer one may be carried out yet
        if self._campaign is not None:
            step = one.action.id if one is not None and is_its else outcome.id
            self._campaign.say(step, outcome.result, outcome.reason)
        if one is None or not is_its:
            return
        self._stirred = now
        if outcome.result in DONE:
            one.applied, self._in_a_row = now, 0
            if one.repairs:
                self._vain.arrived(vm, one.to, now)
            return
        if is_unknown(outcome):
            self._unknown.wait(one.action, now + PAUSE)  # it may be under way: until then it counts
            return
        self._again = now + PAUSE
        self.moving.end(vm, counts=outcome.result != DRY_RUN)
        if outcome.reason.startswith(VAIN):
            self._again, self._in_a_row = 0.0, self._in_a_row + 1
            self._vain.failed(vm, one.to, outcome.reason, now)
            if self._in_a_row >= IN_A_ROW:
                self._in_a_row, self._trouble = 0, now + TROUBLE
        self._is_dry = outcome.result == DRY_RUN

    # --------------------------------------------------------------------------------------- what people have asked for
    def _look_for_campaign(self, now: float) -> Campaign | None:
        """The repair that a person has asked for."""
        campaign = self._campaigns.under_way(Campaign)
        if campaign is not self._campaign and campaign is not None:
            self._stirred, self._again, self._thought = now, 0.0, frozenset()
            self._plans.forget()
        elif campaign is None and self._campaign is not None:
            self._again, self._thought = 0.0, frozenset()
            self._plans.forget()
        self._campaign = campaign
        return campaign

    def _leave(self, campaign: Campaign, plan: RepairPlan, now: float) -> None:
        """No vMotion is left of what a person has asked for: evictions are the evictor's, and what stays is told."""
        evictions = [step for step in plan.steps if step.pod is not None]
        if not evictions:
            campaign.end(plan.left_findings, _why_it_stays(plan.unrepairable))
        elif now - self._stirred >= STALLED:
            campaign.end(self._left, "the evictor comes no further")
        else:
            self._evicting = frozenset(id_ for step in evictions for id_ in step.because)
            campaign.wait("the evictor")
            self._again = min(self._again, self._stirred + STALLED)

    def _evicted(self, outcome: Outcome, now: float) -> None:
        """What became of an eviction, while a person follows a repair."""
        campaign, pod = self._campaign, outcome.target.partition("/")[2]
        if campaign is None or campaign.is_over or not self._evicting:
            return
        self._stirred = now
        campaign.order(RepairDone(outcome.id, EVICT, "", "", outcome.result, outcome.reason, pod=pod))
        if outcome.result in (DRY_RUN, REFUSED):
            campaign.end(self._left, f"{pod} is not evicted: {outcome.reason}")


def _why_it_stays(left: Sequence[Unrepairable]) -> str:
    """The reasons of the first finding that stays, in one line; those of all are in the plan."""
    return next((f"{one.finding} stays: {'; '.join(one.conflict)}" for one in left if one.conflict), "")
