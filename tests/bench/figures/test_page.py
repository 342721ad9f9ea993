"""docs/performance.md is what its runs say, and a run is kept with its commit."""

from pathlib import Path

import pytest
from bench.figures.page import PAGE, amount, page, target, verdict
from bench.figures.runs import Run, load, newest, save, with_run
from bench.figures.table import BENCHES, Figure


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
    assert (target(figure), verdict(figure, value)) == said


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
