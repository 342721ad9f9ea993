"""How long is a repair? Planted findings, of which it is known how few vMotions end them, in two sizes.

Prints `name<TAB>value` lines. A drain of one node is planned in the same run, on the same snapshot: the ratio says what
the search itself costs beside judging the site. What balancers would move is counted on the same sites.
"""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from support.answers.balancing import balanced, mended, of_planted, of_puzzle
from support.answers.repair import broken, waves
from support.sites.movable import a_puzzle
from support.sites.planted import planted_site

from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import Drain

P, T = ParamSpec("P"), TypeVar("T")
SIZES = ((200, 6_000, 12), (5_000, 150_000, 300))
"""VMs, pods and planted findings; a quarter as many hosts as VMs."""
RANDOM, VMOTIONS = 500, RepairTerms(evictions=None)
"""Small sites that balancers plan, too, and what is asked there."""


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
        if vms == SIZES[0][0]:
            moved = plan.objective.vmotions
            print(f"{what}: vMotions of a balancer / ours\t{len(balanced(of_planted(planted))) / moved:.1f}")
            print(f"{what}: vMotions of a greedy mender / ours\t{len(mended(of_planted(planted))) / moved:.1f}")
    _beside_balancers()


def _beside_balancers() -> None:
    """Small random sites, tight and with rules: who ends how much, with how many moves?"""
    ways = {"a balancer": balanced, "a greedy mender": mended}
    moves, worse = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0)
    ours: dict[str, int] = dict.fromkeys(ways, 0)
    for seed in range(RANDOM):
        puzzle = a_puzzle(seed)
        found = [one for wave in waves(repair(puzzle.snapshot(), Options(), VMOTIONS)) for one in wave]
        left = len(broken(puzzle, {**puzzle.at, **dict(found)}))
        for name, way in ways.items():
            theirs = way(of_puzzle(puzzle))
            if len(broken(puzzle, {**puzzle.at, **dict(theirs)})) > left:
                worse[name] += 1
            else:
                moves[name] += len(theirs)
                ours[name] += len(found)
    for name in ways:
        print(f"{RANDOM} random sites: {name} leaves more broken\t{worse[name]}")
        print(f"{RANDOM} random sites: vMotions of {name} / ours, on the others\t{moves[name] / ours[name]:.2f}")


def _timed(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> tuple[float, T]:
    """(CPU seconds, what came of it)."""
    before = time.process_time()
    found = work(*given, **named)
    return time.process_time() - before, found


if __name__ == "__main__":
    main()
