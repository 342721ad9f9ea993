"""The shortest order in which hosts of one vSphere cluster can be emptied, one wave after another.

In: the VMs of the cluster in units that stay together, the hosts with their room, what must be apart and how much of a
quorum a host may hold. Out: waves, each with its hosts and where their VMs go. Pure.

In a wave only the VMs of its hosts move, each to a host that is in no wave right then; afterwards these hosts take VMs
again. So every step of a wave is as safe as its end: a host that is not being emptied only gets what it has at the end.
Fewest waves come first. A VM rather goes to a host that has had its turn, so that it moves no second time.

A plan as short as the bound (no more hosts at a time than the others can stand in for) is the shortest, and so is the
one that a search through all orders and places finds; that is made as far as `EFFORT` goes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from underhost.agents.schedule.progress import alive

EFFORT = 60_000
"""Units that the search for a shorter plan tries to place; each single wave a fiftieth of it, and of more than `FEW`
hosts a tenth: all their orders are too many anyway."""
FEW = 8
MANY = 300
"""Units of a cluster from which on no place is thought over twice."""


class Unit(NamedTuple):
    """VMs that must be on one host, by reference; what they need, whom they avoid, and which quorums they count in.

    Attributes:
        memory: MiB. cycles: MHz that its vCPUs need at least. apart: other units' positions. counts: members by quorum.
        reach: hosts that have what the VMs use. bound: hosts that rules bind them to, None where no rule does.
    """

    vms: tuple[str, ...]
    memory: int
    cycles: int
    apart: frozenset[int]
    counts: tuple[tuple[int, int], ...]
    reach: frozenset[str]
    bound: frozenset[str] | None


@dataclass(frozen=True)
class RollingCase:
    """What does not change while the plan is made.

    Attributes:
        units: of the cluster. memory, cycles: of each host that takes VMs, 0 where it is not known.
        most: for each quorum, how many members a host may hold once one more comes.
        free: hosts that take nobody.
        turns: the hosts that are to be emptied. at_once: how many of them at a time.
    """

    units: Sequence[Unit]
    memory: Mapping[str, int]
    cycles: Mapping[str, int]
    most: Sequence[int]
    free: frozenset[str]
    turns: Sequence[str]
    at_once: int


Places = tuple[str, ...]
"""The host of each unit."""


class Wave(NamedTuple):
    """Hosts that are emptied at a time, and the host of every unit afterwards."""

    hosts: tuple[str, ...]
    places: Places


@dataclass
class Rolling:
    """A plan. `left` are hosts that cannot be emptied; `shortest` is proven."""

    waves: list[Wave]
    left: tuple[str, ...] = ()
    shortest: bool = False


class _Exhausted(Exception):
    """The search is over before it is through."""


@dataclass
class _Effort:
    """What a search may cost."""

    left: int
    failed: set[tuple[frozenset[str], Places, int]] = field(default_factory=set)

    def spend(self) -> None:
        """One unit is tried."""
        alive()
        self.left -= 1
        if self.left < 0:
            raise _Exhausted


def rolling(case: RollingCase, places: Places) -> Rolling:
    """The plan from where the units are now."""
    found, bound = _greedy(case, places), least_waves(case, places)
    found.shortest = not found.left and len(found.waves) == bound
    if found.shortest or len(case.units) > MANY:
        return found
    effort = _Effort(EFFORT if len(case.turns) <= FEW else EFFORT // 10)
    most = len(case.turns) if found.left else len(found.waves) - 1
    try:
        for number in range(bound, most + 1):
            waves = _search(case, places, frozenset(case.turns), number, effort)
            if waves is not None:
                return Rolling(waves, shortest=True)
    except _Exhausted:
        return found
    found.shortest = not found.left
    return found


def least_waves(case: RollingCase, places: Places) -> int:
    """No plan has fewer: the hosts that stay must have room for all, and one for each unit that must be apart."""
    if not case.turns:
        return 0
    most = min(case.at_once, len(case.turns))
    if case.units:
        most = min(most, len(case.memory) - _clique(case.units, places))
        load = _HostLoads(case, places)
        most = min(most, _spared(case.memory, load.memory, case.turns))
        most = min(most, _spared(case.cycles, load.cycles, case.turns))
    return -(-len(case.turns) // max(1, most))


def _clique(units: Sequence[Unit], places: Places) -> int:
    """Units of which each two must be apart, and are: as many hosts must stay. Greedy, so maybe not the most."""
    best = 1
    for start in range(len(units)):
        group = [start]
        for other in sorted(units[start].apart):
            if all(other in units[one].apart and places[other] != places[one] for one in group):
                group.append(other)
        best = max(best, len(group))
    return best


def _spared(room: Mapping[str, int], load: Mapping[str, int], turns: Sequence[str]) -> int:
    """How many of the hosts may be away at most, for the others to have room for all; what is too full may stay so."""
    if not all(room.values()):
        return len(turns)
    sizes = {host: max(size, load[host]) for host, size in room.items()}
    left, count = sum(sizes.values()), 0
    for size in sorted(sizes[host] for host in turns):
        left -= size
        if left < sum(load.values()):
            break
        count += 1
    return count


# ------------------------------------------------------------------------------------------------------------- one wave
class _HostLoads:
    """What the hosts hold; units are put and taken away again."""

    def __init__(self, case: RollingCase, places: Places) -> None:
        self._case = case
        self.memory = dict.fromkeys(case.memory, 0)
        self.cycles = dict.fromkeys(case.memory, 0)
        self.on: dict[str, set[int]] = {host: set() for host in case.memory}
        self._counts = [dict.fromkeys(case.memory, 0) for _ in case.most]
        for at, host in enumerate(places):
            if host in self.on:
                self.put(at, host)

    def put(self, at: int, host: str, sign: int = 1) -> None:
        """A unit comes, or (-1) goes."""
        unit = self._case.units[at]
        self.memory[host] += sign * unit.memory
        self.cycles[host] += sign * unit.cycles
        for quorum, members in unit.counts:
            self._counts[quorum][host] += sign * members
        if sign > 0:
            self.on[host].add(at)
        else:
            self.on[host].discard(at)

    def fullness(self, host: str) -> tuple[float, int, str]:
        """What hosts are compared by: how full, where that is known; how many units; the name."""
        room = self._case.memory[host]
        return self.memory[host] / room if room else 0.0, len(self.on[host]), host

    def has_room(self, at: int, host: str) -> bool:
        """Whether the host has memory and cycles for the unit and what it uses, and is not kept free."""
        unit, case = self._case.units[at], self._case
        if host in case.free or host not in unit.reach:
            return False
        return (not case.memory[host] or self.memory[host] + unit.memory <= case.memory[host]) and (
            not case.cycles[host] or self.cycles[host] + unit.cycles <= case.cycles[host]
        )

    def takes(self, at: int, host: str) -> bool:
        """Whether the host has room for the unit, and nothing there refuses it."""
        unit, case = self._case.units[at], self._case
        if not self.has_room(at, host) or not unit.apart.isdisjoint(self.on[host]):
            return False
        if unit.bound is not None and host not in unit.bound:
            return False
        return all(self._counts[quorum][host] + members <= case.most[quorum] for quorum, members in unit.counts)


def emptied(
    case: RollingCase, places: Places, hosts: frozenset[str], rather: frozenset[str], effort: _Effort
) -> Iterator[Places]:
    """Every way in which these hosts can be emptied; first those that fill hosts of `rather`. Raises _Exhausted."""
    load = _HostLoads(case, places)
    moving = [at for at, host in enumerate(places) if host in hosts]
    for at in moving:
        load.put(at, places[at], -1)
    units = case.units
    moving.sort(key=lambda at: (-len(units[at].counts), -len(units[at].apart), -units[at].memory, units[at].vms))
    open_hosts = [host for host in case.memory if host not in hosts]
    found = list(places)

    def place(position: int) -> Iterator[Places]:
        if position == len(moving):
            yield tuple(found)
            return
        at = moving[position]
        for host in sorted(open_hosts, key=lambda one: (one not in rather, load.fullness(one))):
            effort.spend()
            if load.takes(at, host):
                load.put(at, host)
                found[at] = host
                yield from place(position + 1)
                load.put(at, host, -1)

    yield from place(0)


def hindered(case: RollingCase, places: Places, host: str) -> list[tuple[Unit, bool]]:
    """The units of a host that no other host takes, each with whether one has room for it."""
    load, found = _HostLoads(case, places), []
    for at, place in enumerate(places):
        others = [other for other in case.memory if other != host] if place == host else []
        if place == host and not any(load.takes(at, other) for other in others):
            found.append((case.units[at], any(load.has_room(at, other) for other in others)))
    return found


# ---------------------------------------------------------------------------------------------------------- whole plans
def _greedy(case: RollingCase, places: Places) -> Rolling:
    """Each wave takes host by host, those with the fewest units first, as long as all of them can be emptied."""
    waves: list[Wave] = []
    waiting, done = set(case.turns), frozenset[str]()
    while waiting:
        held = Counter(host for host in places if host in waiting)
        order = sorted(waiting, key=lambda host: (held[host], host))
        wave = (_quick_wave if len(case.units) > MANY else _thorough_wave)(case, places, order, done)
        if not wave.hosts:
            break
        waves.append(wave)
        waiting, done, places = waiting.difference(wave.hosts), done.union(wave.hosts), wave.places
    return Rolling(waves, tuple(sorted(waiting)))


def _thorough_wave(case: RollingCase, places: Places, order: Sequence[str], done: frozenset[str]) -> Wave:
    """Where one more host joins, all places are thought over."""
    hosts, after = frozenset[str](), places
    for host in order:
        if len(hosts) >= case.at_once:
            break
        try:
            found = next(emptied(case, places, hosts | {host}, done, _Effort(EFFORT // 50)), None)
        except _Exhausted:
            continue
        if found is not None:
            hosts, after = hosts | {host}, found
    return Wave(tuple(sorted(hosts)), after)


def _quick_wave(case: RollingCase, places: Places, order: Sequence[str], done: frozenset[str]) -> Wave:
    """Where one more host joins, its own units alone find a place each; a host that took some joins no more."""
    load, after, hosts, took = _HostLoads(case, places), list(places), set[str](), set[str]()
    for host in order:
        alive()
        if len(hosts) >= case.at_once:
            break
        if host in took:
            continue
        moved: list[int] = []
        taking = set(took)  # rather those that took some, so that others may join
        for at in sorted(load.on[host], key=lambda one: (-case.units[one].memory, case.units[one].vms)):
            others = [one for one in case.memory if one != host and one not in hosts and load.takes(at, one)]
            if not others:
                break
            best = min(others, key=lambda one: (one not in done, one not in taking, load.fullness(one)))
            load.put(at, host, -1)
            load.put(at, best)
            after[at] = best
            moved.append(at)
            taking.add(best)
        if load.on[host]:
            for at in moved:
                load.put(at, after[at], -1)
                load.put(at, host)
                after[at] = host
        else:
            hosts.add(host)
            took = taking
    return Wave(tuple(sorted(hosts)), tuple(after))


def _search(
    case: RollingCase, places: Places, waiting: frozenset[str], number: int, effort: _Effort
) -> list[Wave] | None:
    """A plan of so many waves, None where there is none. Raises _Exhausted."""
    if not waiting:
        return []
    if number == 0 or (waiting, places, number) in effort.failed:
        return None
    fewest = len(waiting) if number == 1 else 1
    for size in range(min(case.at_once, len(waiting)), fewest - 1, -1):
        for chosen in combinations(sorted(waiting), size):
            hosts = frozenset(chosen)
            done = frozenset(case.turns) - waiting
            for after in emptied(case, places, hosts, done, effort):
                rest = _search(case, after, waiting - hosts, number - 1, effort)
                if rest is not None:
                    return [Wave(chosen, after), *rest]
    effort.failed.add((waiting, places, number))
    return None
