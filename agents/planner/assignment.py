"""Which VMs move where, so that the fewest goals stay unmet: one exact question to the solver.

In: a fleet, where its VMs are now, goals, and the VMs that are free to move. Out: the moves. A VM that moves ends on a
host with room where nobody is that it must be apart from, so what is broken afterwards was broken before. Objectives,
one after another: goals unmet, moves, memory moved, and hosts that are emptier.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from underhost.agents.drs.cliques import bits
from underhost.agents.planner.fleet import Loads, VmCluster
from underhost.agents.planner.solver import Program


class Goal(NamedTuple):
    """What a finding asks of one host: of each group of VMs so many must leave it.

    Attributes:
        finding: its id. groups: of VMs on one host, by VM how much it counts; and how much must leave.
    """

    finding: str
    groups: tuple[tuple[Mapping[int, int], int], ...]

    @classmethod
    def parting(cls, finding: str, pairs: Iterable[Iterable[int]]) -> "Goal":
        """Of each pair of VMs one must leave; of one that is alone, as the other is off, that one."""
        distinct = sorted({tuple(sorted(pair)) for pair in pairs})
        return cls(finding, tuple((dict.fromkeys(pair, 1), 1) for pair in distinct))

    @property
    def vms(self) -> set[int]:
        """All of them."""
        return {vm for group, _ in self.groups for vm in group}

    def met(self, start: Sequence[int], at: Sequence[int]) -> bool:
        """Whether of each group enough have left where they were."""
        return all(
            sum(count for vm, count in group.items() if at[vm] != start[vm]) >= leave for group, leave in self.groups
        )


class Assignment(NamedTuple):
    """The answer.

    Attributes:
        moves: the new host of each VM that moves. unmet: how many goals. proven: there is no better one.
    """

    moves: dict[int, int]
    unmet: int
    proven: bool


def assign(
    fleet: VmCluster,
    at: Sequence[int],
    goals: Sequence[Goal],
    free: Collection[int],
    *,
    most_hosts: int = 1 << 30,
    most_moves: int | None = None,
    required: bool = False,
    barred: Collection[tuple[int, int]] = (),
) -> Assignment | None:
    """The best moves of the free VMs, all others staying where they are.

    `most_hosts`: of each VM only so many hosts are tried, the emptiest. `most_moves`: not more. `required`: every goal
    must be met; None where that cannot be. `barred`: (VM, host) that is no way out.
    """
    return _Assigning(fleet, at, goals, sorted(free), most_hosts, frozenset(barred)).answer(most_moves, required)


class _Assigning:
    def __init__(
        self,
        fleet: VmCluster,
        at: Sequence[int],
        goals: Sequence[Goal],
        free: Sequence[int],
        most_hosts: int,
        barred: Collection[tuple[int, int]],
    ) -> None:
        self._fleet, self._at, self._goals = fleet, at, goals
        self._free = [vm for vm in free if fleet.may_move(vm)]
        self._fixed = Loads(fleet, at)
        for vm in self._free:
            self._fixed.add(vm, at[vm], -1)
        self._loads = Loads(fleet, at)
        self._program = Program()
        self._goes: dict[tuple[int, int], int] = {}
        self._ranks: dict[int, int] = {}
        for vm in self._free:
            for rank, host in enumerate(self._candidates(vm, barred)[:most_hosts]):
                choice = self._goes[vm, host] = self._program.choice()
                self._ranks[choice] = rank

    def answer(self, most_moves: int | None, required: bool) -> Assignment | None:
        """Ask the solver."""
        program = self._program
        of_vm: defaultdict[int, list[int]] = defaultdict(list)
        onto: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (vm, host), choice in self._goes.items():
            of_vm[vm].append(choice)
            onto[host][vm] = choice
        for choices in of_vm.values():
            program.at_most(dict.fromkeys(choices, 1), 1)
        unmet = [] if required else [program.choice() for _ in self._goals]
        for number, goal in enumerate(self._goals):
            for group, leave in goal.groups:
                leaves = {choice: -count for vm, count in group.items() for choice in of_vm.get(vm, ())}
                program.at_most({**leaves, **({} if required else {unmet[number]: -leave})}, -leave)
        for host, coming in onto.items():
            self._part(host, coming, of_vm)
            self._bound(host, coming, of_vm)
        moved = dict.fromkeys(self._goes.values(), 1)
        if most_moves is not None:
            program.at_most(moved, most_moves)
        copied = {choice: self._fleet.size[vm] for (vm, _), choice in self._goes.items()}
        values = program.best(dict.fromkeys(unmet, 1), moved, copied, self._ranks)
        if values is None:
            return None
        moves = {vm: host for (vm, host), choice in self._goes.items() if values[choice]}
        return Assignment(moves, sum(values[one] for one in unmet), program.proven)

    def _candidates(self, vm: int, barred: Collection[tuple[int, int]]) -> list[int]:
        """The hosts that might take the VM, could the free VMs be anywhere; the emptiest first."""
        fleet, fixed = self._fleet, self._fixed
        memory, cpus = fleet.memory[vm], fleet.cpus[vm]
        found = [
            host
            for host, (room, cycles) in enumerate(fleet.room)
            if host != self._at[vm]
            and (vm, host) not in barred
            and not fixed.on[host] & fleet.keeps[vm]
            and fixed.memory[host] + memory <= room
            and fixed.cpus[host] + cpus <= cycles
            and all(
                vm not in crowd.members or fixed.held(crowd, host) + crowd.members[vm] <= crowd.spare
                for crowd in fleet.crowds
            )
            and fleet.may_take(vm, host)
        ]
        loads = self._loads
        return sorted(found, key=lambda host: (loads.memory[host] / fleet.room[host][0], loads.cpus[host], host))

    def _part(self, host: int, coming: Mapping[int, int], of_vm: Mapping[int, list[int]]) -> None:
        """Who comes meets nobody that it must be apart from: neither who comes, too, nor who stays."""
        for vm, choice in coming.items():
            for other in bits(self._fleet.keeps[vm]):
                if other in coming and other > vm:
                    self._program.at_most({choice: 1, coming[other]: 1}, 1)
                if other in of_vm and self._at[other] == host:
                    self._program.at_most({choice: 1, **dict.fromkeys(of_vm[other], -1)}, 0)
                elif self._at[other] == host and not self._fixed.on[host] >> other & 1:
                    self._program.at_most({choice: 1}, 0)  # it is free, but has nowhere to go

    def _bound(self, host: int, coming: Mapping[int, int], of_vm: Mapping[int, list[int]]) -> None:
        """Whoever comes has room. A host that is too full takes nobody before enough have left it."""
        fleet = self._fleet
        here = [vm for vm in self._free if self._at[vm] == host]
        bounds = [
            (fleet.memory.__getitem__, fleet.room[host][0], self._fixed.memory[host]),
            (fleet.cpus.__getitem__, fleet.room[host][1], self._fixed.cpus[host]),
            *((crowd.members.__getitem__, crowd.spare, self._fixed.held(crowd, host)) for crowd in fleet.crowds),
        ]
        for of, room, fixed in bounds:
            staying = fixed + sum(map(of, here))
            arriving = {choice: of(vm) for vm, choice in coming.items() if of(vm)}
            if not arriving or staying + sum(arriving.values()) <= room:
                continue
            leaving = {choice: -of(vm) for vm in here for choice in of_vm.get(vm, ())}
            if staying <= room:
                self._program.at_most({**arriving, **leaving}, room - staying)
                continue
            someone, excess = self._program.choice(), staying - room
            for choice in arriving:
                self._program.at_most({choice: 1, someone: -1}, 0)
            # With somebody: arriving - leaving <= -excess. With nobody: nothing is asked.
            self._program.at_most({**arriving, **leaving, someone: excess}, 0)
