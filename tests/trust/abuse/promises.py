"""What must hold of a worker while it is abused. Pure.

In: what was measured. Out: what was broken, a few words each, and the figures of a row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

MIB = 1 << 20
P99, GROWTH = 0.25, 250 * MIB
"""Seconds until `/healthz` has answered, for all but one of a hundred; and bytes that the worker may grow by."""


@dataclass
class Measured:
    """What was seen.

    Attributes:
        probes: seconds of each answer of `/healthz`. memory: bytes of the worker, the first before the abuse.
        answers: by kind of assault and status, 0 for a connection that was cut off. restarts: how often the worker, or
            its pipeline, began anew.
        starved: of the time, the part in which the worker's event loop could run and had no processor.
    """

    probes: Sequence[float] = ()
    memory: Sequence[int] = ()
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    restarts: int = 0
    starved: float = 0.0

    @property
    def p99(self) -> float:
        """Seconds; infinity where nothing was asked."""
        ordered = sorted(self.probes)
        return ordered[-(-len(ordered) * 99 // 100) - 1] if ordered else float("inf")

    @property
    def growth(self) -> int:
        """Bytes that the worker has had at most beyond those at the start."""
        return max(self.memory) - self.memory[0] if self.memory else 0

    def broken(self) -> list[str]:
        """The promises that were not kept."""
        found = []
        if self.p99 > P99:
            found.append(f"/healthz took {1000 * self.p99:.0f} ms (p99)")
        if self.growth > GROWTH:
            found.append(f"the worker grew by {self.growth / MIB:.0f} MiB")
        found += [
            f"{count} answers of 500 to {kind}" for (kind, status), count in self.answers.items() if status == 500
        ]
        if self.restarts:
            found.append(f"{self.restarts} restarts")
        return found

    def told(self) -> str:
        """The figures of a row."""
        start = self.memory[0] if self.memory else 0
        wrong = sum(count for (_, status), count in self.answers.items() if status == 500)
        return (
            f"{self.answers.total():,} answers, {wrong} of them 500; "
            f"/healthz p99 {1000 * self.p99:.0f} ms of {len(self.probes):,}; "
            f"memory {start / MIB:.0f} → at most {(start + self.growth) / MIB:.0f} MiB; {self.restarts} restarts; "
            f"{100 * self.starved:.0f} % of the time without a processor"
        )
