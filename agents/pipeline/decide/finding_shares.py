"""Each tenant's share of the open findings: the gravest stay.

In: the findings of an evaluation, and which are open. Out: those within the shares, and who has more. A finding is its
pod's namespace's, or that one's whose rule it is (`object`). Findings of nodes and hosts are nobody's. Of equally grave
ones those that are open already stay, so that none comes and goes because of others.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.severities import RANK
from underhost.schemas.shares import Capped, Shares


def within_shares(
    findings: Sequence[Finding], open_: Collection[str], snapshot: Snapshot, shares: Shares
) -> tuple[list[Finding], list[Capped]]:
    """The findings that are published, in their order, and who has more."""
    counts = Counter(map(namespace_of, findings))
    del counts[""]
    least = shares.of_owner(shares.findings)
    many = {namespace for namespace, count in counts.items() if count > least}
    capped = [
        Capped("alerts", name, "", f"of its findings no more than {shares.alerts} fire as alerts at one time")
        for name, count in sorted(counts.items())
        if count > shares.alerts
    ]
    if not many:
        return list(findings), capped
    left_out = set[str]()
    for namespace in sorted(many):
        mine = [one for one in findings if namespace_of(one) == namespace]
        mine.sort(key=lambda one: (RANK[one.severity], one.id not in open_, one.id))
        left_out |= _left_out(namespace, mine, snapshot, shares, capped)
    return [one for one in findings if one.id not in left_out], capped


def _left_out(
    namespace: str, mine: Iterable[Finding], snapshot: Snapshot, shares: Shares, capped: list[Capped]
) -> set[str]:
    """The ids beyond the shares, of findings the gravest first."""
    left_out, kept, of_owner = set[str](), 0, Counter[str]()
    most = shares.of_owner(shares.findings)
    for one in mine:
        owner = _owner(snapshot, one)
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
