"""Virtual time and seeded chance for one process: what the pipeline asks the machine for is decided by the seed.

In: the moments that the event loop moves on to, jumps of the wall clock, a seed. Out: the functions of `time`,
`random`, `uuid` and `os` that answer from them. `install` has to be called before the pipeline, or Faust, is imported:
both keep some of these functions as default arguments.
"""

import os
import random
import time
from datetime import UTC, datetime, tzinfo
from typing import Any

FIRST_MOMENT = 10_000.0
"""Seconds of the monotonic clock at which every seed begins."""
FIRST_WALL = 1_700_000_000.0
"""Seconds since 1970 at which every seed begins."""

processor_seconds = time.process_time
"""The seconds of processor time that this process has taken: what a seed costs, however busy the machine is."""
RealRandom = random.Random


class VirtualClock:
    """The time of one seed. `now` is monotonic seconds; `skew` is by how much the worker's wall clock is wrong."""

    def __init__(self) -> None:
        self.now, self.skew = FIRST_MOMENT, 0.0
        self.chance: random.Random = RealRandom(0)

    @property
    def true_time(self) -> float:
        """Seconds since 1970 of the world outside the worker, which has no skew."""
        return FIRST_WALL + self.now - FIRST_MOMENT

    @property
    def wall(self) -> float:
        """Seconds since 1970 as the worker's machine tells them."""
        return self.true_time + self.skew


_clock = VirtualClock()


def begin(seed: int) -> VirtualClock:
    """A new clock for a seed; from now on the machine's functions answer from it."""
    global _clock
    _clock = VirtualClock()
    _clock.chance = RealRandom(f"{seed}/machine")
    random.seed(f"{seed}/module")
    return _clock


class SeededRandom(RealRandom):
    """`random.Random`, but that one without a seed gets it from the seed of the simulation."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(_clock.chance.getrandbits(64) if seed is None else seed)


class SeededDatetime(datetime):
    """`datetime`, whose `now` is the worker's wall clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        """The moment that the worker's machine tells."""
        return datetime.fromtimestamp(_clock.wall, tz or UTC)


def install() -> None:
    """Replace the machine's clocks and chance. Only in a process that does nothing else."""
    time.monotonic = time.perf_counter = lambda: _clock.now
    time.monotonic_ns = time.perf_counter_ns = lambda: int(_clock.now * 1e9)
    time.clock_gettime = lambda clock: _clock.now  # type: ignore[assignment]
    time.time = lambda: _clock.wall
    time.time_ns = lambda: int(_clock.wall * 1e9)
    random.Random = SeededRandom  # type: ignore[misc]
    os.urandom = lambda count: _clock.chance.randbytes(count)
