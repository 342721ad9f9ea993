"""`underhost repair --apply`: a worker carries a repair out, which is shown and asked for first, and followed.

In: a worker, and what shall be repaired. Out: the plan, a line for each step as it is begun and done, and the end; or a
RepairProgress for programs. Exit 1 where something stays. A worker that ends meanwhile is waited for, or the one in its
place: what is left is asked of that.
"""

import asyncio
import sys
import time
from collections.abc import Callable

import typer

from underhost.agents.commands.input.server import RepairAsker
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.formats import JSON, NEVER, TABLE, WIDE, YAML
from underhost.agents.commands.output.repair_tables import summary, tables
from underhost.agents.sinks.moves.campaign import ENDED, ORDERED
from underhost.schemas.documents import RepairDone, RepairPlan, RepairProgress
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.severities import at_or_above

LOOK = 1.0
"""Seconds between two looks at a repair."""
PATIENCE = 60.0
"""Seconds for which a worker is waited for that does not answer any more."""


def handle(asker: RepairAsker, output: str, fail_on: str, *, yes: bool) -> None:
    """Show the plan, ask, have it carried out, and follow it to its end."""
    if output not in (TABLE, WIDE, JSON, YAML):
        raise InputError(f"--output {output}: {TABLE}, {WIDE}, {JSON} or {YAML} is expected with --apply")
    for_people = output in (TABLE, WIDE)
    if not yes and not (sys.stdin.isatty() and for_people):
        raise InputError("--apply: nobody can be asked here; --yes says that it shall be done")
    progress.say(f"planning at {asker.server}")
    plan = asyncio.run(asker.plan())
    progress.end()
    if for_people:
        show(plan, output == WIDE)
    if plan.steps and not yes and not typer.confirm("Carry it out?"):
        raise typer.Exit(1)
    told = Steps(out.say if for_people else lambda sentence: None)
    ended = asyncio.run(follow(asker, told.tell)) if plan.steps else _nothing_to_do(asker, plan)
    if not out.show_for_programs(ended, output):
        out.say(last_line(ended))
    if fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in ended.left_findings):
        raise typer.Exit(1)


def show(plan: RepairPlan, wide: bool) -> None:
    """The plan, as it is shown without `--apply`."""
    out.show_tables(tables(plan, wide))
    out.say(summary(plan))
    out.show_not_judged(plan.not_judged)


def _nothing_to_do(asker: RepairAsker, plan: RepairPlan) -> RepairProgress:
    return RepairProgress("", asker.site or "", ENDED, [], plan.left_findings, "")


async def follow(asker: RepairAsker, tell: Callable[[RepairProgress], None]) -> RepairProgress:
    """Have it carried out, tell how far it is, and return its end."""
    now, seen, is_lost = await asker.begin(), time.monotonic(), False
    while True:
        tell(now)
        if now.state == ENDED:
            return now
        await asyncio.sleep(LOOK)
        try:
            now = await (asker.begin() if is_lost else asker.follow(now))
        except InputError:
            is_lost = True  # another worker, or a run of this one that knows nothing of it
        except Unreachable:
            if time.monotonic() - seen > PATIENCE:
                raise
        else:
            seen, is_lost = time.monotonic(), False


class Steps:
    """A line for each step that is begun, and one for what became of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._told, self._why = say, set[tuple[str, str]](), ""

    def tell(self, now: RepairProgress) -> None:
        """What is new."""
        for step in now.steps:
            if (step.id, step.state) not in self._told:
                self._told.add((step.id, step.state))
                self._say(line(step))
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


def last_line(ended: RepairProgress) -> str:
    """All of it in one line."""
    left = len(ended.left_findings)
    stays = f"{out.counted(left, 'finding')} left" if left else "nothing left"
    return f"{stays}: {ended.why}" if ended.why else stays
