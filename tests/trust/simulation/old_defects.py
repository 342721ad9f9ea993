"""The regime `old-defects`: each defect of `mutants.py`, brought back, has to be found within a thousand seeds.

In: until when, and a folder. Out: a `Tally` of the defects; one that is not found shows what the simulation does not
look at. Interface: `trust/regime.py`.
"""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import msgspec
from trust.regime import Tally
from trust.simulation.mutants import MUTANTS
from trust.simulation.regime import SeedResult, results_of, start

SEEDS, AT_ONCE = 1000, 100
"""Seeds that a defect is looked for in, and those of one process, which ends with the first that shows it."""


ENDED = "the worker ended with "
"""How the simulation says that the worker has raised."""


class Search(msgspec.Struct):
    """How far one defect is looked for: seeds so far, and what found it first, "" while nothing has."""

    seeds: int = 0
    found: str = ""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to try."""
        return bool(self.found) or self.seeds >= SEEDS

    def add(self, results: list[SeedResult]) -> None:
        """The next seeds, in their order.

        Raises RuntimeError where the worker ended with an error: the defect was planted in code that has changed since,
        and that it does not fit is no finding.
        """
        for result in results:
            if ends := [line for line in result.violations if line.startswith(ENDED)]:
                raise RuntimeError(f"what is brought back does not fit the code: {ends[0]} (seed {result.seed})")
            if not self.is_over:
                self.seeds += 1
                self.found = result.violations[0] if result.violations else ""


def run(until: float, state: Path) -> Tally:
    """See `Regime`."""
    file = state / "searches.json"
    kept = msgspec.json.decode(file.read_bytes(), type=dict[str, Search]) if file.exists() else {}
    searches = {name: kept.get(name, Search()) for name in MUTANTS}
    changed = Lock()

    def search(name: str) -> None:
        one = searches[name]
        while time.monotonic() < until and not one.is_over:
            results = list(results_of(look(name, one.seeds)))
            with changed:
                one.add(results)
                file.write_bytes(msgspec.json.encode(searches))

    with ThreadPoolExecutor(os.cpu_count()) as processes:
        list(processes.map(search, MUTANTS))
    over = {name: search for name, search in searches.items() if search.is_over}
    missed = [f"{name}: not found in {search.seeds} seeds" for name, search in over.items() if not search.found]
    figures = ", ".join(f"{name}: {search.seeds} seeds" for name, search in over.items() if search.found)
    return Tally(len(over), len(missed), figures, missed, len(over) == len(MUTANTS))


def look(name: str, first: int) -> "subprocess.Popen[str]":
    """A process that looks for a defect in the next seeds, and ends with the first that shows it."""
    return start(f"{first}:{first + AT_ONCE}", "--first", "--mutant", name)
