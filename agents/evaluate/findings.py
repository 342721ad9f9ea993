"""What findings have in common: their order, stable ids, and how several names are listed."""

import hashlib
from collections.abc import Iterable

from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Finding, FindingEvent
from underhost.schemas.severities import RANK, UNSATISFIABLE
from underhost.schemas.shares import Capped

INVENTORY = "Inventory"
"""Rule of the findings that say that a site's writes stop (`agents/pipeline/gates/guards.py`)."""


NAMESPACE = "Namespace/"
"""What the `object` of a finding begins with that is a namespace's."""
TENANT = "Tenant"
"""Rule of the findings that name a namespace which asks for more than its share."""
REASON_SHARE = "a tenant asks for more than its share"


def finding_id(site: str, severity: str, rule: str, key: str, value: str, uid: str) -> str:
    """A stable name: a group whose smallest pod stays keeps its id while other members come and go.

    The severity is part of it because one pod may break a rule's requirement and its preference at once.
    """
    text = "\0".join((site, severity, rule, key, value, uid))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def uid_of(name: str, pod: Pod | None) -> str:
    """The pod's uid; its name where the input has none (hand-written manifests)."""
    return (pod.metadata.uid if pod is not None else "") or name


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first, then by pod, rule and domain: equal for every order of the input."""
    return sorted(findings, key=order_of)


Order = tuple[int, str, str, str, str, str, str]


def order_of(finding: Finding) -> Order:
    """What findings are sorted by."""
    domain = (finding.domain.key, finding.domain.value) if finding.domain is not None else ("", "")
    subject = finding.pod or finding.object or finding.node or ""
    return (RANK[finding.severity], subject, finding.rule, *domain, finding.id, finding.message)


def listing(names: list[str], most: int = 3) -> str:
    """Names for a sentence: `a`, `a and b`, `a, b and 4 more`."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nothing"


def namespace_of(finding: Finding | FindingEvent) -> str:
    """Whose finding it is; "" for nobody's."""
    owner = finding.object  # of most there is none, and thousands are asked for theirs in each evaluation
    if owner is not None and finding.rule == TENANT:
        return ""
    if owner is not None and owner.startswith(NAMESPACE):
        return owner.removeprefix(NAMESPACE)
    return finding.pod.partition("/")[0] if finding.pod is not None else ""


def tenant_finding(site: str, said: Capped) -> Finding:
    """The finding that says it."""
    return Finding(
        id=finding_id(site, UNSATISFIABLE, TENANT, said.setting, said.owner, said.namespace),
        severity=UNSATISFIABLE,
        rule=TENANT,
        reason=REASON_SHARE,
        message=f"{said}." if said.owner else f"N{str(said)[1:]}.",
        object=f"Namespace/{said.namespace}",
    )
