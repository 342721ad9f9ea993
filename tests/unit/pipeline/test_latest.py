"""The last decisions of each site."""

from pathlib import Path

from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

from underhost.agents.pipeline.decide.evaluation import Decisions
from underhost.agents.pipeline.latest import Board
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.topics import VIOLATIONS

REPORT = Report([], {}, {})


def test_what_an_evaluation_was_not_asked_for_stands_as_it_was() -> None:
    board = Board()
    assert board.latest("prod") is None
    board.put("prod", Decisions(Snapshot(offsets={"pods": 1}), report=REPORT))
    board.put("prod", Decisions(Snapshot(offsets={"pods": 2})))
    latest = board.latest("prod")
    assert latest is not None and (latest.snapshot.offsets, latest.report) == ({"pods": 2}, REPORT)


def test_a_listener_is_told_of_each_new_picture_and_of_the_end() -> None:
    board = Board()
    told: list[tuple[str, Decisions | None]] = []
    end = board.listen(lambda site, decisions: told.append((site, decisions)))
    first = Decisions(Snapshot(), report=REPORT)
    board.put("prod", first)
    board.put("prod", Decisions(first.snapshot))  # time has passed, nothing else
    board.clear()
    end()
    board.put("prod", first)
    assert told == [("prod", first), ("prod", None)]
    assert board.sites() == ["prod"]


async def test_a_worker_shows_what_it_has_decided(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    cluster.node("n2", "h1")
    cluster.pod("db-0", "n1", app="db")
    cluster.pod("db-1", "n2", app="db")
    board = Board()
    async with running(settings_in(tmp_path), cluster, board=board) as worker:
        await worker.until(lambda: bool(worker.records(VIOLATIONS)) and board.latest("default") is not None)
        latest = board.latest("default")
    assert latest is not None and latest.report is not None and latest.findings is not None
    assert {node: row.host_name for node, row in latest.snapshot.node_hosts.items()} == {"n1": "h1", "n2": "h1"}
    assert [finding.message for finding in latest.report.findings] == ["2 pods of db on h1"]
    assert [(event.id, event.state) for event in latest.findings.open.values()] == [("db-h1", "opened")]
    assert board.latest("default") is None  # the worker has ended
