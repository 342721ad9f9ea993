"""Does a worker grow? What it holds at the end beside what it held when it was warm. Pure.

In: samples of its gauges, oldest first. Out: for each gauge how it grew, and whether that is too much.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

MIB = 1 << 20
SHARE = 0.02
LEAST: Mapping[str, float] = {"memory": 10 * MIB, "descriptors": 10, "tasks": 10}
"""How much of each may come without being a growth, whatever its share."""
LEAST_ROWS = 50
"""The same for the rows of a table: pods come and go, and some are on their way."""
WINDOW = 0.1
"""The share of the samples after the warm-up whose medians are compared: the first and the last tenth."""

Sample = Mapping[str, float]
"""By gauge: `memory` in bytes, `descriptors`, `tasks`, `rows of TOPIC`."""


class Growth(NamedTuple):
    """One gauge: when it was warm, at the end, and whether it grew too much."""

    gauge: str
    before: float
    after: float
    too_much: bool

    def __str__(self) -> str:
        if self.gauge == "memory":
            return f"memory {self.before / MIB:.0f} → {self.after / MIB:.0f} MiB"
        return f"{self.gauge} {self.before:.0f} → {self.after:.0f}"


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """How each gauge grew; `samples` are those after the warm-up, two or more. One that is not there is 0."""
    size = max(1, int(len(samples) * WINDOW))
    gauges = sorted({gauge for sample in samples for gauge in sample})
    found = []
    for gauge in gauges:
        before, after = (median(one.get(gauge, 0.0) for one in part) for part in (samples[:size], samples[-size:]))
        allowed = max(before * SHARE, LEAST.get(gauge, LEAST_ROWS))
        found.append(Growth(gauge, before, after, after - before > allowed))
    return found


def told(found: Sequence[Growth]) -> str:
    """The figures of a row: memory, tasks and descriptors, and all rows together."""
    rows = [one for one in found if one.gauge not in LEAST]
    together = Growth("rows", sum(one.before for one in rows), sum(one.after for one in rows), False)
    return ", ".join(str(one) for one in (*(one for one in found if one.gauge in LEAST), together))
