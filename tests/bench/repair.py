"""How long is a repair? Planted findings, of which it is known how few vMotions end them, in two sizes.

Prints `name<TAB>value` lines. A drain of one node is planned in the same run, on the same snapshot: the ratio says what
the search itself costs beside judging the site.
"""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from support.sites.planted import planted_site

from underhost.agents.planner.plan import repair
from underhost.agents.site.snapshot import Options
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import Drain

P, T = ParamSpec("P"), TypeVar("T")
SIZES = ((200, 6_000, 12), (5_000, 150_000, 300))
"""VMs, pods and planted findings; a quarter as many hosts as VMs."""


def main() -> None:
    """Measure and print."""
    repair(planted_site(8, 8, 1).snapshot, Options())  # what is imported late
    for vms, pods, findings in SIZES:
        planted = planted_site(vms, pods, findings)
        seconds, plan = _timed(repair, planted.snapshot, Options())
        drained, _ = _timed(what_if, planted.snapshot, Options(), [Drain(("n00001",))])
        what = f"{vms:,} VMs, {pods:,} pods, {findings} findings"
        print(f"{what}: s after loading\t{seconds:.2f}")
        print(f"{what}: / a drain's\t{seconds / drained:.2f}")
        print(f"{what}: findings left\t{plan.objective.findings_left}")
        print(f"{what}: vMotions / the fewest\t{plan.objective.vmotions / planted.vmotions:.3f}")
        print(f"{what}: memory moved / the least\t{plan.objective.memory_mib / planted.memory:.3f}")


def _timed(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> tuple[float, T]:
    """(CPU seconds, what came of it)."""
    before = time.process_time()
    found = work(*given, **named)
    return time.process_time() - before, found


if __name__ == "__main__":
    main()
