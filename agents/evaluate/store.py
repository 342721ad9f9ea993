"""The findings of a site as they stand, sorted, replaced slot by slot.

In: the findings of one slot (a pod, a node, a group's place, a budget). Out: all of them in `findings.in_order`'s order
without sorting all again. Findings that are in the slot already stay.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import itemgetter

from underhost.agents.evaluate import findings as f
from underhost.schemas.records import Finding
from underhost.schemas.severities import PHYSICAL, QUORUM, SEVERITIES, VIOLATION

NOTHING: Sequence[Finding] = ()
_MANY = 64  # new findings from which sorting all is quicker than looking for the place of each


class FindingStore:
    """Findings by slot.

    Attributes:
        counts: of every severity, worst first.
        of_pod: the numbers of the groups (violation, physical, quorum) that hold each pod.
        regrouped: the pods whose groups have changed since the last `take_regrouped`.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(SEVERITIES, 0))
        self.of_pod: defaultdict[str | None, list[int]] = defaultdict(list)
        self.regrouped: set[str] = set()
        self._slots: dict[object, Sequence[Finding]] = {}
        self._keys: list[f.Order] = []
        self._found: list[Finding] = []
        self._given = False  # somebody holds `_found`: it stays as it is, and the next change is one of a copy
        self._fresh: list[Finding] = []

    def put(self, slot: object, findings: Sequence[Finding]) -> None:
        """What the slot holds from now on."""
        before = self._slots.get(slot, NOTHING)
        if not before and not findings:
            return
        if len(before) == len(findings) == 1 and before[0] == findings[0]:
            return
        same = {id(finding) for finding in before} & {id(finding) for finding in findings}
        for finding in before:
            if id(finding) not in same:
                self._remove(finding)
        for finding in findings:
            if id(finding) not in same:
                self._add(finding)
        if findings:
            self._slots[slot] = findings
        else:
            del self._slots[slot]

    def findings(self) -> list[Finding]:
        """All, worst first; the very same list as before where none came or went since."""
        self._sort_in()
        self._given = True
        return self._found

    def take_regrouped(self) -> set[str]:
        """The pods whose groups have changed since it was asked last."""
        taken, self.regrouped = self.regrouped, set()
        return taken

    def _add(self, finding: Finding) -> None:
        self._fresh.append(finding)
        self.counts[finding.severity] += 1
        for pod in _group(finding):
            self.of_pod[pod].append(id(finding))
            self.regrouped.add(pod)

    def _remove(self, finding: Finding) -> None:
        self._sort_in()
        at = bisect_left(self._keys, f.order_of(finding))
        while self._found[at] is not finding:
            at += 1
        self._own()
        del self._keys[at], self._found[at]
        self.counts[finding.severity] -= 1
        for pod in _group(finding):
            self.of_pod[pod].remove(id(finding))
            if not self.of_pod[pod]:
                del self.of_pod[pod]
            self.regrouped.add(pod)

    def _sort_in(self) -> None:
        """Bring the findings that were added to their places."""
        fresh, self._fresh = self._fresh, []
        if len(fresh) < _MANY:
            if fresh:
                self._own()
            for finding in fresh:
                key = f.order_of(finding)
                at = bisect_left(self._keys, key)
                self._keys.insert(at, key)
                self._found.insert(at, finding)
            return
        known = zip(self._keys, self._found, strict=True)
        places = sorted([*known, *zip(map(f.order_of, fresh), fresh, strict=True)], key=itemgetter(0))
        self._keys, self._found = [key for key, _ in places], [finding for _, finding in places]
        self._given = False

    def _own(self) -> None:
        """Let what was given out be another list."""
        if self._given:
            self._found, self._given = self._found.copy(), False


def _group(finding: Finding) -> list[str]:
    if not finding.peers or finding.severity not in (VIOLATION, PHYSICAL, QUORUM) or finding.pod is None:
        return []
    return [finding.pod, *finding.peers]
