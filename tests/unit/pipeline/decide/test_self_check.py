"""The self-check: what it does about an evaluator that keeps something wrong."""

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from support.build import HOST, a_pod, a_site, app, nodes, term
from support.sites.changing import ChangingSite

from underhost.agents.compiled.site import Place
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.evaluate.marker import Marker
from underhost.agents.pipeline.decide.reproduction import difference, reproduce
from underhost.agents.pipeline.decide.self_check import SelfCheck
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import Report
from underhost.schemas.kubernetes import Pod
from underhost.streams.files.reader import load_files
from underhost.streams.settings.self_check import SelfCheckSettings

FORGOTTEN = "shop/db-1"


class Forgetful(Marker):
    """An index that forgets one pod: when it comes, nothing is judged anew. So much is planted."""

    def arrive(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        if key != FORGOTTEN:
            super().arrive(snapshot, key, pod, place)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("underhost.agents.evaluate.evaluator.Marker", Forgetful)


def a_day(db: bool) -> Snapshot:
    """Forty pods on eight nodes; with `db` a second replica of a database comes to where the first one runs."""
    apart = term(HOST, app("db"))
    pods = [a_pod(f"web-{number}").labels(app="web").on(f"n{number % 8}") for number in range(40)]
    pods += [a_pod(f"db-{number}").labels(app="db").apart(apart).on("n3") for number in range(2 if db else 1)]
    return a_site(*nodes(*(f"n{number}" for number in range(8))), *pods, site="prod")


class Site:
    """One site with an evaluator that lives from change to change, and its self-check."""

    def __init__(self, folder: Path | None = None) -> None:
        self.options, self.metrics, self.latest = Options(), Metrics(), LatestDecisions()
        self.evaluator = Evaluator(self.options)
        self.renewed: list[str] = []
        self.failure: str | None = None
        self.check = SelfCheck(
            SelfCheckSettings(folder=folder),
            self.options,
            self.latest,
            self.metrics,
            failure=lambda site: self.failure,
            renew=self.renew,
            make=Evaluator,  # type: ignore[arg-type]
        )

    def renew(self, site: str) -> None:
        self.renewed.append(site)
        self.evaluator = Evaluator(self.options)

    def decide(self, snapshot: Snapshot) -> Report:
        report = self.evaluator.update(snapshot)
        self.latest.put("prod", Decisions(snapshot, report=report))
        return report

    def count(self, result: str) -> float:
        labels = {"site": "prod", "result": result}
        return self.metrics.registry.get_sample_value("underhost_self_check_results_total", labels) or 0.0


async def test_an_evaluator_that_forgets_one_pod_is_found_out_shown_and_made_anew(
    planted: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path / "found")
    site.decide(a_day(db=False))
    assert await site.check.look("prod") == "equal"
    assert site.decide(a_day(db=True)).findings == []
    assert await site.check.look("prod") == "different"
    assert (site.renewed, site.count("equal"), site.count("different")) == (["prod"], 1.0, 1.0)
    # What another test left may tell of itself while this one runs.
    ours = [record for record in caplog.records if record.name.startswith("underhost")]
    [record] = [record for record in ours if record.levelname == "ERROR"]
    said = record.getMessage()
    assert said.startswith(
        "site prod: the self-check found a difference, the evaluator is made anew; lacking: violation "
    )
    assert "; wrong: nothing; it is shown by: nodes/n3, pods/shop/db-0, pods/shop/db-1; written to " in said
    assert [finding.severity for finding in site.decide(a_day(db=True)).findings] == ["violation"]
    assert await site.check.look("prod") == "equal"

    before, after = sorted((tmp_path / "found").iterdir(), reverse=True)
    assert (before.name.endswith("-before.json"), before.stat().st_mode & 0o777) == (True, 0o600)
    assert sorted(read(before).pods) == ["shop/db-0"]
    assert sorted(read(after).pods) == ["shop/db-0", "shop/db-1"]
    kept = Evaluator(site.options)
    kept.update(read(before))
    assert difference(kept.update(read(after)), check(read(after), site.options))


def read(path: Path) -> Snapshot:
    """As `underhost check -f` reads it."""
    return snapshot_of(load_files([path]), manifests=False)[0]


async def test_without_a_folder_the_log_alone_names_the_objects(
    planted: None, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    site.decide(a_day(db=False))
    site.decide(a_day(db=True))
    assert await site.check.look("prod") == "different"
    assert caplog.records[-1].getMessage().endswith("it is shown by: nodes/n3, pods/shop/db-0, pods/shop/db-1")


async def test_nothing_is_said_of_a_site_whose_last_evaluation_came_to_nothing(planted: None) -> None:
    site = Site()
    assert await site.check.look("prod") is None
    site.decide(a_day(db=False))
    site.decide(a_day(db=True))
    site.failure = "an object breaks the API's rules"
    assert await site.check.look("prod") is None
    assert site.renewed == []


class Panic(BaseException):
    """As polars raises, when Rust code panics: it is no Exception."""


@pytest.mark.parametrize("planted_error", [RuntimeError("planted"), Panic("planted")], ids=["an error", "a panic"])
async def test_a_check_that_raises_is_counted_and_the_evaluator_stays(
    planted_error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(snapshot: Snapshot, options: Options) -> Report:
        raise planted_error

    site = Site()
    site.decide(a_day(db=False))
    monkeypatch.setattr("underhost.agents.evaluate.check.check", fails)
    assert await site.check.look("prod") == "failed"
    assert (site.count("failed"), site.renewed) == (1.0, [])


@pytest.mark.parametrize("seed", range(3))
async def test_an_evaluator_that_is_right_is_never_made_anew(seed: int) -> None:
    changing, site = ChangingSite(random.Random(seed)), Site()
    for _ in range(10):
        for _ in range(5):
            changing.change()
        site.decide(replace(changing.snapshot, site="prod"))
        assert await site.check.look("prod") == "equal"


async def test_what_no_single_step_shows_is_told_by_the_objects_that_are_named() -> None:
    snapshot, options = a_day(db=True), Options()
    right = check(snapshot, options)
    wrong = Report(findings=[], budgets={}, summary={})
    found = reproduce(snapshot, difference(wrong, right), lambda before, after: right, lambda after: right)
    assert (found.replays, found.objects) == (False, ["nodes/n3", "pods/shop/db-0", "pods/shop/db-1"])


async def test_sites_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    site, looked, enough = Site(), list[str](), asyncio.Event()
    for name in ("a", "b", "c"):
        site.latest.put(name, Decisions(a_day(db=False)))

    async def look(name: str) -> None:
        looked.append(name)
        if len(looked) == 4:
            enough.set()

    monkeypatch.setattr(site.check, "look", look)
    monkeypatch.setattr(site.check, "_settings", SelfCheckSettings(interval=0.001))
    site.check.start(lambda task: None)
    await asyncio.wait_for(enough.wait(), 60)
    await site.check.stop()
    assert looked[:4] == ["a", "b", "c", "a"]


def a_volume(pod: Pod, volume: dict[str, object]) -> Pod:
    spec = msgspec.structs.replace(pod.spec, volumes=msgspec.Raw(json.dumps([volume]).encode()))
    return msgspec.structs.replace(pod, spec=spec)


def read_text(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.iterdir()]


async def test_no_reproduction_holds_a_volume(planted: None, tmp_path: Path) -> None:
    site, secret = Site(tmp_path), {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"password": "hidden"}}}
    for db in (False, True):
        day = a_day(db=db)
        pods = {key: a_volume(pod, secret) for key, pod in day.pods.items()}
        site.decide(replace(day, pods=pods))
    assert await site.check.look("prod") == "different"
    text = "".join(read_text(tmp_path))
    assert "db-1" in text
    assert "hidden" not in text
