"""What findings have in common: their order, stable ids, and how several names are listed."""

import hashlib
from collections.abc import Iterable

from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Finding
from underhost.schemas.severities import RANK

INVENTORY = "Inventory"
"""Rule of the findings that say that a site's writes stop (`agents/pipeline/gates/guards.py`)."""


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
