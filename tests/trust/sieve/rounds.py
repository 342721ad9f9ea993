"""The regime `sieve` of `make trust`: all plans, until the time is over; a verdict is kept as soon as it is there.

In: until when plans may begin, and the folder of the verdicts so far. Out: the tally.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from support.processes.parts import built_parts
from trust.regime import Tally
from trust.sieve.plans import PLANS
from trust.sieve.plays import play_all

LANES = 4
"""Plans at once: a plan mostly waits for the parts."""


def run(until: float, state: Path) -> Tally:
    """See `Regime.run`. Raises RuntimeError without the real parts."""
    parts, why = built_parts()
    if parts is None:
        raise RuntimeError(why)
    seconds = until - time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sieve-") as folder:
        kept = state / "verdicts"
        verdicts = asyncio.run(play_all(PLANS, Path(folder), parts, lanes=LANES, state=kept, seconds=seconds))
    lost = [verdict for verdict in verdicts if verdict.wrong]
    mean = sum(verdict.seconds for verdict in verdicts) / max(1, len(verdicts))
    unfired = sum(not verdict.fired for verdict in verdicts)
    repeated = sum(bool(verdict.repeated) for verdict in verdicts)
    return Tally(
        tried=len(verdicts),
        lost=len(lost),
        figures=f"{mean:.1f} s a plan, {LANES} at once; {unfired} without their fault, "
        f"{repeated} played twice as the machine was busy",
        failures=[
            f"plan {verdict.plan} ({PLANS[verdict.plan].told}): {'; '.join(verdict.wrong)} — replay: "
            f"cd tests && python -m trust.sieve --plans {verdict.plan}:{verdict.plan + 1}"
            for verdict in lost
        ],
        complete=len(verdicts) == len(PLANS),
    )
