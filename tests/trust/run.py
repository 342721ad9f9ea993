"""`make trust ARGS=NAME`: run a trust regime for at most half an hour, from where it stopped; say what it has found.

In: the name of a regime and how many minutes it may take. Out: its row in docs/trust.md, the lines of its failures, and
exit code 1 if there is one. What a regime has to remember is in `build/trust/NAME/COMMIT`, which Git ignores: another
commit of the code begins anew.
"""

import argparse
import importlib
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from support.commits import ROOT, tried
from support.processes.programs import end_on_term
from trust.regime import Regime, Tally
from trust.rows import Row, duration, with_row

PAGE = ROOT / "docs" / "trust.md"
STATE = ROOT / "build" / "trust"


@dataclass(frozen=True)
class Entry:
    """A regime of the table: the module that has its `run`, what it tries, and its longest run in minutes."""

    module: str
    tries: str
    minutes: float = 30


REGIMES: Mapping[str, Entry] = {
    "abuse": Entry(
        "trust.abuse.regime", "everybody who means harm over HTTP, while a probe asks for health", minutes=10
    ),
    "brokers": Entry("trust.jepsen.brokers", "one of three brokers killed or frozen for a minute under three workers"),
    "inputs": Entry(
        "trust.inputs.regime", "files changed at random: every command reads or refuses them within bounds"
    ),
    "kills": Entry("trust.jepsen.kills", "`kill -9` of one of three workers at a random moment"),
    "networks": Entry("trust.jepsen.networks", "the owner cut off from Kafka while another worker takes over"),
    "quorums": Entry("trust.quorums", "random sites with quorums, and every host of each lost, by brute force"),
    "repair": Entry("trust.repairs", "plans of `underhost repair` against another exact model on another solver"),
    "sieve": Entry("trust.sieve.rounds", "workers killed at every write, shown too little, or the past (real parts)"),
    "small-scope": Entry("trust.scope.regime", "evictor, binder and DRS in every order on every tiny cluster"),
    "soak": Entry("trust.soak.regime", "one worker under a steady load: does it grow?", minutes=60),
    "tenant": Entry(
        "trust.tenant.regime", "a hostile tenant beside a victim on real parts, every sink enabled", minutes=10
    ),
    "old-defects": Entry(
        "trust.simulation.old_defects", "defects that were mended, brought back: the simulation has to find each again"
    ),
    "simulation": Entry(
        "trust.simulation.regime", "the whole pipeline in virtual time, with random faults: ten thousand stories"
    ),
}


def main() -> None:
    """Run the named regime. Without a name: list them."""
    parser = argparse.ArgumentParser(prog="make trust")
    parser.add_argument("name", nargs="?", choices=sorted(REGIMES), metavar="NAME", help=", ".join(sorted(REGIMES)))
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs at this commit have tried")
    asked = parser.parse_args()
    end_on_term()
    if asked.name is None:
        for name, entry in sorted(REGIMES.items()):
            print(f"{name:<14} {entry.tries}")
        return
    tally = run(asked.name, asked.minutes, anew=asked.anew)
    sys.exit(1 if tally.lost else 0)


def run(name: str, minutes: float | None = None, *, anew: bool = False) -> Tally:
    """Run a regime of the table, print what it found, and write its row."""
    entry, tested = REGIMES[name], tried()
    state = STATE / name / tested
    if anew:
        shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    regime = cast(Regime, importlib.import_module(entry.module))
    tally = regime.run(started + 60 * (entry.minutes if minutes is None else minutes), state)
    seconds = _in_all(state, time.monotonic() - started)
    for failure in tally.failures:
        print(f"lost: {failure}")
    row = Row(
        regime=name,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=tested,
        tried=tally.tried,
        survived=tally.survived,
        lost=tally.lost,
        how_long=duration(seconds),
        figures=tally.figures,
    )
    PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), row), encoding="utf-8")
    print(row)
    print("nothing is left to try" if tally.complete else f"to go on: make trust ARGS={name}")
    return tally


def _in_all(state: Path, seconds: float) -> float:
    """Seconds of all runs at this commit together, this one added."""
    file = state / "seconds"
    total = seconds + (float(file.read_text()) if file.exists() else 0.0)
    file.write_text(f"{total:.1f}")
    return total


if __name__ == "__main__":
    main()
