"""Cases: what one workload breaks, and how many of its pods do.

In: findings. Out: their cases, by which the loop guard remembers what evictions have led to.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from underhost.agents.repair.evictions import Candidate, broken_of
from underhost.agents.sinks.evictions.loop_guard import CaseKey
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding, pods_named

_What = tuple[str, ...]  # a case without its owner


def case_key(owner: str, finding: Finding) -> CaseKey:
    """The case that a finding is for one of its workloads."""
    severity, rule, source, key, _ = broken_of(finding)
    return CaseKey(owner, severity, rule, source, key)


def case_of(candidate: Candidate) -> CaseKey:
    """The case of a pod that may go."""
    return case_key("/".join(candidate.application), candidate.finding)


class BrokenPods:
    """How many pods of a workload each case holds. They are counted when one asks: few of thousands are asked for."""

    def __init__(self, snapshot: Snapshot, findings: Iterable[Finding]) -> None:
        self._snapshot = snapshot
        self._found: defaultdict[_What, list[Finding]] = defaultdict(list)
        self._counted: dict[_What, Counter[str]] = {}
        for finding in findings:
            if finding.pod is not None:
                self._found[case_key("", finding)[1:]].append(finding)

    def of(self, case: CaseKey) -> int:
        """The pods of the case's workload."""
        what = case[1:]
        if what not in self._counted:
            self._counted[what] = Counter(self._owners(self._found.get(what, ())))
        return self._counted[what][case.owner]

    def _owners(self, findings: Iterable[Finding]) -> Iterable[str]:
        for finding in findings:
            for pod in pods_named(finding):
                application = application_of(self._snapshot, self._snapshot.pods[pod])
                if application is not None:
                    yield "/".join(application)
