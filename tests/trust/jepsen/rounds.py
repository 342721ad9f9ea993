"""Rounds of a fault: each begins with empty topics and an empty cluster, and is one case of its regime.

In: what is struck and how, how many rounds. Out: a tally; a round is lost if any of Jepsen's checks finds something.
"""

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.processes.parts import built_parts
from trust.jepsen.rig import Fault, NeverCame, Transport, play
from trust.regime import Tally, load, save

SHOWN = 5
"""Lines of one round that are kept; its folder has everything."""


@dataclass(frozen=True)
class Rounds:
    """A regime of the rig.

    Attributes:
        name: of its module. count: rounds until it is complete. events: changes in one.
    """

    name: str
    count: int
    events: int
    transport: Callable[[Path, Path], Transport]
    fault: Fault

    def run(self, until: float, state: Path) -> Tally:
        """See `trust.regime.Regime`. Raises RuntimeError where the real parts are not built."""
        parts, why = built_parts()
        if parts is None:
            raise RuntimeError(f"needs the real parts: {why}")
        progress = load(state)
        while progress.next < self.count and time.monotonic() < until:
            seed = progress.next
            wrong = self.play(state / f"round-{seed}", parts, seed)
            if wrong:
                progress.lost += 1
                said = "; ".join([*wrong[:SHOWN], *([f"{len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else [])])
                progress.failures.append(f"round {seed}: {said} — replay: {self.replay(seed)}")
            progress.next += 1
            save(state, progress)
        return Tally(
            tried=progress.next,
            lost=progress.lost,
            figures=f"{progress.next * self.events:,} changes, one fault in each {self.events:,}",
            failures=progress.failures,
            complete=progress.next >= self.count,
        )

    def play(self, folder: Path, parts: Path, seed: int, events: int | None = None) -> list[str]:
        """One round; what is wrong after it."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            return asyncio.run(play(folder, parts, self.transport, self.fault, events or self.events, seed))
        except NeverCame as error:
            return [str(error)]

    def replay(self, seed: int) -> str:
        """The command that plays a round again: the same changes and fault, at other moments of the processes."""
        return f"cd tests && ../.venv/bin/python -m trust.jepsen.{self.name} {seed}"

    def main(self, seed: int) -> None:
        """Play one round, and say what is wrong."""
        parts, why = built_parts()
        if parts is None:
            raise SystemExit(f"needs the real parts: {why}")
        folder = Path("/tmp") / f"trust-{self.name}-{seed}"
        print(*self.play(folder, parts, seed) or ["all is well"], f"see {folder}", sep="\n")
