"""The regime `old-defects`: each defect of `mutants.py`, brought back, has to be found within a thousand seeds.

In: until when, and a folder. Out: a `Tally` of the defects; one that is not found shows what the simulation does not
look at. Interface: `trust/regime.py`.
"""

import os
import subprocess
import time
from pathlib import Path

import msgspec
from trust.regime import Tally
from trust.simulation.mutants import MUTANTS
from trust.simulation.regime import SeedResult, results_of, start

SEEDS, AT_ONCE = 1000, 10


class Search(msgspec.Struct):
    """How far one defect is looked for: seeds so far, and what found it first, "" while nothing has."""

    seeds: int = 0
    found: str = ""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to try."""
        return bool(self.found) or self.seeds >= SEEDS

    def add(self, results: list[SeedResult]) -> None:
        """The next seeds, in their order."""
        for result in results:
            if not self.is_over:
                self.seeds += 1
                self.found = result.violations[0] if result.violations else ""


def run(until: float, state: Path) -> Tally:
    """See `Regime`."""
    file = state / "searches.json"
    kept = msgspec.json.decode(file.read_bytes(), type=dict[str, Search]) if file.exists() else {}
    searches = {name: kept.get(name, Search()) for name in MUTANTS}
    while time.monotonic() < until and (left := [name for name in MUTANTS if not searches[name].is_over]):
        running = [(name, look(name, searches[name].seeds)) for name in left[: os.cpu_count() or 1]]
        for name, process in running:
            searches[name].add(list(results_of(process)))
        file.write_bytes(msgspec.json.encode(searches))
    over = {name: search for name, search in searches.items() if search.is_over}
    missed = [f"{name}: not found in {search.seeds} seeds" for name, search in over.items() if not search.found]
    figures = ", ".join(f"{name}: {search.seeds} seeds" for name, search in over.items() if search.found)
    return Tally(len(over), len(missed), figures, missed, len(over) == len(MUTANTS))


def look(name: str, first: int) -> "subprocess.Popen[str]":
    """A process that looks for a defect in the next seeds, and ends with the first that shows it."""
    return start(f"{first}:{first + AT_ONCE}", "--first", "--mutant", name)
