"""Which evictions are due: the decider of the evictor.

In: snapshots and what the evaluator says of them; the commands of earlier runs. Out: `evict` actions. Which pod goes
for which finding is `agents/repair`'s to say; here it is decided when: once the finding has stood for a while, within
the caps (`pace.py`), as the budgets allow, and never in a loop (`loop_guard.py`). What no eviction can end
is ordered once, too, for the sink to refuse it with the reason.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import msgspec

from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.repair.budgets_left import BudgetsLeft
from underhost.agents.repair.evictable import EvictionTerms, Workloads
from underhost.agents.repair.evictions import Candidate, Left, Repair, Repairs
from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.sinks.evictions.cases import BrokenPods, case_key, case_of
from underhost.agents.sinks.evictions.loop_guard import CaseKey, LoopGuard
from underhost.agents.sinks.evictions.memory import remembered
from underhost.agents.sinks.evictions.moves_first import Moves
from underhost.agents.sinks.evictions.pace import EvictionPace, UnderWay
from underhost.agents.sinks.evictions.refusals import LeftToPerson, refusal
from underhost.agents.sinks.evictions.sink import FRESH, DesiredEviction, PastCase
from underhost.agents.sinks.orders import DONE, DRY_RUN, FAILED, order
from underhost.agents.sinks.ports import Decider
from underhost.agents.sinks.turns import in_turn
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import EVICT
from underhost.schemas.documents import Report
from underhost.schemas.errors import BadObjectError
from underhost.schemas.records import Action, Finding, Outcome
from underhost.streams.derived import rfc3339
from underhost.streams.settings.sinks import EvictionSettings

LOOK = 1.0
"""Seconds between two looks: nothing here is as urgent as a binding."""
AGAIN = 60.0
"""Seconds after which a finding that no eviction could end is thought through again."""
EFFORT = 128
"""Evictions that are thought through to the end in one look."""
LOST = 90.0
"""Seconds after which a command without an outcome counts as lost."""
LONGEST = 600.0
"""Seconds that the next pod is waited for; one that comes later did not help."""
FIRST_FAILURE, LONGEST_FAILURE = 5.0, 300.0
"""Seconds after a failure (a budget that allows none); doubled at each."""
AFTER_REFUSAL = 600.0
"""Seconds after which a refused eviction is tried again: its reason rarely goes by itself."""
SAY_AGAIN = 86_400.0
"""Seconds after which it is said again that a finding is left to a person; this keeps the guard's memory, too."""
SAID = 20
"""Refusals in one look."""


def terms_of(settings: EvictionSettings, *, binds: bool) -> EvictionTerms:
    """What may be evicted; pods of our scheduler only where the binder writes (`binds`), or nobody would place them."""
    return EvictionTerms(
        severities=frozenset(settings.severities),
        owners=frozenset(settings.owners),
        schedulers=frozenset(settings.schedulers) | ({OUR_SCHEDULER} if binds else set()),
        ours=frozenset({OUR_SCHEDULER}),
        empty_dir=settings.empty_dir,
        volumes=settings.volumes,
        except_namespaces=frozenset(settings.except_namespaces),
    )


@dataclass
class _Pause:
    """A pod that is left alone until then, with the number of failures in a row."""

    uid: str
    until: float
    failures: int = 0


class Look:
    """One look at a site: what is broken, whose it is, and what there is to spare.

    `found` are the findings that may be repaired. What is not asked for is not counted.
    """

    def __init__(self, snapshot: Snapshot, report: Report, found: Sequence[Finding]) -> None:
        self.snapshot, self.report, self._found = snapshot, report, found
        self.workloads = Workloads(snapshot)

    @cached_property
    def broken(self) -> BrokenPods:
        """The pods of each case."""
        return BrokenPods(self.snapshot, self._found)

    @cached_property
    def budgets(self) -> BudgetsLeft:
        """What the budgets still allow."""
        return BudgetsLeft(self.snapshot, self.report.budgets)


