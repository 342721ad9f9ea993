"""One look of the evictor at a site: what is broken, whose it is, and what there is to spare.

In: a snapshot and its report. Out: counts by case, workloads, budgets.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from underhost.agents.evaluate import findings as f
from underhost.agents.repair.budgets_left import BudgetsLeft
from underhost.agents.repair.evictable import Workloads
from underhost.agents.repair.evictions import Candidate, broken_of
from underhost.agents.sinks.evictions.loop_guard import CaseKey
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding


class Look:
    """One look at a site; `found` are the findings that may be repaired. What is not asked for is not counted."""

    def __init__(self, snapshot: Snapshot, report: Report, found: Sequence[Finding]) -> None:
        self.snapshot, self.report, self._found = snapshot, report, found
        self.workloads = Workloads(snapshot)

    @cached_property
    def broken(self) -> Counter[CaseKey]:
        """How many pods of a workload each case holds."""
        broken: Counter[CaseKey] = Counter()
        for finding in self._found:
            for pod in (finding.pod, *finding.peers) if finding.pod is not None else ():
                application = application_of(self.snapshot, self.snapshot.pods[pod])
                if application is not None:
                    broken[case_key("/".join(application), finding)] += 1
        return broken

    @cached_property
    def budgets(self) -> BudgetsLeft:
        """What the budgets still allow."""
        return BudgetsLeft(self.snapshot, self.report.budgets)


def case_key(owner: str, finding: Finding) -> CaseKey:
    """The case that a finding is for one of its workloads."""
    severity, rule, source, key, _ = broken_of(finding)
    return CaseKey(owner, severity, rule, source, key)


def case_of(candidate: Candidate) -> CaseKey:
    """The case of a pod that may go."""
    return case_key("/".join(candidate.application), candidate.finding)


def told(reasons: Mapping[str, str]) -> str:
    """The reasons, pods with the same together."""
    pods: dict[str, list[str]] = {}
    for pod, reason in sorted(reasons.items()):
        pods.setdefault(reason, []).append(pod)
    return "; ".join(f"{f.listing(names)}: {reason}" for reason, names in pods.items())
