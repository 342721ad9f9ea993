"""The fewest vMotions that meet the goals of one cluster, and how many there must be at the least.

In: a fleet and goals. Out: the steps, in a safe order. Goals that share a VM are one component, and cost nothing of the
others but room: components are answered one after another, each with its own VMs free to move; where that takes more
than the bound says, with the VMs in their way free, too. A small fleet is asked as a whole. Where a bound is reached
the answer is the best there is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from underhost.agents.affinity.separation import connected
from underhost.agents.drs.cliques import bits
from underhost.agents.planner.assignment import Goal, assign
from underhost.agents.planner.fleet import Loads, VmCluster
from underhost.agents.planner.order import VMotion, ordered
from underhost.agents.planner.sequence import shortest
from underhost.agents.planner.solver import Program
from underhost.agents.schedule.progress import told

SMALL = 120
"""VMs times hosts up to which a fleet is asked as a whole."""
HOSTS = (8, 16)
"""Hosts that are tried for each VM of a component; and of a component with the VMs in its way."""
NEIGHBOURS = 24
"""VMs in its way that a component may move, at most."""


@dataclass(frozen=True)
class Cost:
    """What a plan costs, in the order in which less is better; added up and compared by its fields."""

    unmet: int = 0
    vmotions: int = 0
    memory: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.unmet + other.unmet, self.vmotions + other.vmotions, self.memory + other.memory)

    @property
    def key(self) -> tuple[int, int, int]:
        """For comparisons."""
        return self.unmet, self.vmotions, self.memory


@dataclass(frozen=True)
class ClusterMoves:
    """The steps of one cluster. `proven`: no others cost less; `bound` is what is proven."""

    steps: list[VMotion]
    cost: Cost
    bound: Cost
    proven: bool


def plan_moves(
    fleet: VmCluster, goals: Sequence[Goal], barred: Collection[tuple[int, int]] = (), most_moves: int | None = None
) -> ClusterMoves:
    """The steps that meet most goals with the fewest moves. `barred`: (VM, host) that is no way out."""
    if len(fleet.vms) * len(fleet.hosts) <= SMALL:
        return _whole(fleet, goals, barred, most_moves)
    at, steps = list(fleet.at), list[VMotion]()
    bound, proven = Cost(), True
    for component in told("planning moves", _components(goals)):
        least = bound_of(fleet, component)
        left = None if most_moves is None else most_moves - len(steps)
        found = _component(fleet, at, component, least, barred, left)
        bound, proven = bound + least, proven and cost_of(fleet, found, component).key == least.key
        for step in found:
            at[step.vm] = step.to
        steps += found
    return ClusterMoves(steps, cost_of(fleet, steps, goals), bound, proven)


def _whole(
    fleet: VmCluster, goals: Sequence[Goal], barred: Collection[tuple[int, int]], most_moves: int | None
) -> ClusterMoves:
    """A small fleet, every VM free to move."""
    best = assign(fleet, fleet.at, goals, range(len(fleet.vms)), barred=barred, most_moves=most_moves)
    assert best is not None  # nothing is required: staying is an answer
    bound = Cost(best.unmet, len(best.moves), sum(fleet.size[vm] for vm in best.moves))
    steps = ordered(fleet, fleet.at, best.moves)
    if steps is None or cost_of(fleet, steps, goals).key != bound.key:
        found, complete = shortest(fleet, goals, steps, len(best.moves), barred, most_moves)
        cost = cost_of(fleet, found, goals)
        # More steps than were tried could only meet more goals.
        return ClusterMoves(found, cost, bound, complete and (steps is not None or cost.unmet == bound.unmet))
    return ClusterMoves(steps, cost_of(fleet, steps, goals), bound, best.proven)


def _component(
    fleet: VmCluster,
    at: Sequence[int],
    goals: Sequence[Goal],
    least: Cost,
    barred: Collection[tuple[int, int]],
    most_moves: int | None,
) -> list[VMotion]:
    """The cheapest of the answers to wider and wider questions, until one is as cheap as any could be."""
    own = {vm for goal in goals for vm in goal.vms}
    best: list[VMotion] = []
    for free, hosts in ((own, HOSTS[0]), (own | _in_the_way(fleet, at, own), HOSTS[1])):
        found = assign(fleet, at, goals, free, most_hosts=hosts, barred=barred, most_moves=most_moves)
        steps = None if found is None else ordered(fleet, at, found.moves)
        if steps is not None and cost_of(fleet, steps, goals).key < cost_of(fleet, best, goals).key:
            best = steps
        if cost_of(fleet, best, goals).key == least.key:
            break
    return best


def cost_of(fleet: VmCluster, steps: Iterable[VMotion], goals: Sequence[Goal]) -> Cost:
    """What these steps cost, and the goals that they leave unmet."""
    steps, at = list(steps), list(fleet.at)
    for step in steps:
        at[step.vm] = step.to
    unmet = sum(not goal.met(fleet.at, at) for goal in goals)
    return Cost(unmet, len(steps), sum(fleet.size[step.vm] for step in steps))


def bound_of(fleet: VmCluster, goals: Sequence[Goal]) -> Cost:
    """What meeting the goals costs at the least: VMs must leave that have any host to go to."""
    vms = sorted({vm for goal in goals for vm in goal.vms if _has_a_way(fleet, vm)})
    if len(goals) == len(goals[0].groups) == 1 and len(goals[0].vms) == 2:  # as most are
        return Cost(0, 1, min(fleet.size[vm] for vm in vms)) if vms else Cost(unmet=1)
    program = Program()
    leaves = {vm: program.choice() for vm in vms}
    unmet = [program.choice() for _ in goals]
    for number, goal in enumerate(goals):
        for group, leave in goal.groups:
            gone = {leaves[vm]: -count for vm, count in group.items() if vm in leaves}
            program.at_most({**gone, unmet[number]: -leave}, -leave)
    copied = {choice: fleet.size[vm] for vm, choice in leaves.items()}
    values = program.best(dict.fromkeys(unmet, 1), dict.fromkeys(leaves.values(), 1), copied)
    assert values is not None  # every goal may stay unmet
    left = [vm for vm, choice in leaves.items() if values[choice]]
    return Cost(sum(values[one] for one in unmet), len(left), sum(fleet.size[vm] for vm in left))


def _has_a_way(fleet: VmCluster, vm: int) -> bool:
    return fleet.may_move(vm) and any(
        fleet.may_take(vm, host) for host in range(len(fleet.hosts)) if host != fleet.at[vm]
    )


def _components(goals: Sequence[Goal]) -> list[list[Goal]]:
    """Goals that share a VM, in the order of their first."""
    first: dict[int, int] = {}
    links = [(first.setdefault(vm, number), number) for number, goal in enumerate(goals) for vm in goal.vms]
    return [[goals[number] for number in group] for group in connected(range(len(goals)), links)]


def _in_the_way(fleet: VmCluster, at: Sequence[int], own: Collection[int]) -> set[int]:
    """VMs that keep one of these from a host, those first that keep it alone; for want of room, the smallest."""
    loads = Loads(fleet, at)
    found: list[tuple[int, int, int]] = []
    for vm in sorted(own):
        for host in range(len(fleet.hosts)) if fleet.may_move(vm) else ():
            if host == at[vm] or not fleet.may_take(vm, host):
                continue
            met = [other for other in bits(loads.on[host] & fleet.keeps[vm]) if other not in own]
            rest = [other for other in bits(loads.on[host]) if other not in own and other not in met]
            able = [other for other in met if fleet.may_move(other)]
            if len(able) < len(met):
                continue
            small = sorted((other for other in rest if fleet.may_move(other)), key=lambda one: (fleet.size[one], one))
            found += [(len(met), fleet.size[other], other) for other in (*met, *small[:2])]
    chosen: Mapping[int, None] = dict.fromkeys(other for _, _, other in sorted(found))
    return set(list(chosen)[:NEIGHBOURS])
