"""The regime `simulation`: seed after seed, a process for each processor. Interface: `trust/regime.py`.

In: until when, and a folder. Out: a `Tally` of the seeds so far. Each seed is a whole story of its own, so that it is
replayed by its number alone.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from trust.regime import Tally, load, save

SEEDS = 10_000
AT_ONCE = 200
"""Seeds of one process: a few minutes of work, which is lost where a run is interrupted. To start costs two seeds."""
TESTS = Path(__file__).parents[2]


class SeedResult(msgspec.Struct):
    """A line of `python -m trust.simulation`."""

    seed: int
    violations: list[str]
    events: int
    faults: dict[str, int]
    trace: str
    seconds: float


def run(until: float, state: Path) -> Tally:
    """See `Regime`."""
    progress, file = load(state), state / "figures.json"
    figures = msgspec.json.decode(file.read_bytes(), type=Figures) if file.exists() else Figures()

    def play(first: int) -> list[SeedResult]:
        seeds = f"{first}:{min(first + AT_ONCE, SEEDS)}"
        return list(results_of(start(seeds))) if time.monotonic() < until else []

    with ThreadPoolExecutor(os.cpu_count()) as processes:
        for results in processes.map(play, range(progress.next, SEEDS, AT_ONCE)):
            if not results:
                break  # the time is over; what others have begun after these seeds is tried again
            for result in results:
                figures.add(result)
                if result.violations:
                    told = f"seed {result.seed}: {result.violations[0]}"
                    progress.failures.append(f"{told} — replay: {replay(result.seed)}")
            progress.lost = len(progress.failures)
            progress.next += len(results)
            file.write_bytes(msgspec.json.encode(figures))
            save(state, progress)
    return Tally(progress.next, progress.lost, str(figures), progress.failures, progress.next >= SEEDS)


class Figures(msgspec.Struct):
    """What was measured: the sums of all seeds, and the least of any."""

    seeds: int = 0
    events: int = 0
    faults: int = 0
    seconds: float = 0.0
    fewest_events: int = 1 << 30
    fewest_faults: int = 1 << 30

    def add(self, result: SeedResult) -> None:
        """One more seed."""
        faults = sum(result.faults.values())
        self.seeds, self.seconds = self.seeds + 1, self.seconds + result.seconds
        self.events, self.faults = self.events + result.events, self.faults + faults
        self.fewest_events, self.fewest_faults = min(self.fewest_events, result.events), min(self.fewest_faults, faults)

    def __str__(self) -> str:
        if not self.seeds:
            return ""
        events = f"{self.events:,} events (≥ {self.fewest_events} a seed)"
        faults = f"{self.faults:,} faults (≥ {self.fewest_faults})"
        return f"{events}, {faults}, {self.seconds / self.seeds:.2f} s of a processor a seed"


def replay(seed: int) -> str:
    """The command that tells all that happens in a seed."""
    return f"cd tests && ../.venv/bin/python -m trust.simulation --seeds {seed} --loud"


def start(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """A process that runs ranges of seeds; `arguments` are those of `python -m trust.simulation` after `--seeds`."""
    return subprocess.Popen(
        [sys.executable, "-m", "trust.simulation", "--seeds", *arguments],
        cwd=TESTS,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results_of(process: "subprocess.Popen[str]") -> Iterable[SeedResult]:
    """What it found. Raises RuntimeError where the simulation itself has failed."""
    out, err = process.communicate()
    if process.returncode not in (0, 1) or (process.returncode and not out):
        raise RuntimeError(f"the simulation ended with {process.returncode}: {err[-3000:]}")
    return [msgspec.json.decode(line, type=SeedResult) for line in out.splitlines()]
