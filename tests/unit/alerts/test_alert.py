"""A finding as an alert: the labels that it is routed by, and what a person reads."""

from typing import Any

import msgspec
import pytest
from support.published import SHARED

from underhost.agents.alerts.alert import alert
from underhost.schemas.records import Domain
from underhost.schemas.severities import SEVERITIES
from underhost.streams.settings.alerting import AlertingSettings


@pytest.mark.parametrize("severity", SEVERITIES)
def test_every_severity_makes_an_alert_and_can_be_asked_for(severity: str):
    labels = alert(msgspec.structs.replace(SHARED, severity=severity), "", "", "")["labels"]
    assert labels["severity"] in ("critical", "warning", "info")
    assert AlertingSettings(severity=severity).severity == severity


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        pytest.param(
            {"severity": "unsatisfiable", "rule": "Tenant", "object": "Namespace/shop"},
            {"alertname": "UnderhostUnsatisfiable", "severity": "warning", "namespace": "shop"},
            id="a tenant that asks for too much",
        ),
        pytest.param(
            {"severity": "unsatisfiable", "rule": "Move", "object": "VirtualMachine/vm-1", "node": "n1"},
            {"alertname": "UnderhostUnsatisfiable", "severity": "warning"},
            id="a VM is in no namespace",
        ),
        pytest.param(
            {"severity": "quorum", "rule": "Quorum", "node": "n1", "domain": Domain("host", "esx-3")},
            {
                "alertname": "UnderhostQuorum",
                "severity": "critical",
                "topology_key": "host",
                "topology_value": "esx-3",
            },
            id="nodes are in no namespace",
        ),
    ],
)
def test_an_alert_about_no_pod_has_the_labels_that_apply(changes: dict[str, Any], labels: dict[str, str]):
    event = msgspec.structs.replace(SHARED, **{"pod": None, "node": None, "peers": [], "domain": None} | changes)
    named = {"finding": event.severity, "finding_id": "9f2c", "rule": event.rule, "site": "prod"}
    assert alert(event, "", "", "")["labels"] == named | labels


def test_an_alert_says_nothing_of_what_its_finding_does_not_name():
    lone = msgspec.structs.replace(SHARED, node=None, peers=[])
    assert list(alert(lone, "", "", "")["annotations"]) == ["summary", "description", "remedy", "runbook_url"]


def test_a_group_of_thousands_names_a_few_of_them():
    crowd = msgspec.structs.replace(SHARED, peers=[f"shop/db-{number}" for number in range(1000)])
    annotations = alert(crowd, "", "", "")["annotations"]
    assert annotations["peers"].endswith("shop/db-6, shop/db-7 and 992 more")
