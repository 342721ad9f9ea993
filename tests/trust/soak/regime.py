"""The soak: one worker under a steady load; after a warm-up of a third of the time it may not grow any more.

In: how long. Out: a tally of one soak. Real Kafka, kube-apiserver and vcsim. It cannot be gone on with: a run is a case
of its own, whatever its length. `python -m trust.soak.regime MINUTES` runs one without a row.
"""

import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from trust.installation import installed, played, tally, until
from trust.regime import Tally
from trust.soak.growth import Sample, growths, told
from trust.soak.load import Serving, Soak

WARM = 1 / 3
SINKS = {"labels": True, "bindings": True, "drsRules": True}


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`. Raises RuntimeError where the real parts are not built."""
    (samples, changes), seconds = played(until, state, soaked)
    found = growths(samples)
    grown = ", ".join(str(one) for one in found if one.too_much)
    return tally("soak", seconds, f", {changes / seconds:.0f} changes/s: {told(found)}", grown and f"grew: {grown}")


async def soaked(folder: Path, parts: Path, seconds: float) -> tuple[list[Sample], int]:
    """(samples after the warm-up, changes of pods). Raises what the load met."""
    async with AsyncExitStack() as stack:
        here = await installed(stack, folder, parts, {"sinks": SINKS})
        serving = Serving(here.worker.pid, here.url)
        soak = Soak(here.api, here.vcenter, here.nodes, serving)
        await soak.furnish()
        await until("the worker is ready", lambda: here.api.answers(f"{here.url}/extender/readyz"))
        began = time.monotonic()
        await soak.run(seconds)
    return [sample for at, sample in soak.samples if at - began >= seconds * WARM], soak.changes


if __name__ == "__main__":
    print(run(time.monotonic() + 60 * float(sys.argv[1]), Path("/tmp") / "trust-soak"))
