"""What is wrong with the rules themselves, wherever the pods are: the report of `underhost lint`.

In: a snapshot (manifests made into pods), options, and the manifests. Out: a `Report` whose findings name an object and
a field. `CHECKS` is the table of everything that is looked for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from underhost.agents.evaluate import findings as f
from underhost.agents.lint import budgets, domains, hosts, keys, nodes, quantities, quorums, terms
from underhost.agents.lint.checks import Check
from underhost.agents.lint.subjects import Complaint
from underhost.agents.lint.view import View
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.manifests import Manifest
from underhost.schemas.records import Finding
from underhost.schemas.severities import RANK, SEVERITIES

CHECKS: tuple[Check, ...] = (
    *nodes.CHECKS,
    *keys.CHECKS,
    *terms.CHECKS,
    *domains.CHECKS,
    *hosts.CHECKS,
    *budgets.CHECKS,
    *quantities.CHECKS,
    *quorums.CHECKS,
)


def lint(
    snapshot: Snapshot,
    options: Options,
    manifests: Mapping[str, Manifest],
    misspelled: Mapping[str, Sequence[str]] | None = None,
    makers: Set[str] = frozenset(),
) -> Report:
    """Every finding about the objects of an input; worst first, then by object and field.

    `manifests`: by `Kind/namespace/name`, the workloads of the input with their templates. `misspelled`: fields of
    pods' and budgets' specs that were not read for their capitals, by the same names.
    `makers`: kinds of the input that may make pods of which it tells nothing.
    Raises BadObjectError for a part of a wrong shape, which names the object and the field.
    """
    view = View(snapshot, options, manifests, misspelled or {}, makers)
    found: dict[str, Finding] = {}
    for check in CHECKS:
        for complaint in check.complaints(view):
            one = _finding(snapshot.site, check, complaint)
            found.setdefault(one.id, one)
    findings = sorted(found.values(), key=_order)
    counts = Counter(one.severity for one in findings)
    return Report(
        findings=findings,
        budgets={name: covered.figures for name, covered in view.budgets.items()},
        summary={
            "pods": sum(pod.status.phase not in FINISHED for pod in snapshot.pods.values()),
            "nodes": len(snapshot.nodes),
            "hosts": len(snapshot.hosts) or len({one.host for one in snapshot.node_hosts.values() if one.host}),
            **{severity: counts[severity] for severity in SEVERITIES},
        },
    )


def _finding(site: str, check: Check, complaint: Complaint) -> Finding:
    place = f"{check.name}\0{complaint.field}"
    return Finding(
        id=f.finding_id(site, check.severity, complaint.rule, place, complaint.value, complaint.object),
        severity=check.severity,
        rule=complaint.rule,
        reason=check.why,
        message=complaint.message,
        source=check.name,
        object=complaint.object,
        field=complaint.field,
    )


def _order(finding: Finding) -> tuple[int, str, str, str, str]:
    return (RANK[finding.severity], finding.object or "", finding.field or "", finding.source or "", finding.id)
