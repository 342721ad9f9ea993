"""Reports: which are ordered, what they say, and what becomes of those that nobody needs any more."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.build import Built, a_node, a_pod, a_site

from underhost.agents.sinks.orders import APPLIED, FAILED, NOOP, REFUSED, outcome
from underhost.agents.sinks.reports.contents import LARGEST, places_of, report
from underhost.agents.sinks.reports.decider import QUIET, SWEEP, ReportDecider
from underhost.schemas.records import Action, FindingEvent

REMEDY = "Evict the pod once another node takes it: `underhost whatif --delete POD` shows where it would go."
DB = [a_pod(f"db-{number}").owned_by("StatefulSet/db").on("n1") for number in range(3)]


def finding(id_: str = "f1", *pods: str, severity: str = "violation", **more: Any) -> FindingEvent:
    """An open finding of these pods of `shop`."""
    names = [pod if "/" in pod else f"shop/{pod}" for pod in pods]
    return FindingEvent(
        id=id_,
        state="opened",
        site="prod",
        severity=severity,
        rule="InterPodAffinity",
        reason="node(s) didn't match pod anti-affinity rules",
        message=f"what {id_} says",
        first_seen="2026-01-05T08:00:00Z",
        updated_at="2026-01-05T08:00:00Z",
        snapshot={},
        pod=names[0] if names else None,
        peers=names[1:],
        **more,
    )


class Site:
    """A site whose findings open and resolve, and a decider that is asked about it."""

    def __init__(self, *objects: Built) -> None:
        self.snapshot = a_site(a_node("n1"), *objects)
        self.open: Mapping[str, FindingEvent] = {}
        self.now = 1000.0
        self.decider = ReportDecider("prod", lambda: self.open)

    def finds(self, *rows: FindingEvent) -> None:
        self.open = {row.id: row for row in rows}

    def orders(self) -> list[Action]:
        """The commands about single reports."""
        return [one for one in self.decider.decide(self.snapshot, self.now) if one.target != "reports/prod"]

    def answer(self, action: Action, result: str = APPLIED) -> None:
        self.decider.observe(outcome(action, result, "as the test says"), self.now)


def told(action: Action) -> tuple[str, list[str]] | None:
    """(namespace/scope, the findings that it tells of) of a report; None of a removal."""
    body = action.desired["report"]
    if body is None:
        return None
    assert isinstance(body, dict)
    scope = body.get("scope", {})
    where = "/".join(filter(None, (body["metadata"].get("namespace"), scope.get("kind"), scope.get("name"))))
    return where, [one["properties"]["finding"] for one in body["results"]]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            [finding("f1", "db-0"), finding("f2", "db-1", "db-2")],
            [("shop/StatefulSet/db", ["f1", "f2"])],
            id="one for a namespace and owner",
        ),
        pytest.param(
            [finding("f1", "db-0", "lone")],
            [("shop", ["f1"]), ("shop/StatefulSet/db", ["f1"])],
            id="pods that nothing owns share one",
        ),
        pytest.param(
            [finding("f1", "db-0", "bank/till-0")],
            [("bank", ["f1"]), ("shop/StatefulSet/db", ["f1"])],
            id="one in each namespace",
        ),
        pytest.param(
            [finding("f1", "db-0", "bank/till-0", object="Namespace/shop")],
            [("shop/StatefulSet/db", ["f1"])],
            id="nobody is told of another namespace's rule",
        ),
        pytest.param([finding("f1", node="n1", severity="drift")], [("Node/n1", ["f1"])], id="of a node"),
        pytest.param([finding("f1", object="Namespace/shop")], [("Namespace/shop", ["f1"])], id="of a namespace"),
        pytest.param([finding("f1")], [("", ["f1"])], id="of the site"),
        pytest.param(
            [finding("f2", "db-0"), finding("f1", "db-0", severity="drift")],
            [("shop/StatefulSet/db", ["f2", "f1"])],
            id="the worst comes first",
        ),
    ],
)
def test_what_is_open_is_reported(rows: list[FindingEvent], expected: list[tuple[str, list[str]]]) -> None:
    site = Site(*DB, a_pod("lone").on("n1"))
    site.finds(*rows)
    assert [told(action) for action in site.orders()] == expected


def test_a_result_names_its_pods_and_what_is_wrong() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0", "db-1"))
    [action] = site.orders()
    body = action.desired["report"]
    assert isinstance(body, dict)
    assert (body["apiVersion"], body["kind"], body["source"]) == ("openreports.io/v1alpha1", "Report", "underhost")
    assert body["summary"] == {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    assert body["results"] == [
        {
            "policy": "InterPodAffinity",
            "rule": "violation",
            "category": "Placement",
            "result": "fail",
            "severity": "critical",
            "message": "what f1 says",
            "properties": {
                "finding": "f1",
                "firstSeen": "2026-01-05T08:00:00Z",
                "remedy": REMEDY,
            },
            "resources": [
                {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": name} for name in ("db-0", "db-1")
            ],
        }
    ]


def test_what_says_the_same_is_not_ordered_again_and_what_changes_is_in_its_turn() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"))
    [first] = site.orders()
    site.answer(first)
    site.now += QUIET / 2
    site.finds(finding("f1", "db-0"))  # another record that says the same
    assert site.orders() == []
    site.finds(finding("f1", "db-0"), finding("f2", "db-1"))
    assert (site.orders(), site.decider.due) == ([], 1000.0 + QUIET)
    site.now = 1000.0 + QUIET
    assert [told(action) for action in site.orders()] == [("shop/StatefulSet/db", ["f1", "f2"])]


def test_a_report_whose_findings_are_resolved_is_removed_and_forgotten() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"))
    [written] = site.orders()
    site.answer(written)
    site.now += QUIET
    site.finds()
    [removed] = site.orders()
    assert (removed.target, told(removed)) == (written.target, None)
    site.answer(removed)
    site.now += SWEEP
    [sweep] = site.decider.decide(site.snapshot, site.now)
    assert sweep.desired == {"keep": {}}


def test_a_report_loses_the_finding_that_is_resolved_and_keeps_the_others() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"), finding("f2", "db-1"))
    site.answer(site.orders()[0])
    site.now += QUIET
    site.finds(finding("f2", "db-1"))
    assert [told(action) for action in site.orders()] == [("shop/StatefulSet/db", ["f2"])]


def test_what_is_under_way_is_not_ordered_again_and_a_look_at_all_lets_it_be() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"))
    action, sweep = site.decider.decide(site.snapshot, site.now)
    report_, key = action.desired["report"], action.target.partition("/")[2]
    assert sweep.desired == {"keep": {key: ""}}
    site.now += QUIET
    site.finds(finding("f1", "db-0"))
    assert site.orders() == []
    site.answer(action)
    site.now += SWEEP
    [sweep] = site.decider.decide(site.snapshot, site.now)
    digest = report_["metadata"]["annotations"]["underhost/content"]  # type: ignore[index,call-overload]
    assert sweep.desired == {"keep": {key: digest}}


@pytest.mark.parametrize(
    ("result", "seconds"),
    [
        pytest.param(FAILED, 10.0, id="failed"),
        pytest.param(REFUSED, 600.0, id="refused"),
        pytest.param(None, 60.0, id="never answered"),
        pytest.param(NOOP, None, id="it was so already"),
    ],
)
def test_a_command_that_came_to_nothing_is_ordered_again(result: str | None, seconds: float | None) -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"))
    [action] = site.orders()
    if result is not None:
        site.answer(action, result)
    site.now += (seconds or 3600.0) - 1.0
    assert site.orders() == []
    site.now += 1.0
    assert [one.target for one in site.orders()] == ([action.target] if seconds is not None else [])


def test_what_is_not_as_it_was_written_is_written_anew() -> None:
    site = Site(*DB)
    site.finds(finding("f1", "db-0"))
    [action] = site.orders()
    site.answer(action)
    site.now += SWEEP
    [sweep] = site.decider.decide(site.snapshot, site.now)
    assert list(sweep.desired["keep"]) == [action.target.partition("/")[2]]  # type: ignore[call-overload]
    site.answer(sweep, FAILED)
    assert [one.target for one in site.orders()] == [action.target]


def test_a_finding_waits_for_the_picture_that_it_is_of() -> None:
    site = Site(*DB)
    site.finds(msgspec.structs.replace(finding("f1", "db-0"), snapshot={"pods": 7}))
    assert site.orders() == []
    site.snapshot = replace(site.snapshot, offsets={"pods": 7})
    site.now += QUIET
    assert [told(action) for action in site.orders()] == [("shop/StatefulSet/db", ["f1"])]


def test_a_report_has_its_bound_and_says_what_it_has_no_room_for() -> None:
    pods = [a_pod(f"p-{number}").owned_by("Job/crowd").on("n1") for number in range(2)]
    site = a_site(a_node("n1"), *pods)
    rows = {f"f{at:04}": finding(f"f{at:04}", "p-0", "p-1", severity="drift") for at in range(2000)}
    place = next(iter(places_of(rows["f0000"], site)))
    body = report(place, "prod", {id_: ["shop/p-0", "shop/p-1"] for id_ in rows}, rows, site)
    listed = len(body["results"])
    assert 0 < listed < 2000
    assert len(json.dumps(body["results"], separators=(",", ":"))) <= LARGEST
    assert (body["summary"]["fail"], body["metadata"]["annotations"]["underhost/not-listed"]) == (
        2000,
        str(2000 - listed),
    )
