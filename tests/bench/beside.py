"""`make beside`: is this tree slower than others? All do the same work by turns, and ratios are told.

    python -m bench.beside NAME... --against OTHER/.venv/bin/underhost [OTHER ...] [--rounds 7]

In: names of works, and the `underhost` commands of other checkouts, each set up by its own `make setup`. Out: for each
figure, this tree's to the other's, round by round, and the median. Other programs on the machine slow both alike, so a
median of ratios is a figure where seconds are none; and the order turns from round to round.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from bench.binder import CPU, MEMORY, one_server
from bench.placement.schedule import DIFFERENT, MIXED, UNIFORM, document_of
from bench.usage import usage_of
from support.processes.parts import built_parts
from support.processes.programs import end_on_term
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

NODES = 5_000
BINDER_NODES = 1_000

Measure = Callable[[str], Mapping[str, float]]
"""What a command `underhost` takes for the work: the figures by name."""


@contextmanager
def _schedule(workload: str, pods: int) -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.json"
        dump.write_bytes(document_of(NODES, workload))
        yield lambda underhost: _used([underhost, "schedule", "-f", str(dump), "-o", "json"])


@contextmanager
def _check(pods: int) -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = LargeSite().write(Path(folder))
        files = ["-f", str(dump), "--inventory", str(inventory)]
        yield lambda underhost: _used([underhost, "check", *files, "-o", "json"])


@contextmanager
def _binder(pods: int) -> Iterator[Measure]:
    parts, missing = built_parts()
    if parts is None:
        sys.exit(f"binder: {missing}")
    with one_server(parts, BINDER_NODES) as bench:

        def bind(underhost: str) -> Mapping[str, float]:
            found = {}
            for title, apart in (("plain", False), ("apart", True)):
                with bench.ours(underhost) as scheduler:
                    figures = bench.measure(scheduler, apart, pods, told=False)  # not every tree tells pods their hosts
                found |= {f"{title}, {what}": figures[what] for what in (CPU, MEMORY)}
            return found

        yield bind


WORKS = {
    "binder": _binder,
    "check": _check,
    **{f"schedule-{workload}": partial(_schedule, workload) for workload in (UNIFORM, MIXED, DIFFERENT)},
}


def main() -> None:
    """Measure by turns, and tell the ratios."""
    parser = argparse.ArgumentParser(prog="make beside", description="this tree beside others, as ratios")
    parser.add_argument("names", nargs="+", choices=WORKS, metavar="NAME", help=", ".join(WORKS))
    parser.add_argument("--against", nargs="+", required=True, help="the commands `underhost` of other checkouts")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pods", type=int, default=6_000, help="of the binder: the more, the less a start counts")
    asked = parser.parse_args()
    end_on_term()
    for name in asked.names:
        with WORKS[name](asked.pods) as measure:
            rounds = [_round(measure, [UNDERHOST, *asked.against], at, name) for at in range(asked.rounds)]
        for other in asked.against:
            for what in rounds[0][UNDERHOST]:
                ratios = sorted(found[UNDERHOST][what] / found[other][what] for found in rounds)
                print(f"{name} beside {other}: {what}\t{median(ratios):.3f} ({_listed(ratios)})", flush=True)


def _round(measure: Measure, commands: list[str], number: int, name: str) -> dict[str, Mapping[str, float]]:
    turned = commands[number % len(commands) :] + commands[: number % len(commands)]
    found = {underhost: measure(underhost) for underhost in turned}
    for underhost in commands:
        figures = ", ".join(f"{what} {value:.2f}" for what, value in found[underhost].items())
        print(f"{name}, round {number + 1}, {underhost}: {figures}", file=sys.stderr, flush=True)
    return found


def _used(command: list[str]) -> Mapping[str, float]:
    usage = usage_of(command)
    return {"CPU, s": usage.cpu, "memory, MiB": usage.memory}


def _listed(ratios: list[float]) -> str:
    return " ".join(f"{ratio:.2f}" for ratio in ratios)


if __name__ == "__main__":
    main()
