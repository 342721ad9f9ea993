"""How cost grows with the site: a check, and one change judged by the resident evaluator, at 1×, 4× and 16×; CPU times.

Prints `name<TAB>value` lines. 16× is the site of `support.sites.large`: 5,000 nodes on 512 hosts, 150,000 pods. A slope
of 1 is in proportion to the site, 0 is the same whatever its size.
"""

import gc
import math
import tempfile
import time
from pathlib import Path

from bench.resident import Site
from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options

SIZES = {1: LargeSite(320, 469, 32), 4: LargeSite(1_250, 1_875, 128), 16: LargeSite()}
ROUNDS, CHANGES = 3, 100


def main() -> None:
    """Measure and print."""
    checks = {times: _check(site) for times, site in SIZES.items()}
    changes = {times: moves(site, 1)[0] for times, site in SIZES.items()}
    for times in SIZES:
        print(f"check at {times}×: CPU s\t{checks[times]:.2f}")
    print(f"check: slope from 4× to 16×\t{_slope(checks):.2f}")
    for times in SIZES:
        print(f"a pod moved at {times}×: p50 ms\t{changes[times]:.2f}")
    print(f"a pod moved: slope from 4× to 16×\t{_slope(changes):.2f}")


def _check(site: LargeSite) -> float:
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = site.write(Path(folder))
        command = [UNDERHOST, "check", "-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        return min(usage_of(command).cpu for _ in range(ROUNDS))


def moves(size: LargeSite, rounds: int) -> list[float]:
    """Milliseconds of CPU, p50, until a resident evaluator of that site has judged a pod that moved; of each round."""
    made, resident = Site(size), Evaluator(Options())
    resident.update(made.snapshot)
    gc.collect()
    return [_moved(made, resident) for _ in range(rounds)]


def _moved(made: Site, resident: Evaluator) -> float:
    spent = []
    for _ in range(CHANGES):
        before = made.snapshot  # freeing its references is not what is measured
        snapshot = made.pod_moved()
        begin = time.process_time()
        resident.update(snapshot)
        spent.append(time.process_time() - begin)
        del before
    return sorted(spent)[CHANGES // 2] * 1e3


def _slope(figures: dict[int, float]) -> float:
    """The exponent by which cost grows from the middle size to the largest."""
    return math.log(figures[16] / figures[4]) / math.log(4)


if __name__ == "__main__":
    main()
