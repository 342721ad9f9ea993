"""The runs of benches that docs/performance.md is made of: docs/performance.jsonl, a run a line.

In: what a bench printed. Out: the same as a run with its commit, kept; and of each bench the runs that count, which are
those of its newest commit.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from support.commits import ROOT

KEPT = ROOT / "docs" / "performance.jsonl"
ENOUGH = 3
"""Runs of one bench at one commit: their median is what the page says."""


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run of one bench.

    Attributes:
        commit: the short hash of what was measured. date: a day, 2026-11-25.
        values: what it printed, by name.
        others: the share of all processors that others took meanwhile, 0 to 1; None where nobody looked.
        machine: what it ran on, in a few words.
        pace: how long a fixed loop took before and after it, beside pace 1 (`bench.pace`); None where nobody looked.
        seconds: how long the run took on the clock, with all that it starts; None where nobody looked.
    """

    bench: str
    commit: str
    date: str
    values: dict[str, float]
    others: float | None = None
    machine: str = ""
    pace: float | None = None
    seconds: float | None = None


def load(file: Path = KEPT) -> list[Run]:
    """All runs, in the order in which they were made."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Run) for line in lines if line]


def save(runs: Iterable[Run], file: Path = KEPT) -> None:
    """Keep these runs: the file is replaced whole, so that an interrupted run leaves it as it was."""
    written = file.with_suffix(".new")
    written.write_bytes(b"".join(msgspec.json.encode(run) + b"\n" for run in runs))
    written.replace(file)


def with_run(runs: Sequence[Run], run: Run) -> list[Run]:
    """The runs with one more. Of a bench, its two newest commits are kept, the last `ENOUGH` runs of each."""
    of_bench = [one for one in (*runs, run) if one.bench == run.bench]
    commits = list(dict.fromkeys(one.commit for one in reversed(of_bench)))[:2]
    kept = [one for commit in commits for one in [of for of in of_bench if of.commit == commit][-ENOUGH:]]
    return [one for one in (*runs, run) if one.bench != run.bench or one in kept]


def newest(runs: Iterable[Run], bench: str) -> list[Run]:
    """The runs of a bench that count: those of the commit of its last run."""
    of_bench = [run for run in runs if run.bench == bench]
    return [run for run in of_bench if run.commit == of_bench[-1].commit]
