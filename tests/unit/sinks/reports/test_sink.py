"""Reports: what is written, what is left alone, and what a look at all of them puts right."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from underhost.agents.sinks.orders import order
from underhost.agents.sinks.ports import HeldReport
from underhost.agents.sinks.reports.sink import ReportSink
from underhost.schemas.commands import REPORT
from underhost.schemas.errors import Gone, Refused, UnderhostError, Unreachable


class FakeReports:
    """A cluster's reports by `NAMESPACE/NAME`, and what was written; `foreign` are those of others.

    `faults` are what the next writes come to, one each: a report is written all the same, and none is removed.
    """

    def __init__(self, held: Mapping[str, str] = {}, foreign: frozenset[str] = frozenset()) -> None:
        self.held = {key: HeldReport(f"uid of {key}", digest) for key, digest in held.items()}
        self.foreign, self.writes, self.lists = foreign, list[str](), 0
        self.served, self.faults = True, list[Exception]()

    async def reports(self, label: str, value: str, annotation: str) -> dict[str, HeldReport]:
        if not self.served:
            raise Gone("the server could not find the requested resource (404)")
        assert (label, value, annotation) == ("underhost/site", "prod", "underhost/content")
        self.lists += 1
        return dict(self.held)

    async def has_report(self, namespace: str, name: str) -> bool:
        return f"{namespace}/{name}" in self.held.keys() | self.foreign

    async def apply_report(self, namespace: str, name: str, report: Mapping[str, object]) -> str:
        digest = report["metadata"]["annotations"]["underhost/content"]  # type: ignore[index]
        self.writes.append(f"apply {namespace}/{name} {digest}")
        self.held[f"{namespace}/{name}"] = HeldReport("new", digest)
        if self.faults:
            raise self.faults.pop()
        return "new"

    async def delete_report(self, namespace: str, name: str, uid: str) -> None:
        if self.faults:
            raise self.faults.pop()
        self.writes.append(f"delete {namespace}/{name} {uid}")
        del self.held[f"{namespace}/{name}"]


def says(digest: str, fail: int = 1) -> dict[str, Any]:
    return {"metadata": {"annotations": {"underhost/content": digest}}, "summary": {"fail": fail}}


@pytest.mark.parametrize(
    ("there", "desired", "expected", "writes"),
    [
        pytest.param(
            {}, {"report": says("d1", 2)}, ("applied", "r tells of 2 findings"), ["apply shop/r d1"], id="new"
        ),
        pytest.param({"shop/r": "d1"}, {"report": says("d1")}, ("noop", "r says so already"), [], id="so already"),
        pytest.param(
            {"shop/r": "d0"},
            {"report": says("d1")},
            ("applied", "r tells of 1 finding"),
            ["apply shop/r d1"],
            id="other",
        ),
        pytest.param(
            {"shop/r": "d1"},
            {"report": None},
            ("applied", "r is removed: its findings are resolved"),
            ["delete shop/r uid of shop/r"],
            id="nothing is open any more",
        ),
        pytest.param({}, {"report": None}, ("noop", "r is not there"), [], id="never written"),
    ],
)
async def test_a_report_is_written_where_it_differs(
    there: dict[str, str], desired: dict[str, Any], expected: tuple[str, str], writes: list[str]
) -> None:
    cluster = FakeReports(there)
    said = await ReportSink(cluster, "prod").apply(order(REPORT, "report/shop/r", desired, "", {}))
    assert (said.result, said.reason) == expected
    assert cluster.writes == writes


async def test_what_is_there_is_listed_once() -> None:
    cluster = FakeReports({"shop/r": "d1", "/c": "d2"})
    sink = ReportSink(cluster, "prod")
    for target, digest in (("report/shop/r", "d1"), ("report//c", "d2"), ("report/shop/r", "d1")):
        said = await sink.apply(order(REPORT, target, {"report": says(digest)}, "", {}))
        assert said.result == "noop"
    assert (cluster.lists, cluster.writes) == (1, [])


async def test_a_report_of_somebody_else_is_left_alone() -> None:
    cluster = FakeReports(foreign=frozenset({"shop/r"}))
    said = await ReportSink(cluster, "prod").apply(order(REPORT, "report/shop/r", {"report": says("d")}, "", {}))
    assert (said.result, said.reason, cluster.writes) == ("refused", "r is somebody else's", [])


async def test_a_look_at_all_removes_what_an_earlier_run_has_left() -> None:
    cluster = FakeReports({"shop/r": "d1", "shop/old": "d0"})
    sweep = order(REPORT, "reports/prod", {"keep": {"shop/r": "d1", "shop/new": ""}}, "", {})
    said = await ReportSink(cluster, "prod").apply(sweep)
    assert (said.result, cluster.writes) == ("applied", ["delete shop/old uid of shop/old"])


async def test_a_report_that_was_written_without_an_answer_is_known_for_ours() -> None:
    cluster = FakeReports()
    cluster.faults = [Unreachable("no answer")]
    sink, action = ReportSink(cluster, "prod"), order(REPORT, "report/shop/r", {"report": says("d1")}, "", {})
    said = [await sink.apply(action) for _ in range(2)]
    assert [(one.result, one.reason) for one in said] == [("failed", "no answer"), ("noop", "r says so already")]


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param(Unreachable("no answer"), "failed", id="no answer"),
        pytest.param(Refused("no right"), "refused", id="no right"),
    ],
)
async def test_a_report_that_could_not_be_removed_is_removed_later(fault: UnderhostError, result: str) -> None:
    cluster = FakeReports({"shop/r": "d1"})
    cluster.faults = [fault]
    sink, action = ReportSink(cluster, "prod"), order(REPORT, "report/shop/r", {"report": None}, "", {})
    said = [await sink.apply(action) for _ in range(2)]
    assert [one.result for one in said] == [result, "applied"]
    assert cluster.held == {}


def removed(cluster: FakeReports) -> None:
    del cluster.held["shop/r"]


def changed(cluster: FakeReports) -> None:
    cluster.held["shop/r"] = HeldReport("uid of shop/r", "d9")


@pytest.mark.parametrize("happens", [removed, changed])
async def test_a_look_at_all_finds_what_is_not_as_it_was_written(happens: Callable[[FakeReports], None]) -> None:
    cluster = FakeReports({"shop/r": "d1"})
    sink = ReportSink(cluster, "prod")
    await sink.apply(order(REPORT, "report/shop/r", {"report": says("d1")}, "", {}))
    happens(cluster)  # by a person
    said = await sink.apply(order(REPORT, "reports/prod", {"keep": {"shop/r": "d1"}}, "", {}))
    assert (said.result, said.reason) == ("failed", "1 report is not as it was written")
    again = await sink.apply(order(REPORT, "report/shop/r", {"report": says("d1")}, "", {}))
    assert (again.result, cluster.writes) == ("applied", ["apply shop/r d1"])


async def test_a_cluster_without_the_definitions_is_told_what_it_lacks() -> None:
    cluster = FakeReports()
    cluster.served = False
    said = await ReportSink(cluster, "prod").apply(order(REPORT, "report/shop/r", {"report": says("d")}, "", {}))
    assert (said.result, said.reason) == ("refused", "no reports are served: install the CRDs of openreports.io")
