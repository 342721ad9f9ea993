"""What happened in one seed, as a running hash and, if asked, as lines.

In: notes of each record on disk, each write to a cluster, each fault and act. Out: one digest: equal traces are equal
runs.
"""

import hashlib
import sys

from trust.simulation.clock import FIRST_MOMENT, VirtualClock


class Trace:
    """The trace of one seed. `loud` prints every note to standard error."""

    def __init__(self, clock: VirtualClock, *, loud: bool = False) -> None:
        self._clock, self._loud, self._hash = clock, loud, hashlib.blake2b(digest_size=16)
        self.notes = 0

    def note(self, kind: str, *what: object) -> None:
        """One thing happened now."""
        self.notes += 1
        line = f"{self._clock.now - FIRST_MOMENT:.6f} {kind} {what!r}"
        self._hash.update(line.encode("utf-8", "surrogatepass"))
        if self._loud:
            print(line[:400], file=sys.stderr)

    @property
    def digest(self) -> str:
        """The hash so far."""
        return self._hash.hexdigest()
