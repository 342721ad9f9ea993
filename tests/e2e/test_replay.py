"""The demo's story, told once more from its topics: what was wrong, and when."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from underhost.agents.evaluate.check import check
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.snapshots.history import SiteHistory
from underhost.schemas.records import FindingEvent, Placement
from underhost.schemas.topics import PLACEMENTS, VIOLATIONS
from underhost.streams.derived import rfc3339
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

PROGRAM = Path(sys.executable).parent / "underhost"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded log of a demo that is over."""
    path = tmp_path_factory.mktemp("replay") / "demo.db"
    done = subprocess.run([PROGRAM, "demo", "--once", "--embedded", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def replay(log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "replay", "--embedded", log, "--site", "demo", *arguments], capture_output=True, text=True
    )


async def story(log: Path) -> tuple[SiteHistory, list[tuple[int, FindingEvent]], list[Placement]]:
    """The past, the shared host's finding as it opened and was resolved, and the placements."""
    import msgspec

    reader = open_reader(KafkaSettings(embedded=log))
    past = await SiteHistory.read(reader, "demo")
    events, placements = [], []
    async for record in reader.history([VIOLATIONS, PLACEMENTS]):
        if record.value is not None and record.topic == PLACEMENTS.name:
            placements.append(msgspec.json.decode(record.value, type=Placement))
        elif record.value is not None:
            event = msgspec.json.decode(record.value, type=FindingEvent)
            if event.severity == "physical":
                events.append((record.timestamp, event))
    return past, events, placements


def physical(report: dict[str, Any]) -> list[str]:
    return [finding["id"] for finding in report["findings"] if finding["severity"] == "physical"]


def test_a_report_of_each_time_says_what_was_wrong_then(log: Path) -> None:
    past, events, _ = asyncio.run(story(log))
    opened = next(at for at, event in events if event.state == "opened")
    resolved = next(at for at, event in events if event.state == "resolved")
    found = {}
    for name, at in (("before", opened - 1000), ("open", opened), ("after", resolved)):
        done = replay(log, "--at", rfc3339(at / 1000), "-o", "json")
        assert done.returncode == (1 if name == "open" else 0), done.stderr  # as `check`
        found[name] = physical(json.loads(done.stdout))
    assert found == {"before": [], "open": [events[0][1].id], "after": []}
    assert [event.id for event in past.published(opened).values() if event.severity == "physical"] == found["open"]


def test_what_is_worked_out_anew_from_a_decisions_offsets_is_what_was_published(log: Path) -> None:
    past, events, _ = asyncio.run(story(log))
    for _, event in events:
        snapshot = past.of(event.snapshot)
        report = check(snapshot, options_of(Settings(site="demo")))
        messages = [one.message for one in report.findings if one.id == event.id]
        assert messages == ([] if event.state == "resolved" else [event.message])


def test_an_explanation_of_then_knows_the_nodes_of_then(log: Path) -> None:
    _, events, placements = asyncio.run(story(log))
    pod = placements[0].pod
    done = replay(log, "--at", rfc3339(events[0][0] / 1000), "--pod", pod)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{pod}: ")
    assert "kni-worker6" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--at", "20h"], "its history begins at 20", id="before it began"),
        pytest.param(["--at", "yesterday"], "'yesterday': a time is expected", id="no time"),
        pytest.param(
            ["--at", "1s", "--site", "other"],
            "site other: the topics hold nothing of it; they have demo (--site)",
            id="another site",
        ),
    ],
)
def test_what_cannot_be_told_is_one_line_and_exit_code_2(log: Path, arguments: list[str], said: str) -> None:
    done = replay(log, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
