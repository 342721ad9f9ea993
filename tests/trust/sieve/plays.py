"""Many plans, several at once, each on a lane of its own; a run can be ended and taken up.

In: plans, the folder of the real parts. Out: a verdict for each plan that was played, now or in an earlier run whose
state file is given. A plan that is only late on a busy machine is played once more, and its verdict says so.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from trust.sieve.mutants import MUTANTS
from trust.sieve.parts import Lane, Shared, shared_parts
from trust.sieve.plans import PLANS, Plan
from trust.sieve.play import Play, Verdict

BUSY = 3.0
"""Processes that want a processor, for each that there is, in the last minute: then what is late proves nothing."""


async def play_all(
    plans: Sequence[Plan],
    folder: Path,
    parts: Path,
    *,
    lanes: int = 1,
    mutant: str = "",
    state: Path | None = None,
    seconds: float = float("inf"),
) -> list[Verdict]:
    """Verdicts by the plans' numbers. After so many `seconds` no plan begins."""
    verdicts = {one.plan: one for one in _earlier(state)}
    left = iter([plan for plan in plans if plan.number not in verdicts])
    deadline = time.monotonic() + seconds

    async def work(shared: Shared) -> None:
        for plan in left:
            if time.monotonic() > deadline:
                return
            lane = await shared.lanes.get()
            verdict = verdicts[plan.number] = await _played(shared, lane, plan, mutant)
            shared.lanes.put_nowait(lane)
            if state is not None:
                with state.open("a") as file:
                    file.write(json.dumps(asdict(verdict)) + "\n")
            if verdict.wrong:
                print(f"plan {plan.number} ({plan.told}): {'; '.join(verdict.wrong)}", flush=True)

    async with shared_parts(folder, parts, lanes) as shared, asyncio.TaskGroup() as tasks:
        for _ in range(lanes):
            tasks.create_task(work(shared))
    wanted = {plan.number for plan in plans}
    return [verdict for number, verdict in sorted(verdicts.items()) if number in wanted]


async def _played(shared: Shared, lane: Lane, plan: Plan, mutant: str) -> Verdict:
    return await played(lambda: Play(shared, lane, plan, mutant).run(), lambda: os.getloadavg()[0])


async def played(play: Callable[[], Awaitable[Verdict]], load: Callable[[], float]) -> Verdict:
    """The verdict; of a plan that was late under a `load` that makes a machine busy, that of its second time."""
    verdict = await play()
    if not verdict.late or load() < BUSY * (os.cpu_count() or 1):
        return verdict
    return replace(await play(), repeated=verdict.wrong)


async def find_all(
    mutants: Sequence[str], plans: Sequence[Plan], folder: Path, parts: Path, *, lanes: int = 1, seconds: float
) -> dict[str, Verdict | None]:
    """The first of the plans that each mutant does not survive; None where it survives all of them, or time is over.

    Plans at the place where a mutant is most likely to be seen come first.
    """
    found: dict[str, Verdict | None] = {}
    left = iter(mutants)
    deadline = time.monotonic() + seconds

    async def work(shared: Shared) -> None:
        for mutant in left:
            found[mutant] = None
            lane, tried = await shared.lanes.get(), 0
            for plan in sorted(plans, key=lambda plan: MUTANTS[mutant].where not in plan.told):
                if time.monotonic() > deadline:
                    break
                verdict, tried = await _played(shared, lane, plan, mutant), tried + 1
                if verdict.wrong:
                    found[mutant] = verdict
                    break
            shared.lanes.put_nowait(lane)
            print(f"{mutant}: {found[mutant] or 'not found'} ({tried} plans)", flush=True)

    async with shared_parts(folder, parts, lanes) as shared, asyncio.TaskGroup() as tasks:
        for _ in range(lanes):
            tasks.create_task(work(shared))
    return found


def _earlier(state: Path | None) -> list[Verdict]:
    """The verdicts of a state file; a line that was cut off by a kill is played again."""
    found = []
    for line in state.read_text().splitlines() if state is not None and state.exists() else ():
        with suppress(json.JSONDecodeError):
            found.append(Verdict(**json.loads(line)))
    return found


def summary(plans: Sequence[Plan], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What came of the plans: `unfired` had no fault and prove nothing, `repeated` were late on a busy machine."""
    lost = [verdict for verdict in verdicts if verdict.wrong]
    return {
        "plans": len(plans),
        "tried": len(verdicts),
        "survived": len(verdicts) - len(lost),
        "lost": {str(one.plan): {"plan": PLANS[one.plan].told, "wrong": one.wrong} for one in lost},
        "unfired": [one.plan for one in verdicts if not one.fired],
        "repeated": {str(one.plan): one.repeated for one in verdicts if one.repeated},
        "regimes": dict(Counter(PLANS[one.plan].regime for one in verdicts)),
        "seconds": round(sum(one.seconds for one in verdicts), 1),
    }
