"""In which order VMs move, so that nothing that held is ever broken, and what may move at the same time.

In: a fleet, where its VMs are, and where they shall be. Out: vMotions one after another, in waves. A VM that moves has
its room on both hosts until it has arrived. Where moves wait for one another in a circle, one VM steps aside first.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from underhost.agents.planner.fleet import Loads, VmCluster


class VMotion(NamedTuple):
    """One VM from one host to another; VMs of one wave may move at the same time."""

    vm: int
    from_: int
    to: int
    wave: int = 0


class PlannedMove(NamedTuple):
    """A vMotion as it is carried out: VM and hosts by reference, and by name for people."""

    vm: str
    name: str
    cluster: str
    from_: str
    from_name: str
    to: str
    to_name: str
    wave: int
    because: list[str]


def ordered(fleet: VmCluster, at: Sequence[int], moves: Mapping[int, int]) -> list[VMotion] | None:
    """The moves in a safe order, with steps aside where they need some; None where there is no such order."""
    loads, left, found = Loads(fleet, at), dict(moves), list[VMotion]()
    aside = set[int]()
    while left:
        vm = next((one for one in sorted(left) if loads.fits(one, left[one])), None)
        if vm is not None:
            found.append(VMotion(vm, loads.at[vm], left[vm]))
            loads.move(vm, left.pop(vm))
            continue
        step = _aside(fleet, loads, left, aside)
        if step is None:
            return None
        aside.add(step.vm)  # once only; where it need not go on from there, it stays
        found.append(step)
        loads.move(step.vm, step.to)
    return found


def _aside(fleet: VmCluster, loads: Loads, left: Mapping[int, int], done: set[int]) -> VMotion | None:
    """A VM that makes way for one that waits: one that moves anyway rather than another, the smallest of these."""
    wait = sorted(left)
    others = [vm for vm in range(len(fleet.vms)) if vm not in left]
    for vm in (*sorted(wait, key=lambda one: (fleet.size[one], one)), *others):
        if vm in done or not fleet.may_move(vm) or loads.at[vm] not in {left[one] for one in wait if one != vm}:
            continue
        here = loads.at[vm]
        for host in range(len(fleet.hosts)):
            if not loads.fits(vm, host):
                continue
            loads.move(vm, host)
            helped = any(loads.fits(one, left[one]) for one in wait if one != vm)
            loads.move(vm, here)
            if helped:
                return VMotion(vm, here, host)
    return None


def in_waves(fleet: VmCluster, at: Sequence[int], steps: Sequence[VMotion]) -> list[VMotion]:
    """The same steps, each in the earliest wave in which it is safe, whatever of its wave is done first.

    Meanwhile a VM has its room on both hosts. A step overtakes only those that touch neither of its hosts.
    """
    loads, left, found = Loads(fleet, at), list(steps), list[VMotion]()
    wave = 0
    while left:
        wave += 1
        taken: list[VMotion] = []
        waiting: list[VMotion] = []
        held = set[int]()
        for step in left:
            hosts = {step.from_, step.to}
            if held & hosts or loads.at[step.vm] != step.from_ or not loads.fits(step.vm, step.to):
                waiting.append(step)
                held |= hosts
            else:
                taken.append(step._replace(wave=wave))
                loads.add(step.vm, step.to, 1)
        for step in taken:
            loads.add(step.vm, step.from_, -1)
            loads.at[step.vm] = step.to
        found += taken
        left = waiting
    return found
