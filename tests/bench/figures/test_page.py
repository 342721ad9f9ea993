"""docs/performance.md is what its runs say, and a run is kept with its commit."""

from pathlib import Path

import msgspec
import pytest
from bench.figures.page import PAGE, amount, page, target, verdict
from bench.figures.runs import Run, load, newest, save, with_run
from bench.figures.table import BENCHES, Figure, work


def a_run(bench: str = "check", commit: str = "c1", value: float = 1.0) -> Run:
    return Run(bench, commit, "2026-11-25", {"150,000 pods: whole command, s": value}, 0.04, "2 processors")


def test_the_page_is_what_its_runs_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(load())


def test_a_figure_that_was_measured_is_on_the_page_with_its_spread_and_verdict() -> None:
    row = next(
        line for line in page([a_run(value=value) for value in (1.7, 1.6, 2.4)]).splitlines() if "| ≤ 1.5 s" in line
    )
    assert row.startswith(
        "| 150,000 pods: whole command | ≤ 1.5 s | 1.7 s (1.6 to 2.4) |  | `check`, c1, 4% | **missed**: "
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param((60.0, 90.0, 120.0), ["All runs on this page took 4.5 minutes together."], id="each was timed"),
        pytest.param((60.0, None, 120.0), [], id="one was not"),
    ],
)
def test_the_page_says_how_long_its_runs_took_together(seconds: tuple[float | None, ...], said: list[str]) -> None:
    runs = [msgspec.structs.replace(a_run(), seconds=one) for one in seconds]
    assert [line for line in page(runs).splitlines() if "together" in line] == said


def test_only_the_runs_of_a_benchs_newest_commit_count() -> None:
    runs = [a_run(commit="c1"), a_run("drs", "c1"), a_run(commit="c2"), a_run(commit="c2", value=2.0)]
    assert [run.values["150,000 pods: whole command, s"] for run in newest(runs, "check")] == [1.0, 2.0]


def test_of_each_bench_the_last_three_runs_of_two_commits_are_kept() -> None:
    runs: list[Run] = [a_run("drs", "c0")]
    for commit in ("c1", "c2", "c3"):
        for value in range(5):
            runs = with_run(runs, a_run(commit=commit, value=value))
    kept = [(run.bench, run.commit, run.values["150,000 pods: whole command, s"]) for run in runs]
    of_check = [("check", commit, value) for commit in ("c2", "c3") for value in (2.0, 3.0, 4.0)]
    assert kept == [("drs", "c0", 1.0), *of_check]


def test_runs_are_read_as_they_were_kept(tmp_path: Path) -> None:
    runs = [a_run(), a_run("drs", value=0.25)]
    save(runs, tmp_path / "runs.jsonl")
    assert (load(tmp_path / "runs.jsonl"), load(tmp_path / "none.jsonl")) == (runs, [])


@pytest.mark.parametrize(
    ("figure", "value", "said"),
    [
        pytest.param(Figure("w", "l", " ms", most=30), 30.0, ("≤ 30 ms", "met"), id="at most, met"),
        pytest.param(Figure("w", "l", " ms", most=30), 30.1, ("≤ 30 ms", "**missed**"), id="at most, missed"),
        pytest.param(
            Figure("w", "l", "×", least=8_000, limit="Faust"), 7_999.0, ("≥ 8,000×", "**missed**: Faust"), id="why"
        ),
        pytest.param(Figure("w", "l"), 1.0, ("", ""), id="no target"),
    ],
)
def test_a_target_is_said_and_judged(figure: Figure, value: float, said: tuple[str, str]) -> None:
    assert (target(figure), verdict(figure, value, value)) == said


@pytest.mark.parametrize(
    ("figure", "value", "pace", "at_pace_1", "said"),
    [
        pytest.param(work("w", "l", " s", most=30), 60.0, 2.0, 30.0, "met at pace 1", id="seconds of work"),
        pytest.param(work("w", "l", " s", most=30), 66.0, 2.0, 33.0, "**missed**", id="missed at pace 1, too"),
        pytest.param(work("w", "l", " s", most=30), 20.0, 0.5, 40.0, "met", id="met here, on a fast machine"),
        pytest.param(work("w", "l", " a second", least=8_000), 4_000.0, 2.0, 8_000.0, "met at pace 1", id="a rate"),
        pytest.param(Figure("w", "l", " ms", most=60), 120.0, 2.0, 120.0, "**missed**", id="waiting"),
    ],
)
def test_what_is_computing_is_judged_at_pace_1_too(
    figure: Figure, value: float, pace: float, at_pace_1: float, said: str
) -> None:
    assert figure.at_pace_1(value, pace) == at_pace_1
    assert verdict(figure, value, figure.at_pace_1(value, pace)) == said


def test_the_page_tells_the_pace_beside_a_figure_of_work() -> None:
    runs = [msgspec.structs.replace(a_run(value=value), pace=3.0) for value in (4.5, 3.9, 4.2)]
    row = next(line for line in page(runs).splitlines() if "| ≤ 1.5 s" in line)
    measured = "4.2 s (3.9 to 4.5), 1.4 s at pace 1"
    assert (
        row == f"| 150,000 pods: whole command | ≤ 1.5 s | {measured} |  | `check`, c1, pace 3.0, 4% | met at pace 1 |"
    )


@pytest.mark.parametrize(
    ("value", "said"), [(0.0, "0"), (0.917, "0.917"), (9.1, "9.1"), (12.62, "12.6"), (455.4, "455"), (8_950.0, "8,950")]
)
def test_an_amount_has_the_digits_that_count(value: float, said: str) -> None:
    assert amount(value) == said


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_is_a_module_whose_figures_have_names_of_their_own(name: str) -> None:
    bench = BENCHES[name]
    lines = [figure.line for figure in bench.figures]
    assert Path(__file__).parents[1].joinpath(*bench.module.split(".")).with_suffix(".py").is_file()
    assert len(lines) == len(set(lines))


def test_what_limits_each_figure_that_was_missed_is_told() -> None:
    assert [row for row in PAGE.read_text(encoding="utf-8").splitlines() if "| **missed** |" in row] == []
