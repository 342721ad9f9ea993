"""The best steps of a small fleet where the order matters: every moment is asked for at once.

In: a fleet, goals, and how many moves there must be at least. Out: steps, each safe when it is taken. What `order.py`
cannot put in order, because VMs wait for one another, or only with a detour, is asked here: which VM is where after
each of so many steps.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from underhost.agents.drs.cliques import bits
from underhost.agents.planner.assignment import Goal
from underhost.agents.planner.fleet import VmCluster
from underhost.agents.planner.order import VMotion
from underhost.agents.planner.solver import Program

MORE = 3
"""Steps beyond the fewest that could do, at most."""


def shortest(
    fleet: VmCluster,
    goals: Sequence[Goal],
    known: list[VMotion] | None,
    least: int,
    barred: Collection[tuple[int, int]],
    most_moves: int | None,
) -> tuple[list[VMotion], bool]:
    """The steps, and whether no others of so many are better. `known` are steps in a safe order."""
    most = least + MORE if known is None else max(len(known), least)
    if most_moves is not None:
        most = min(most, most_moves)
    return _Moments(fleet, goals, most, frozenset(barred)).answer()


class _Moments:
    """Where every VM is after each of so many steps; a step may be none."""

    def __init__(
        self, fleet: VmCluster, goals: Sequence[Goal], steps: int, barred: Collection[tuple[int, int]]
    ) -> None:
        self._fleet, self._goals, self._steps = fleet, goals, steps
        self._program = Program()
        hosts = range(len(fleet.hosts))
        self._ways = {
            vm: [
                host
                for host in hosts
                if host == fleet.at[vm]
                or (fleet.may_move(vm) and fleet.may_take(vm, host) and (vm, host) not in barred)
            ]
            for vm in range(len(fleet.vms))
        }
        # is_at[step][vm][host], comes[step][vm][host]
        choice = self._program.choice
        self._is_at = [{vm: {host: choice() for host in ways} for vm, ways in self._ways.items()} for _ in range(steps)]
        self._comes = [{vm: {host: choice() for host in ways} for vm, ways in self._ways.items()} for _ in range(steps)]

    def answer(self) -> tuple[list[VMotion], bool]:
        """Ask the solver."""
        program, fleet = self._program, self._fleet
        for step in range(self._steps):
            self._step(step)
        if not self._steps:
            return [], True
        last = self._is_at[-1]
        unmet = [program.choice() for _ in self._goals]
        for number, goal in enumerate(self._goals):
            for group, leave in goal.groups:
                staying = {last[vm][fleet.at[vm]]: count for vm, count in group.items()}
                program.at_most({**staying, unmet[number]: -leave}, sum(group.values()) - leave)
        coming = {
            choice: fleet.size[vm] for comes in self._comes for vm, ways in comes.items() for choice in ways.values()
        }
        values = program.best(dict.fromkeys(unmet, 1), dict.fromkeys(coming, 1), coming)
        assert values is not None  # to stay is an answer
        at, found = list(fleet.at), list[VMotion]()
        for comes in self._comes:
            for vm, ways in comes.items():
                for host, choice in ways.items():
                    if values[choice]:
                        found.append(VMotion(vm, at[vm], host))
                        at[vm] = host
        return found, program.proven

    def _step(self, step: int) -> None:
        program, fleet = self._program, self._fleet
        now, comes = self._is_at[step], self._comes[step]
        everyone: dict[int, int] = {}
        for vm, ways in self._ways.items():
            program.at_most(dict.fromkeys(now[vm].values(), 1), 1)
            program.at_most(dict.fromkeys(now[vm].values(), -1), -1)
            for host in ways:
                # It is there because it was, or because it comes; who comes was elsewhere.
                if step:
                    before = self._is_at[step - 1][vm][host]
                    program.at_most({now[vm][host]: 1, before: -1, comes[vm][host]: -1}, 0)
                    program.at_most({comes[vm][host]: 1, before: 1}, 1)
                else:
                    here = int(host == fleet.at[vm])
                    program.at_most({now[vm][host]: 1, comes[vm][host]: -1}, here)
                    program.at_most({comes[vm][host]: 1}, 1 - here)
                program.at_most({comes[vm][host]: 1, now[vm][host]: -1}, 0)
                everyone[comes[vm][host]] = 1
        program.at_most(everyone, 1)  # one at a time
        on: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for vm, ways in self._ways.items():
            for host in ways:
                on[host][vm] = now[vm][host]
        for host, there in on.items():
            self._meet(host, there, comes)

    def _meet(self, host: int, there: dict[int, int], comes: dict[int, dict[int, int]]) -> None:
        """Whoever comes to the host now finds room there, and nobody that it must be apart from."""
        program, fleet = self._program, self._fleet
        for vm in there:
            arrives = comes[vm][host]
            for other in bits(fleet.keeps[vm]):
                if other in there:
                    program.at_most({arrives: 1, there[other]: 1}, 1)
        bounds = [
            (fleet.memory.__getitem__, fleet.room[host][0]),
            (fleet.cpus.__getitem__, fleet.room[host][1]),
            *((crowd.members.__getitem__, crowd.spare) for crowd in fleet.crowds),
        ]
        for of, room in bounds:
            counted = {choice: of(vm) for vm, choice in there.items() if of(vm)}
            whole = sum(counted.values())
            if whole > room:
                # None of these comes, or all that are there fit.
                arriving = [comes[vm][host] for vm in there if of(vm)]
                program.at_most({**counted, **dict.fromkeys(arriving, whole - room)}, whole)
