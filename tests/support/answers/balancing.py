"""What balancers would move on the same instance, to set beside our repairs: two greedy ways, told in plain values.

`balanced` is ProxLB's idea: one VM after another, every one that must be apart from others is given a host anew, the
one with the most room that none of them has been given; where it is now does not count. `mended` is kinder: only VMs
that share a host with one that they must be apart from move, each to the host with the most room, until nothing is
broken or nobody can go anywhere. Each step of both is safe. Nothing of the product is asked.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from support.answers.repair import enemies, may_be_on
from support.sites.movable import Puzzle
from support.sites.planted import Planted


@dataclass(frozen=True)
class Instance:
    """VMs and hosts by name: where VMs are, MiB of each, of a host 0 where it takes anything; who must be apart."""

    hosts: Sequence[str]
    at: Mapping[str, str]
    memory: Mapping[str, int]
    room: Mapping[str, int]
    foes: Mapping[str, frozenset[str]]
    may_be_on: Callable[[str, str], bool]


class _Places:
    """Where VMs are while they move."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self.at = instance, dict(instance.at)
        self.load = dict.fromkeys(instance.hosts, 0)
        for vm, host in self.at.items():
            self.load[host] += instance.memory[vm]

    def meets(self, vm: str, host: str) -> bool:
        """Whether one that it must be apart from is there."""
        return any(self.at[foe] == host for foe in self._instance.foes.get(vm, ()))

    def emptiest(self, vm: str, refused: Callable[[str], bool]) -> str | None:
        """The host with the most room that may take the VM; its own counts as if it had left it."""
        instance, size = self._instance, self._instance.memory[vm]
        found = []
        for host in instance.hosts:
            here = self.at[vm] == host
            load, room = self.load[host] - (size if here else 0), instance.room[host]
            if (here or instance.may_be_on(vm, host)) and (not room or load + size <= room) and not refused(host):
                found.append((load / room if room else 0.0, load, host))
        return min(found)[-1] if found else None

    def move(self, vm: str, host: str) -> None:
        """The VM goes there."""
        self.load[self.at[vm]] -= self._instance.memory[vm]
        self.load[host] += self._instance.memory[vm]
        self.at[vm] = host


def balanced(instance: Instance) -> list[tuple[str, str]]:
    """ProxLB's idea: (VM, host) of each move."""
    places, given = _Places(instance), defaultdict[str, set[str]](set)
    moves = []
    for vm in sorted(vm for vm, foes in instance.foes.items() if foes):
        host = places.emptiest(vm, lambda host, vm=vm: host in given[vm] or places.meets(vm, host))  # type: ignore[misc]
        if host is not None and host != places.at[vm]:
            places.move(vm, host)
            moves.append((vm, host))
        for foe in instance.foes[vm]:
            given[foe].add(places.at[vm])
    return moves


def mended(instance: Instance) -> list[tuple[str, str]]:
    """The kinder way: (VM, host) of each move."""
    places, moves = _Places(instance), list[tuple[str, str]]()
    for vm in sorted(vm for vm, foes in instance.foes.items() if foes):
        if not places.meets(vm, places.at[vm]):
            continue
        host = places.emptiest(vm, lambda host, vm=vm: places.meets(vm, host))  # type: ignore[misc]
        if host is not None:
            places.move(vm, host)
            moves.append((vm, host))
    return moves


def of_puzzle(puzzle: Puzzle) -> Instance:
    """A small random site."""
    foes = defaultdict[str, set[str]](set)
    for one, other in map(tuple, enemies(puzzle)):
        foes[one].add(other)
        foes[other].add(one)
    return Instance(
        puzzle.hosts,
        puzzle.at,
        puzzle.memory,
        puzzle.room,
        {vm: frozenset(others) for vm, others in foes.items()},
        lambda vm, host: vm not in puzzle.pinned and may_be_on(puzzle, vm, host),
    )


def of_planted(planted: Planted) -> Instance:
    """A large site with planted findings: replicas of one application are apart, VMs stay within their cluster."""
    site = planted.snapshot
    nodes, foes = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for name, pod in site.pods.items():
        nodes[name.rpartition("-")[0]].add(pod.spec.node_name or "")
    for group in nodes.values():
        for one in group:
            foes[one] |= group - {one}
    at = {name: joined.host for name, joined in site.node_hosts.items()}
    return Instance(
        sorted(site.hosts),
        at,
        {name: site.vms[joined.vm].memory_mib for name, joined in site.node_hosts.items()},
        {ref: host.memory_mib for ref, host in site.hosts.items()},
        {vm: frozenset(others) for vm, others in foes.items()},
        lambda vm, host: site.hosts[host].cluster == site.hosts[at[vm]].cluster,
    )
