"""Five hundred random sites: is any plan of `underhost repair` dearer than it must be, or worse than now on the way?

In: seeds. Out: a tally. Each site is planned, and asked of another exact model on another solver; each plan is carried
out moment by moment; each reason why something stays is confirmed to be as small as it can be.
"""

import time
from pathlib import Path

from support.answers.minimal import wrong_reasons
from support.answers.repair import cheapest, price, unsafe, waves
from support.sites.movable import a_puzzle
from trust.regime import Progress, Tally, load, save

from underhost.agents.planner.plan import repair
from underhost.agents.site.snapshot import Options

SITES = 500


def run(until: float, state: Path) -> Tally:
    """See `Regime.run`."""
    progress = load(state)
    while progress.next < SITES and time.monotonic() < until:
        wrong = _wrong(progress.next)
        progress = Progress(progress.next + 1, progress.lost + bool(wrong), [*progress.failures, *wrong])
        save(state, progress)
    figures = f"{progress.next} sites of up to 6 hosts and 10 VMs"
    return Tally(progress.next, progress.lost, figures, progress.failures, progress.next == SITES)


def _wrong(seed: int) -> list[str]:
    puzzle = a_puzzle(seed)
    plan = repair(puzzle.snapshot(), Options())
    mine, best = price(plan), cheapest(puzzle, plan)
    found = [f"costs {tuple(mine)}, and {tuple(best)} would do"] if mine != best else []
    return [f"seed {seed}: {one}" for one in (*found, *unsafe(puzzle, waves(plan)), *wrong_reasons(puzzle))]
