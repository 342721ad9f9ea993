"""Each tenant's share of the open findings: the gravest stay.

In: the findings of an evaluation, and which are open. Out: those within the shares, and who has more. A finding is its
pod's namespace's, or that one's whose rule it is (`object`). Findings of nodes and hosts are nobody's. Of equally grave
ones those that are open already stay, so that none comes and goes because of others.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.site.owners import application_under, controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.severities import RANK
from underhost.schemas.shares import Capped, Shares


def within_shares(
    findings: Sequence[Finding], open_: Collection[str], snapshot: Snapshot, shares: Shares
) -> tuple[list[Finding], list[Capped]]:
    """The findings that are published, in their order, and who has more."""
    of_namespace: defaultdict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        of_namespace[namespace_of(one)].append(one)
    of_namespace.pop("", None)
    capped = [
        Capped("alerts", name, "", f"of its findings no more than {shares.alerts} fire as alerts at one time")
        for name, mine in sorted(of_namespace.items())
        if len(mine) > shares.alerts
    ]
    left_out, most = set[str](), shares.of_owner(shares.findings)
    for namespace, mine in sorted(of_namespace.items()):
        if len(mine) > most:
            owners = _owners(mine, snapshot)
            if len(mine) > shares.findings or max(Counter(owners.values()).values()) > most:
                mine.sort(key=lambda one: (RANK[one.severity], one.id not in open_, one.id))
                left_out |= _left_out(namespace, mine, owners, shares, capped)
    if not left_out:
        return list(findings), capped
    return [one for one in findings if one.id not in left_out], capped


def _left_out(
    namespace: str, mine: Iterable[Finding], owners: Mapping[str, str], shares: Shares, capped: list[Capped]
) -> set[str]:
    """The ids beyond the shares, of findings the gravest first; `owners` by id."""
    left_out, kept, of_owner = set[str](), 0, Counter[str]()
    most = shares.of_owner(shares.findings)
    for one in mine:
        owner = owners[one.id]
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


def _owners(findings: Iterable[Finding], snapshot: Snapshot) -> dict[str, str]:
    """By id, the application of each finding's pod, `Kind/name`; the pod itself where it has none."""
    found: dict[str, str] = {}
    names: dict[tuple[str, str, str], str] = {}  # an owner has many pods
    for one in findings:
        pod = snapshot.pods.get(one.pod or "")
        owner = controller_of(pod.metadata.owner_references) if pod is not None else None
        if pod is None or owner is None:
            found[one.id] = f"Pod/{(one.pod or '').partition('/')[2]}"
            continue
        key = (owner.kind, pod.metadata.namespace, owner.name)
        name = names.get(key)
        if name is None:
            application = application_under(snapshot, owner, pod.metadata.namespace)
            name = names[key] = f"{application.kind}/{application.name}"
        found[one.id] = name
    return found
