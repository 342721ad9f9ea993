"""Small scope: the evictor, the binder and DRS on every tiny cluster, in every order in which they can act.

In: the stories that are not tried yet. Out: a tally of stories; one is lost that can run for ever, or end worse than it
began. `python -m trust.scope.regime NUMBER` shows one.
"""

import os
import sys
import time
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import msgspec
from trust.regime import Tally
from trust.scope.search import Account, explored
from trust.scope.stories import STORIES

AHEAD = 4
"""Stories that each process has waiting: few, so that a run ends in time."""


class Explored(msgspec.Struct):
    """What is kept between runs: numbers of the stories that were lost, and how much there was of everything."""

    next: int = 0
    lost: list[int] = []
    totals: dict[str, int] = {}


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`."""
    file = state / "explored.json"
    known = msgspec.json.decode(file.read_bytes(), type=Explored) if file.exists() else Explored()
    processes = os.cpu_count() or 1
    with ProcessPoolExecutor(processes) as pool:
        waiting: list[tuple[int, Future[Account]]] = []
        number = known.next
        while waiting or (number < len(STORIES) and time.monotonic() < until):
            while len(waiting) < AHEAD * processes and number < len(STORIES) and time.monotonic() < until:
                waiting.append((number, pool.submit(explored, STORIES[number])))
                number += 1
            at, future = waiting.pop(0)
            _add(known, at, future.result())
            written = file.with_suffix(".new")
            written.write_bytes(msgspec.json.encode(known))
            written.replace(file)
    return tally(known)


def tally(known: Explored) -> Tally:
    """What is known so far."""
    totals = known.totals
    return Tally(
        tried=known.next,
        lost=len(known.lost),
        figures=f"{totals.get('beginnings', 0):,} beginnings, {totals.get('worlds', 0):,} worlds, "
        f"{totals.get('steps', 0):,} steps, {totals.get('writes', 0):,} of them writes; of {len(STORIES):,} clusters",
        failures=[
            f"{STORIES[at]} — replay: cd tests && ../.venv/bin/python -m trust.scope.regime {at}" for at in known.lost
        ],
        complete=known.next == len(STORIES),
    )


def _add(known: Explored, at: int, account: Account) -> None:
    known.next = at + 1
    counts = Counter(known.totals)
    for name in ("beginnings", "worlds", "steps", "writes"):
        counts[name] += getattr(account, name)
    known.totals = dict(counts)
    if account.lost:
        known.lost.append(at)


def main() -> None:
    """Show what one story comes to."""
    story = STORIES[int(sys.argv[1])]
    account = explored(story)
    print(f"{story}: {account.beginnings} beginnings, {account.worlds} worlds, {account.steps} steps")
    for what, ways in (("runs for ever", account.endless), ("ends worse than it began", account.worse)):
        print(*(f"{what}: {way}" for way in ways), sep="\n")


if __name__ == "__main__":
    main()
