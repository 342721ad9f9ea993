"""A finding as an alert of Alertmanager: labels that name it, annotations that tell of it.

In: a `FindingEvent`. Out: labels, annotations and the alert as its API takes it. Pure. Labels are what Alertmanager
tells alerts apart by, so they hold only what stays as long as the finding does: the host that a finding is about, but
not the node that its pod runs on at the moment.
"""

from typing import Any

from underhost.agents.evaluate.findings import INVENTORY, NAMESPACE
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import BY_NAME, UNKNOWN_NODE, remedy_of

STOPPED = "UnderhostWritesStopped"
"""The alert of findings that say that a site's writes stop: all of them, or those that rest on where VMs run."""
RUNBOOKS = "docs/runbooks"
"""Where the runbooks are, from the root of the repository."""
LISTED = 8
"""Peers that an annotation names; a group can be thousands of pods."""


def alert_name(severity: str, rule: str) -> str:
    """The name of the alert that a finding is."""
    return STOPPED if rule == INVENTORY else severity_alert(severity)


def runbook_of(severity: str, rule: str, runbooks: str = RUNBOOKS) -> str:
    """The address of a finding's runbook; `runbooks` is where docs/runbooks can be read."""
    return f"{runbooks.rstrip('/')}/{alert_name(severity, rule)}.md"


def is_on_the_web(runbooks: str) -> bool:
    """Whether a browser can read what is there."""
    return runbooks.startswith(("https://", "http://"))


def severity_alert(severity: str) -> str:
    """`co-located` as `UnderhostCoLocated`."""
    return "Underhost" + "".join(part.capitalize() for part in severity.split("-"))


def level(event: FindingEvent) -> str:
    """The label `severity`, as Prometheus' rules have it."""
    if event.rule == INVENTORY:
        return "critical" if event.severity == UNKNOWN_NODE else "warning"
    row = BY_NAME.get(event.severity)
    return row.alert if row is not None else "warning"


def labels_of(event: FindingEvent) -> dict[str, str]:
    """What the alert is told apart and routed by; empty ones are left out, as Alertmanager would."""
    namespace, _, name = (event.pod or "").partition("/")
    if event.object is not None and event.object.startswith(NAMESPACE):
        namespace = namespace or event.object.removeprefix(NAMESPACE)
    labels = {
        "alertname": alert_name(event.severity, event.rule),
        "severity": level(event),
        "finding": event.severity,
        "finding_id": event.id,
        "rule": event.rule,
        "site": event.site,
        "namespace": namespace,
        "pod": name,
        "topology_key": event.domain.key if event.domain is not None else "",
        "topology_value": event.domain.value if event.domain is not None else "",
    }
    return {name: value for name, value in labels.items() if value}


def annotations_of(event: FindingEvent, runbooks: str) -> dict[str, str]:
    """What a person reads; may change while the alert lasts. `runbooks` is where docs/runbooks can be read."""
    peers = ", ".join(event.peers[:LISTED])
    more = f" and {len(event.peers) - LISTED} more" if len(event.peers) > LISTED else ""
    found = {
        "summary": event.message,
        "description": event.reason,
        "node": event.node or "",
        "peers": peers + more,
        "remedy": remedy_of(event.severity, event.rule),
        "runbook_url": runbook_of(event.severity, event.rule, runbooks),
    }
    return {name: value for name, value in found.items() if value}


def alert(event: FindingEvent, ends_at: str, link: str, runbooks: str) -> dict[str, Any]:
    """A postable alert; `ends_at` in the future while it fires, `link` to the page ("" for none)."""
    body: dict[str, Any] = {
        "labels": labels_of(event),
        "annotations": annotations_of(event, runbooks),
        "startsAt": event.first_seen,
        "endsAt": ends_at,
    }
    return {**body, "generatorURL": f"{link.rstrip('/')}/?finding={event.id}"} if link else body
