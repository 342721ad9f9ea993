"""What `--apply` does: a worker carries a plan out, which is shown and asked for first, and followed.

In: a worker, what shall be done, and how its plan is shown. Out: how far it is, from its beginning to its end; a line
for each step as it is begun and done. A worker that ends meanwhile is waited for, or the one in its place.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from underhost.agents.commands.input.server import Asker
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.formats import JSON, TABLE, WIDE, YAML
from underhost.agents.sinks.moves.campaign import ENDED, ORDERED
from underhost.schemas.documents import MaintenancePlan, MaintenanceProgress, RepairDone, RepairPlan, RepairProgress
from underhost.schemas.errors import InputError, Unreachable

LOOK = 1.0
"""Seconds between two looks at what is under way."""
PATIENCE = 60.0
"""Seconds for which a worker is waited for that does not answer any more."""

P = TypeVar("P", RepairPlan, MaintenancePlan)
D = TypeVar("D", RepairProgress, MaintenanceProgress)


def agreed(asker: Asker[P, D], output: str, show: Callable[[P], bool], *, yes: bool) -> P:
    """The plan, which is shown, and agreed to where it has a step: `show` says so. Raises InputError, Exit."""
    if output not in (TABLE, WIDE, JSON, YAML):
        raise InputError(f"--output {output}: {TABLE}, {WIDE}, {JSON} or {YAML} is expected with --apply")
    if not yes and not (sys.stdin.isatty() and is_for_people(output)):
        raise InputError("--apply: nobody can be asked here; --yes says that it shall be done")
    progress.say(f"planning at {asker.server}")
    plan = asyncio.run(asker.plan())
    progress.end()
    if show(plan) and not yes and not typer.confirm("Carry it out?"):
        raise typer.Exit(1)
    return plan


def is_for_people(output: str) -> bool:
    """Whether people read this format."""
    return output in (TABLE, WIDE)


async def follow(asker: Asker[P, D], tell: Callable[[D], None], lost: Callable[[D], D] | None = None) -> D:
    """Have it carried out, tell how far it is, and return its end.

    Where the worker in the place of the one that was asked knows nothing of it, `lost` says what its end is; without it
    what is left is asked of that worker.
    """
    now, seen, is_lost = await asker.begin(), time.monotonic(), False
    while True:
        tell(now)
        if now.state == ENDED:
            return now
        await asyncio.sleep(LOOK)
        try:
            now = await (asker.begin() if is_lost else asker.follow(now))
        except InputError:
            if lost is not None:
                return lost(now)
            is_lost = True  # another worker, or a run of this one that knows nothing of it
        except Unreachable:
            if time.monotonic() - seen > PATIENCE:
                raise
        else:
            seen, is_lost = time.monotonic(), False


class ToldLines:
    """Says what is new: a line for each step that is begun, one for what became of it, and what is waited for."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._told, self._why = say, set[tuple[str, str]](), ""

    def steps(self, steps: Sequence[RepairDone]) -> None:
        """Steps, and what became of them."""
        for step in steps:
            self.once(step.id, step.state, line(step))

    def once(self, what: str, state: str, sentence: str) -> None:
        """What is in this state now, unless it was said."""
        if (what, state) not in self._told:
            self._told.add((what, state))
            self._say(sentence)

    def waiting(self, now: RepairProgress | MaintenanceProgress) -> None:
        """What is waited for."""
        if now.why and now.why != self._why and now.state != ENDED:
            self._say(f"waiting for {now.why}")
        self._why = now.why


def line(step: RepairDone) -> str:
    """A step in words."""
    what = f"VM {step.vm}" if step.vm is not None else f"pod {step.pod}"
    way = f": {step.from_} to {step.to}" if step.from_ else ""
    if step.state == ORDERED:
        return f"{what}{way}"
    return f"{what}{way}: {step.state}" + (f" ({step.reason})" if step.reason else "")