class EvictionDecider(Decider):
    """Orders evictions for one site.

    Args:
        evaluator: of the site. now: monotonic seconds.
        drs_until: for a snapshot and now, until when evictions wait for DRS (`drs_first.py`); None: not at all.
        moves: who moves VMs, which disturbs no pod: what vMotions may end is left to it; None: nobody does.
        earlier, outcomes: the newest `evict` command of each pod, and what became of it, in earlier runs.
        clock: seconds since 1970.

    Attributes:
        due: when to look again though nothing has changed, monotonic seconds.
    """

    kind = EVICT

    def __init__(
        self,
        settings: EvictionSettings,
        terms: EvictionTerms,
        evaluator: SiteEvaluator,
        *,
        drs_until: Callable[[Snapshot, float], float] | None = None,
        moves: Moves | None = None,
        earlier: Iterable[Action] = (),
        outcomes: Iterable[Outcome] = (),
        now: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._terms, self._evaluator = settings, terms, evaluator
        self._drs_until, self._moves = drs_until, moves
        self._clock = clock
        self._pace, self._guard = EvictionPace(settings), LoopGuard(settings.tries, settings.pause)
        self._said = remembered(earlier, outcomes, self._pace, self._guard, now, clock())
        self._pauses: dict[str, _Pause] = {}
        self._since: dict[str, float] = {}
        self._left: dict[str, float] = {}
        self._look_at = now

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """See `Decider.decide`."""
        if now < self._look_at:
            self.due = self._look_at
            return []
        self.due = None
        try:
            report = self._evaluator.update(snapshot)
        except BadObjectError:
            return []  # nothing is evicted where the rules cannot be judged; the evaluator says why they cannot
        found = [finding for finding in report.findings if finding.severity in self._terms.severities]
        standing = self._standing(found, now)
        if not found and not self._pace.under_way and not self._guard.cases:
            return []
        free = self._pace.room_at(now)
        if free > now and not self._pace.under_way:
            self._wake(free, now)
            return []
        self._look_at = now + LOOK
        look = Look(snapshot, report, found)
        self._settle(look, now)
        if self._guard.cases:  # else nobody asks what is broken, of thousands of findings
            self._guard.follow(look.broken.of, now)
        self._forget_pauses(snapshot)
        if any(not one.leaving for one in self._pace.under_way.values()):
            return []  # where its next one goes is not in the picture yet
        if not standing:
            return []
        if self._drs_until is not None and (until := self._drs_until(snapshot, now)) > now:
            self._wake(until, now)
            return []
        return self._order(look, standing, now)

    def observe(self, outcome: Outcome, now: float) -> None:
        """See `Decider.observe`."""
        pod = outcome.target.partition("/")[2]
        one = self._pace.under_way.get(pod)
        if one is None or one.id != outcome.id:
            return
        self._look_at = now
        if outcome.result in DONE:
            self._pace.applied(pod, now)
            self._count(one)
            return
        if one.leaving:
            return  # it went all the same: the command came twice, before and after a restart
        self._pace.cancel(pod, asked=outcome.result != DRY_RUN)
        if one.earlier:
            return  # superseded by what this run decides
        before = self._pauses.get(pod)
        failures = before.failures if before is not None and before.uid == one.uid else 0
        pause = math.inf if outcome.result == DRY_RUN else AFTER_REFUSAL
        if outcome.result == FAILED:
            pause = min(LONGEST_FAILURE, FIRST_FAILURE * 2**failures)
            failures += 1
        self._pauses[pod] = _Pause(one.uid, now + pause, failures)

    # ------------------------------------------------------------------------------------------- what became of others
    def _settle(self, look: Look, now: float) -> None:
        """Follow the evictions that are under way."""
        for one in list(self._pace.under_way.values()):
            pod = look.snapshot.pods.get(one.pod)
            gone = pod is None or pod.metadata.uid != one.uid
            one.leaving = gone or (pod is not None and pod.metadata.deletion_timestamp is not None)
            age = now - one.at
            if one.leaving:
                self._count(one)
            elif not one.applied and age >= (FRESH if one.earlier else LOST):
                self._pace.cancel(one.pod)
                continue
            there = gone and look.workloads.replicas(one.application, least=one.wanted).missing == 0
            if there or age >= LONGEST:
                self._count(one)
                self._guard.ended(one.case, one.broken, look.broken.of(one.case) if there else None)
                self._pace.end(one.pod)

    def _count(self, one: UnderWay) -> None:
        if not one.counted:
            one.counted = True
            self._guard.evicted(one.case, one.broken, one.at)

    def _forget_pauses(self, snapshot: Snapshot) -> None:
        for name, pause in list(self._pauses.items()):
            pod = snapshot.pods.get(name)
            if pod is None or pod.metadata.uid != pause.uid:
                del self._pauses[name]

    def _standing(self, found: Sequence[Finding], now: float) -> list[Finding]:
        """The findings that have stood long enough, without those that were thought through in vain."""
        self._since = {finding.id: self._since.get(finding.id, now) for finding in found}
        self._left = {id_: until for id_, until in self._left.items() if id_ in self._since and until > now}
        self._said = {id_: said for id_, said in self._said.items() if id_ in self._since}
        ripe = {finding.id: self._ripe_at(finding, self._since[finding.id]) for finding in found}
        for id_, at in ripe.items():
            self._wake(max(at, self._left.get(id_, at)), now)
        return [finding for finding in found if ripe[finding.id] <= now and finding.id not in self._left]

    def _ripe_at(self, finding: Finding, since: float) -> float:
        """From when on the finding may be repaired; never as long as vMotions may end it."""
        if self._moves is None:
            return since + self._settings.wait
        if self._moves.hurries(finding.id):
            return since
        return since + self._settings.wait if self._moves.leaves(finding) else math.inf

    def _wake(self, at: float, now: float) -> None:
        if now < at:
            self.wait_until(at)

    # ---------------------------------------------------------------------------------------------------- what is next
    def _order(self, look: Look, standing: Sequence[Finding], now: float) -> list[Action]:
        """Orders, and refusals for what cannot be ended."""
        actions: list[Action] = []
        refusals: list[LeftToPerson | Left] = []
        repairs = Repairs(
            look.snapshot,
            look.report,
            self._evaluator,
            self._terms,
            may=lambda candidate: self._may(look, candidate, refusals, now),
            effort=EFFORT,
        )
        for each in () if self._pace.full else self._while_there_is_room(repairs.of(_in_turn(standing)), now):
            if isinstance(each, Left):
                self._left.update(dict.fromkeys(each.ids, now + AGAIN))
                self._wake(now + AGAIN, now)
                refusals.append(each)
            elif not self._pace.leaves_places(each.choices):
                break  # one might take the only place of another: it has its turn once these are over
            else:
                actions.append(self._begin(look, each, now))
        if repairs.exhausted:
            self._wake(self._look_at, now)  # what was in vain is left out then
        return actions + list(self._refusals(look, refusals, now))

    def _while_there_is_room(self, found: Iterator[Repair | Left], now: float) -> Iterator[Repair | Left]:
        while (free := self._pace.room_at(now)) <= now:
            one = next(found, None)
            if one is None:
                return
            yield one
        self._wake(free, now)

    def _may(self, look: Look, candidate: Candidate, refusals: list[LeftToPerson | Left], now: float) -> bool:
        """Whether the pod may go now; what will never do is added to the refusals."""
        case = case_of(candidate)
        budgets = look.budgets.of(candidate.object)
        if self._guard.tries(case) + self._pace.uncounted(case) >= self._settings.tries and self._pace.holds(case):
            return False  # what is under way may have helped
        never = self._guard.stop(case)
        if never is None and len(budgets) > 1:
            never = (
                f"{f.listing(budgets)} cover it, and of a pod with several budgets the API server refuses an eviction"
            )
        if never is not None:
            refusals.append(LeftToPerson(candidate.finding, candidate.pod, never, never))
            return False
        pause = self._pauses.get(candidate.pod)
        for until in (self._guard.wait(case.owner, now), None if pause is None else pause.until):
            if until is not None and until > now:
                self._wake(until, now)
                return False
        replicas = look.workloads.replicas(candidate.application)
        return self._pace.admits(candidate, replicas) and look.budgets.allow(candidate.object)

    def _begin(self, look: Look, repair: Repair, now: float) -> Action:
        one, finding = repair.candidate, repair.candidate.finding
        case, uid = case_of(one), one.object.metadata.uid
        desired = self._desired(look, one.finding, one.pod, case)
        desired.node, desired.host, desired.to = one.node, one.host, repair.to
        desired.number += self._pace.uncounted(case) + 1
        because = f"{finding.message} The next one of {one.pod} fits on node {repair.to}."
        action = order(EVICT, f"pod/{one.pod}", msgspec.to_builtins(desired), because, look.snapshot.offsets)
        wanted = look.workloads.replicas(one.application).wanted
        self._pace.begin(
            UnderWay(
                action.id,
                one.pod,
                uid,
                one.application,
                one.node,
                one.host,
                case,
                desired.broken,
                wanted,
                now,
                choices=repair.choices,
            )
        )
        look.budgets.take(one.object)
        self._wake(now + LOST, now)
        return action

    def _refusals(self, look: Look, refusals: Iterable[LeftToPerson | Left], now: float) -> Iterator[Action]:
        """Commands that the sink refuses with the reason; each is said once a day."""
        left = SAID
        for each in refusals:
            if not left:
                return  # of thousands nothing is put into words that is not said now
            finding, pod, reason, tell = refusal(each.finding, each.reasons) if isinstance(each, Left) else each
            before = self._said.get(finding.id)
            if before is not None and before[0] == reason and now - before[1] < SAY_AGAIN:
                continue
            left -= 1
            self._said[finding.id] = reason, now
            application = application_of(look.snapshot, look.snapshot.pods[pod])
            owner = "/".join(application) if application is not None else ""
            desired = self._desired(look, finding, pod, case_key(owner, finding))
            desired.refuse, desired.tell = reason, tell
            yield order(EVICT, f"pod/{pod}", msgspec.to_builtins(desired), finding.message, look.snapshot.offsets)

    def _desired(self, look: Look, finding: Finding, pod: str, case: CaseKey) -> DesiredEviction:
        broken = look.broken.of(case)
        return DesiredEviction(
            uid=look.snapshot.pods[pod].metadata.uid,
            at=rfc3339(self._clock()),
            finding=finding.id,
            **case._asdict(),
            broken=broken,
            low=self._guard.low(case, broken),
            number=self._guard.tries(case),
            others=[
                PastCase(*key[1:], low=other.low, number=other.tries)
                for key, other in self._guard.cases.items()
                if key.owner == case.owner and key != case
            ],
        )


def _in_turn(standing: Iterable[Finding]) -> list[Finding]:
    """The gravest first, and of equally grave ones one namespace after another."""
    return [
        finding
        for _, equal in groupby(standing, key=lambda one: one.severity)
        for finding in in_turn(equal, f.namespace_of)
    ]
