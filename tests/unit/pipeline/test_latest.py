"""The last decisions of each site."""

from pathlib import Path

from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.topics import VIOLATIONS

REPORT = Report([], {}, {})


def test_what_an_evaluation_was_not_asked_for_stands_as_it_was() -> None:
    latest = LatestDecisions()
    assert latest.of("prod") is None
    latest.put("prod", Decisions(Snapshot(offsets={"pods": 1}), report=REPORT))
    latest.put("prod", Decisions(Snapshot(offsets={"pods": 2})))
    newest = latest.of("prod")
    assert newest is not None and (newest.snapshot.offsets, newest.report) == ({"pods": 2}, REPORT)


def test_a_listener_is_told_of_each_new_picture_and_of_the_end() -> None:
    latest = LatestDecisions()
    told: list[tuple[str, Decisions | None]] = []
    end = latest.listen(lambda site, decisions: told.append((site, decisions)))
    first = Decisions(Snapshot(), report=REPORT)
    latest.put("prod", first)
    latest.put("prod", Decisions(first.snapshot))  # time has passed, nothing else
    latest.clear()
    end()
    latest.put("prod", first)
    assert told == [("prod", first), ("prod", None)]
    assert latest.sites() == ["prod"]


async def test_a_worker_shows_what_it_has_decided(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    cluster.node("n2", "h1")
    cluster.pod("db-0", "n1", app="db")
    cluster.pod("db-1", "n2", app="db")
    latest = LatestDecisions()
    async with running(settings_in(tmp_path), cluster, latest=latest) as worker:
        await worker.until(lambda: bool(worker.records(VIOLATIONS)) and latest.of("default") is not None)
        decided = latest.of("default")
    assert decided is not None and decided.report is not None and decided.findings is not None
    assert {node: row.host_name for node, row in decided.snapshot.node_hosts.items()} == {"n1": "h1", "n2": "h1"}
    assert [finding.message for finding in decided.report.findings] == ["2 pods of db on h1"]
    assert [(event.id, event.state) for event in decided.findings.open.values()] == [("db-h1", "opened")]
    assert latest.of("default") is None  # the worker has ended
