"""The evictions that end what no vMotion can, in waves that the disruption budgets allow.

In: the site as vMotions leave it, and the findings that stay. Out: evictions, and why the other findings stay. Which
pod goes is `agents/repair`'s to say; here an eviction counts only where every node that the next pod may land on is
right, or Underhost binds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.evaluate.findings import listing
from underhost.agents.repair.budgets_left import BudgetsLeft
from underhost.agents.repair.evictable import EvictionTerms
from underhost.agents.repair.evictions import Candidate, Left, Repairs
from underhost.agents.schedule.progress import alive
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding


@dataclass(frozen=True)
class Evicted:
    """One eviction: the pod leaves `from_`, and the next one has a place on `to`. `because`: the finding's id."""

    pod: str
    from_: str
    to: str
    because: str
    wave: int


@dataclass
class Evictions:
    """What evictions do: the steps, the site after them, and by finding's id and pod why others stay."""

    steps: list[Evicted] = field(default_factory=list)
    why: dict[str, dict[str, str]] = field(default_factory=dict)
    snapshot: Snapshot = field(default_factory=Snapshot)


def plan_evictions(
    snapshot: Snapshot, report: Report, evaluator: SiteEvaluator, findings: Sequence[Finding], terms: EvictionTerms
) -> Evictions:
    """The evictions for these findings of the report, in waves: all of one wave find their budgets' leave at once."""
    allowed = _Budgets(snapshot, report)
    repairs = Repairs(snapshot, report, evaluator, terms, may=allowed.may, everywhere=True)
    found = Evictions()
    for each in repairs.of(findings):
        alive()
        if isinstance(each, Left):
            found.why.update(dict.fromkeys(each.ids, each.reasons))
            continue
        one = each.candidate
        found.steps.append(Evicted(one.pod, one.node, each.to, one.finding.id, allowed.take(one, each.to)))
    for finding, reasons in allowed.refused.items():
        found.why.setdefault(finding, {}).update(reasons)
    found.snapshot = repairs.snapshot
    return found


class _Budgets:
    """In which wave a pod may go: a budget has its full allowance again once the next pods of the last wave are ready.

    Attributes:
        refused: by finding and pod, why it may never go.
    """

    def __init__(self, snapshot: Snapshot, report: Report) -> None:
        self._snapshot, self._report = snapshot, report
        self._wave = 0
        self._begin_wave()
        self.refused: dict[str, dict[str, str]] = {}

    def _begin_wave(self) -> None:
        self._wave += 1
        self._left = BudgetsLeft(self._snapshot, self._report.budgets)
        self._owners, self._nodes = set[object](), set[str]()

    def may(self, candidate: Candidate) -> bool:
        """Whether its budgets ever allow an eviction."""
        fresh = BudgetsLeft(self._snapshot, self._report.budgets)
        budgets = fresh.of(candidate.object)
        why = ""
        if len(budgets) > 1:
            why = f"{listing(budgets)} cover it, and of a pod with several budgets the API server refuses an eviction"
        elif not fresh.allow(candidate.object):
            why = f"budget {budgets[0]} allows no eviction"
        if why:
            self.refused.setdefault(candidate.finding.id, {})[candidate.pod] = why
        return not why

    def take(self, candidate: Candidate, to: str) -> int:
        """The wave of the candidate, counted from 1: one pod of an application at a time, and none to a node that
        another leaves. Never an earlier wave than that of those before it, on whose outcome it was judged."""
        is_taken = candidate.application in self._owners or to in self._nodes
        if is_taken or not self._left.allow(candidate.object):
            self._begin_wave()
        self._left.take(candidate.object)
        self._owners.add(candidate.application)
        self._nodes.add(candidate.node)
        return self._wave
