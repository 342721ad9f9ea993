"""What a trust regime is: it looks for defects round by round, and can stop after any round and go on another day.

In: until when it may begin rounds, and a folder for what it has to remember. Out: a `Tally` of all that was tried. A
regime is a module with a function `run` as in `Regime`; `trust/run.py` has the table of them, starts them, and writes
their rows to docs/trust.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec


@dataclass(frozen=True)
class Tally:
    """What a regime has tried since its folder was empty, all its runs together.

    Attributes:
        tried: cases (seeds, plans, rounds, clusters). lost: those of them that showed a defect.
        figures: what was measured, a few words for a cell of the table.
        failures: a line for each lost case: what happened, and the command that replays it.
        complete: nothing is left to try.
    """

    tried: int
    lost: int
    figures: str
    failures: Sequence[str] = ()
    complete: bool = False

    @property
    def survived(self) -> int:
        """Cases without a defect."""
        return self.tried - self.lost


class Regime(Protocol):
    """The module of a regime."""

    def run(self, until: float, state: Path) -> Tally:
        """Try what is not tried yet; begin nothing new once `time.monotonic()` has passed `until`.

        `state` is a folder of this regime and commit. It is empty at the first run; whatever the regime writes there
        must be whole after each round, as a run may be interrupted. Raises what is no defect of the product: parts that
        are not built, a machine without room.
        """


class Progress(msgspec.Struct, omit_defaults=True):
    """A tally as it is kept between runs, for regimes whose cases have numbers that are tried in order.

    Attributes:
        next: the number of the first case that is not tried. lost, failures: as in `Tally`.
    """

    next: int = 0
    lost: int = 0
    failures: list[str] = []


def load(state: Path) -> Progress:
    """What the folder remembers; the beginning where it is empty."""
    file = state / "progress.json"
    return msgspec.json.decode(file.read_bytes(), type=Progress) if file.exists() else Progress()


def save(state: Path, progress: Progress) -> None:
    """Remember it: the file is replaced whole."""
    written = state / "progress.json.new"
    written.write_bytes(msgspec.json.encode(progress))
    written.replace(state / "progress.json")
