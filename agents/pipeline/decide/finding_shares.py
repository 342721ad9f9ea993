"""Each tenant's share of the open findings: the gravest stay.

In: the findings of an evaluation, and which are open. Out: those within the shares, and who has more. A finding is its
pod's namespace's, or that one's whose rule it is (`object`). Findings of nodes and hosts are nobody's. Of equally grave
ones those that are open already stay, so that none comes and goes because of others.

A site may have thousands, of which an evaluation changes a few: who has how many is followed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.severities import RANK
from underhost.schemas.shares import Capped, Shares

_ALL = ""
"""The owner that stands for all of a namespace."""


class _Whose(NamedTuple):
    """Whose finding it is; `owner` is the application of its pod as the finding came or changed, `Kind/name`."""

    namespace: str
    owner: str


class FindingShares:
    """Of one site, for one evaluation after another."""

    def __init__(self, shares: Shares) -> None:
        self._shares, self._most_of_owner = shares, shares.of_owner(shares.findings)
        self._seen: dict[str, Finding] = {}
        self._whose: dict[str, _Whose] = {}
        self._counts: Counter[_Whose] = Counter()
        self._over: set[_Whose] = set()

    def within(
        self, findings: Sequence[Finding], open_: Collection[str], snapshot: Snapshot
    ) -> tuple[list[Finding], list[Capped]]:
        """The findings that are published, in their order, and who has more."""
        self._follow({one.id: one for one in findings}, snapshot)
        alerts = self._shares.alerts
        many = sorted(who.namespace for who, count in self._counts.items() if count > alerts and who.owner == _ALL)
        capped = [
            Capped("alerts", name, "", f"of its findings no more than {alerts} fire as alerts at one time")
            for name in many
        ]
        left_out = set[str]()
        for namespace in sorted({who.namespace for who in self._over}):
            mine = [one for one in findings if self._whose[one.id].namespace == namespace]
            mine.sort(key=lambda one: (RANK[one.severity], one.id not in open_, one.id))
            left_out |= self._left_out(namespace, mine, capped)
        return [one for one in findings if one.id not in left_out] if left_out else list(findings), capped

    def _follow(self, now: dict[str, Finding], snapshot: Snapshot) -> None:
        """Count those that came, changed or went."""
        seen = self._seen
        came = {
            id_: _Whose(namespace_of(one), _owner(snapshot, one))
            for id_, one in now.items()
            if seen.get(id_) is not one
        }
        for id_ in (*(seen.keys() - now.keys()), *(seen.keys() & came.keys())):
            self._count(self._whose.pop(id_), -1)
        for id_, whose in came.items():
            self._whose[id_] = whose
            self._count(whose, 1)
        self._seen = now

    def _count(self, whose: _Whose, sign: int) -> None:
        if not whose.namespace:
            return
        for who, most in ((whose, self._most_of_owner), (_Whose(whose.namespace, _ALL), self._shares.findings)):
            self._counts[who] += sign
            if not self._counts[who]:
                del self._counts[who]
            if self._counts[who] > most:
                self._over.add(who)
            else:
                self._over.discard(who)

    def _left_out(self, namespace: str, mine: Iterable[Finding], capped: list[Capped]) -> set[str]:
        """The ids beyond the shares, of findings the gravest first."""
        left_out, kept, of_owner = set[str](), 0, Counter[str]()
        shares, most = self._shares, self._most_of_owner
        for one in mine:
            owner = self._whose[one.id].owner
            if of_owner[owner] >= most or kept >= shares.findings:
                who, number = ("", shares.findings) if kept >= shares.findings else (owner, most)
                said = Capped("findings", namespace, who, f"of its findings the gravest {number} are told")
                if said not in capped:
                    capped.append(said)
                left_out.add(one.id)
            else:
                of_owner[owner] += 1
                kept += 1
        return left_out


def _owner(snapshot: Snapshot, finding: Finding) -> str:
    """The application of the finding's pod, `Kind/name`; the pod itself where it has none."""
    pod = snapshot.pods.get(finding.pod or "")
    application = application_of(snapshot, pod) if pod is not None else None
    if application is None:
        return f"Pod/{(finding.pod or '').partition('/')[2]}"
    return f"{application.kind}/{application.name}"
