"""The regime `quorums`: 10,000 random sites, every host of each lost by brute force. Interface: `trust/regime.py`.

In: until when, and a folder. Out: a `Tally` of the sites so far: on each, the quorum findings are exactly the hosts and
nodes whose loss leaves too few members. A site is replayed by its number.
"""

import time
from pathlib import Path

from support.sites.quorate import QuorateSite, said_of
from trust.regime import Tally, load, save

SITES, AT_ONCE = 10_000, 100


def run(until: float, state: Path) -> Tally:
    """See `Regime`."""
    progress = load(state)
    while progress.next < SITES and time.monotonic() < until:
        for seed in range(progress.next, progress.next + AT_ONCE):
            site = QuorateSite(seed)
            expected, said = site.breaches(), said_of(site)
            if expected != said:
                missed, false = sorted(expected - said), sorted(said - expected)
                progress.failures.append(f"site {seed}: missed {missed}, said falsely {false}")
        progress.lost = len(progress.failures)
        progress.next += AT_ONCE
        save(state, progress)
    figures = f"{progress.next} sites, each host of each lost"
    return Tally(progress.next, progress.lost, figures, progress.failures, progress.next >= SITES)
