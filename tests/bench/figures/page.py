"""docs/performance.md, written from the table of benches and their runs: nothing on it is kept by hand.

In: the runs. Out: the page. A value is the median of a bench's runs at its newest commit, with the least and the most.
"""

from collections.abc import Iterable, Sequence
from statistics import median

from bench.figures.runs import ENOUGH, Run, newest
from bench.figures.table import BENCHES, Figure
from support.commits import ROOT

PAGE = ROOT / "docs" / "performance.md"
HEAD = """# Speed and memory

Written by `make bench` from its own runs ([performance.jsonl](performance.jsonl)); nothing here is kept by hand. It
lists the benches; `make bench ARGS=NAME` runs one until it has {enough} runs at this commit, `make bench ARGS=all` all
of them, and either goes on where it was stopped. A figure is the median of the runs, with the least and the most, or of
one run. What stands beside it was measured in the same run on the same machine: compare those, since seconds differ
from machine to machine. By how much, the pace tells: how long a fixed loop took, beside the machine that the targets
were set on. At pace 3 computing takes three times as long; such a figure is told at pace 1, too, and "met at pace 1"
where that alone reaches the target. What waits (for quiet, for a server) is told as measured only. The last share is
what other programs took of all processors meanwhile, at most. A `+` behind a commit: the tree was changed since.

Measured on {machines}.

Where two are compared that must agree, they do, or the bench fails: placements with upstream's, the resident evaluator
with a full check, labels at the end of a storm with vcsim. Upstream's loop scores all nodes, except where it stands for
kube-scheduler's defaults: these stop looking once a tenth of 5,000 nodes fit.
"""
OLD = """
A figure without that share was kept by hand before there were rows; the next run of its bench replaces it.
"""
TOOK = """
All runs on this page took {minutes} minutes together.
"""
TABLE = "| figure | target | measured | beside it | bench, commit | |\n|---|---|---|---|---|---|"


def page(runs: Sequence[Run]) -> str:
    """The whole page: what was never measured is not on it."""
    counted = {name: newest(runs, name) for name in BENCHES}
    shown = [run for some in counted.values() for run in some]
    machines = sorted({run.machine for run in shown if run.machine})
    parts = [HEAD.format(enough=ENOUGH, machines="; ".join(machines) or "2 processors")]
    if any(run.others is None for run in shown):
        parts.append(OLD)
    elif shown and all(run.seconds is not None for run in shown):
        parts.append(TOOK.format(minutes=amount(sum(run.seconds or 0.0 for run in shown) / 60)))
    for section in dict.fromkeys(bench.section for bench in BENCHES.values()):
        rows = [
            row
            for name, bench in BENCHES.items()
            if bench.section == section
            for figure in bench.figures
            if (row := _row(name, figure, counted[name])) is not None
        ]
        parts += ["", f"## {section}", "", TABLE, *rows]
    return "\n".join(line.rstrip("\n") for line in parts) + "\n"


def _row(bench: str, figure: Figure, runs: Sequence[Run]) -> str | None:
    measured = [run for run in runs if figure.line in run.values]
    if not measured:
        return None
    values = [run.values[figure.line] for run in measured]
    others = [run.others for run in measured if run.others is not None]
    taken = f", {max(others):.0%}" if others else ""
    paces = [run.pace for run in measured if run.pace is not None]
    slow = f", pace {median(paces):.1f}" if paces else ""
    at_pace_1 = median([figure.at_pace_1(run.values[figure.line], run.pace or 1.0) for run in measured])
    also = f", {amount(at_pace_1)}{figure.unit} at pace 1" if figure.computing and paces else ""
    cells = (
        figure.what,
        target(figure),
        _spread(values, figure.unit) + also,
        _beside(figure, measured),
        f"`{bench}`, {measured[-1].commit}{slow}{taken}",
        verdict(figure, median(values), at_pace_1),
    )
    return "| " + " | ".join(cells) + " |"


def target(figure: Figure) -> str:
    """`≤ 30 ms`, "" where there is none."""
    bounds = (("≤", figure.most), ("≥", figure.least))
    return ", ".join(f"{sign} {amount(bound)}{figure.unit}" for sign, bound in bounds if bound is not None)


def verdict(figure: Figure, value: float, at_pace_1: float) -> str:
    """`met`, on this machine or at pace 1 only, or that it is missed, and by what it is limited."""
    met = figure.met(value)
    if met is None:
        return ""
    if met:
        return "met"
    if figure.met(at_pace_1):
        return "met at pace 1"
    return f"**missed**: {figure.limit}" if figure.limit else "**missed**"


def amount(value: float) -> str:
    """Three digits that count: `0.92`, `12.6`, `8,950`."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def _spread(values: Sequence[float], unit: str) -> str:
    if len(values) == 1:
        return f"{amount(values[0])}{unit} (1 run)"
    return f"{amount(median(values))}{unit} ({amount(min(values))} to {amount(max(values))})"


def _beside(figure: Figure, runs: Iterable[Run]) -> str:
    if figure.beside is None:
        return ""
    words, line, unit = figure.beside
    values = [run.values[line] for run in runs if line in run.values]
    return f"{words} {amount(median(values))}{unit}" if values else ""
