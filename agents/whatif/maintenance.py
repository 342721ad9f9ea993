"""Maintenance of many hosts: the shortest rolling order, and what the evaluator says after each of its waves.

In: a snapshot, options, and the hosts that shall be emptied. Out: a `MaintenancePlan`, by names, and its waves by
reference for who carries it out. VMs move, no pod does, so that
no disruption budget is asked. `rolling.py` finds the order, each vSphere cluster for itself, by what is read of a site
here (`_Cluster`); the evaluator judges the site after each wave, as it judges everything.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import NamedTuple

from underhost.agents.affinity.followed import Followed, asked_of, followed
from underhost.agents.affinity.quorum import Quorum
from underhost.agents.affinity.separation import connected
from underhost.agents.compiled.model import Model
from underhost.agents.drs.cliques import bits
from underhost.agents.drs.vm_graph import Concerns, gathered, vm_graphs
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.evaluate.tables import FindingSet
from underhost.agents.schedule.progress import told
from underhost.agents.site.not_judged import counted
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.hosts import MHZ_OF_A_VCPU, Hosts, VmReach, kept_free
from underhost.agents.whatif.outcome import Before
from underhost.agents.whatif.rolling import Places, RollingCase, Unit, Wave, hindered, least_waves, rolling
from underhost.agents.whatif.world import World
from underhost.schemas.documents import BlockedHost, MaintenancePlan, MaintenanceWave, NotJudged, VmMove
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.records import Finding
from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY, CONNECTED, DISCONNECTED, MAINTENANCE, VM_HOST, Vm

NO_ROOM, RULES = "no other host of its cluster has room", "rules or quorums keep it from every host that has room"
HELD = "a device of its host, or a datastore or network that no other host reaches, holds it there"
FULL = "no other host that reaches its datastores and networks has room"
TOGETHER, AWAY = "its VMs fit the other hosts one by one, but not all of them", "it is not connected"
NO_CAPACITY = "the inventory does not say how much they have"


@dataclass(frozen=True)
class Chosen:
    """Which hosts shall be emptied: `all`, those of some vSphere clusters, and named ones; `at_once` of a cluster.

    `at_once` 0: as many as may be.
    """

    all: bool = False
    clusters: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    at_once: int = 0

    def check(self, snapshot: Snapshot, options: Options) -> None:
        """Raises InputError for a host or cluster that is not there."""
        _refs(World(snapshot, Evaluator(options)), self)


class PlannedWave(NamedTuple):
    """Hosts that are in maintenance mode at one time, and for each VM that moves its new host; all by reference."""

    hosts: tuple[str, ...]
    moves: Mapping[str, str]


class PlannedMaintenance(NamedTuple):
    """A plan, for people and for who carries it out."""

    document: MaintenancePlan
    waves: list[PlannedWave]


def maintenance(
    snapshot: Snapshot, options: Options, chosen: Chosen, evaluator: Evaluator | None = None
) -> MaintenancePlan:
    """The plan; see `planned_maintenance`."""
    return planned_maintenance(snapshot, options, chosen, evaluator).document


def planned_maintenance(
    snapshot: Snapshot, options: Options, chosen: Chosen, evaluator: Evaluator | None = None
) -> PlannedMaintenance:
    """The plan; `evaluator` has judged the site before.

    Raises InputError for a host or cluster that is not there, BadObjectError.
    """
    world = World(snapshot, evaluator or Evaluator(options))
    refs = _refs(world, chosen)
    before = Before(world.evaluator.update(snapshot), snapshot)
    model, quorums = world.evaluator.state(snapshot).model, world.evaluator.quorums(snapshot)
    turns = _by_cluster(snapshot, refs)
    parts = _Parts(snapshot, model, quorums, asked := asked_of(model))
    clusters = [_Cluster(parts, name, hosts, chosen.at_once) for name, hosts in turns.items()]
    if any(cluster.plan.left for cluster in clusters) and (binding := followed(model, asked)) != asked:
        # What a pod asks of pods of others keeps no host from its maintenance.
        parts = _Parts(snapshot, model, quorums, binding)
        clusters = [_Cluster(parts, name, hosts, chosen.at_once) for name, hosts in turns.items()]
    new: dict[str, Finding] = {}
    waves, planned = [], []
    together = list(zip_longest(*(cluster.plan.waves for cluster in clusters)))
    for number, at_a_time in enumerate(told("trying waves", together), start=1):
        taken = [(one, wave) for one, wave in zip(clusters, at_a_time, strict=True) if wave is not None]
        hosts = [host for _, wave in taken for host in wave.hosts]
        moves = {vm: place for cluster, wave in taken for vm, place in cluster.go(wave)}
        moved = [_told(world.snapshot, number, vm, to) for vm, to in sorted(moves.items())]
        world.move_vms(moves)
        world.set_hosts(hosts, MAINTENANCE)
        found = FindingSet(world.evaluator.update(world.snapshot).findings) - before.findings
        new.update((one.id, one) for one in found)
        world.set_hosts(hosts, CONNECTED)
        waves.append(MaintenanceWave(number, sorted(snapshot.hosts[host].name for host in hosts), moved))
        planned.append(PlannedWave(tuple(sorted(hosts, key=lambda ref: (snapshot.hosts[ref].name, ref))), moves))
    away = [ref for ref in refs if snapshot.hosts[ref].state == DISCONNECTED]
    document = MaintenancePlan(
        waves=waves,
        blocked=[
            *(BlockedHost(snapshot.hosts[ref].name, [], AWAY) for ref in away),
            *(one for cluster in clusters for one in cluster.blocked(snapshot)),
        ],
        new_findings=list(new.values()),
        lower_bound=max((cluster.least for cluster in clusters), default=0),
        optimal=all(cluster.plan.shortest for cluster in clusters),
        not_judged=[*before.not_judged, *_without_capacity(snapshot, refs)],
    )
    return PlannedMaintenance(document, planned)


def _refs(world: World, chosen: Chosen) -> list[str]:
    """The hosts that are meant, by name. Raises InputError."""
    hosts = world.snapshot.hosts
    if not hosts:
        raise InputError("no ESXi host is known; name the vSphere side with --inventory")
    world.require_vms("maintain")
    names = {host.cluster for host in hosts.values()}
    if unknown := [name for name in chosen.clusters if name not in names]:
        raise InputError(*(f"cluster {name}: not there{did_you_mean(name, names)}" for name in unknown))
    found = {ref for ref, host in hosts.items() if chosen.all or host.cluster in chosen.clusters}
    return sorted(found | {world.host(name) for name in chosen.hosts}, key=lambda ref: (hosts[ref].name, ref))


def _by_cluster(snapshot: Snapshot, refs: Iterable[str]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for ref in refs:
        if snapshot.hosts[ref].state == CONNECTED:  # what is in maintenance has its turn already
            found[snapshot.hosts[ref].cluster].append(ref)
    return dict(sorted(found.items()))


def _told(snapshot: Snapshot, number: int, vm: str, to: str) -> VmMove:
    hosts, one = snapshot.hosts, snapshot.vms[vm]
    here = hosts[one.host].name if one.host in hosts else one.host
    return VmMove(number, one.name, here, hosts[to].name)


def _without_capacity(snapshot: Snapshot, refs: Iterable[str]) -> list[NotJudged]:
    clusters = {snapshot.hosts[ref].cluster for ref in refs}
    hosts = [host for host in snapshot.hosts.values() if host.cluster in clusters]
    silent = sum(not host.memory_mib or not host.cpu_mhz for host in hosts)
    return [NotJudged(f"room of {counted(silent, 'host')}", NO_CAPACITY)] if silent else []


class _Parts:
    """What the plans of all clusters read of a site: VMs that must be apart, together or on some hosts, and quorums.

    DRS rules that are enabled count, and what pods ask for.
    """

    def __init__(self, snapshot: Snapshot, model: Model, quorums: Iterable[Quorum], terms: Followed) -> None:
        self.snapshot, self.hosts = snapshot, Hosts(snapshot)
        self.apart: defaultdict[str, set[str]] = defaultdict(set)
        self.links: list[tuple[str, str]] = []
        self.bound: dict[str, frozenset[str]] = {}
        for graph in vm_graphs(snapshot, model, Concerns(model, *terms)):
            for at, row in enumerate(graph.adjacency(graph.edges)):
                self.apart[graph.vms[at]].update(graph.vms[other] for other in bits(row))
            for group in gathered(graph, terms.near):
                members = list(bits(group.vms))
                self.links += [(graph.vms[members[0]], graph.vms[other]) for other in members[1:]]
        for rule in snapshot.rules.values():
            for vm in rule.vms if rule.enabled and rule.type == VM_HOST else ():
                self.bound[vm] = self.bound.get(vm, frozenset(rule.hosts)) & frozenset(rule.hosts)
            for one, other in combinations(rule.vms if rule.enabled else (), 2):
                if rule.type == ANTI_AFFINITY:
                    self.apart[one].add(other)
                    self.apart[other].add(one)
                elif rule.type == AFFINITY:
                    self.links.append((one, other))
        self.spare: list[int] = []
        self.counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for quorum in quorums:
            for member in quorum.members if quorum.spare > 0 else ():
                if (joined := snapshot.node_hosts.get(member.node)) is not None:
                    self.counts[joined.vm][len(self.spare)] += 1
            self.spare.append(quorum.spare)


class _Cluster:
    """One vSphere cluster: its plan, and where its VMs are while the plan goes on."""

    def __init__(self, parts: _Parts, name: str, turns: Sequence[str], at_once: int) -> None:
        snapshot = parts.snapshot
        hosts = {ref: host for ref, host in snapshot.hosts.items() if host.cluster == name}
        on = {vm.ref: (vm, ref) for ref in sorted(hosts) for vm in parts.hosts.on.get(ref, ())}
        groups = _groups(on, parts.links)
        at = {vm: position for position, group in enumerate(groups) for vm in group}
        usable = {ref: host for ref, host in sorted(hosts.items()) if host.state == CONNECTED}
        reach = VmReach(usable.values())
        units = [_unit(parts, [on[vm][0] for vm in group], at, usable.keys(), reach) for group in groups]
        self._places: Places = tuple(on[group[0]][1] for group in groups)
        self._case = RollingCase(
            units=units,
            memory={ref: host.memory_mib for ref, host in usable.items()},
            cycles={ref: host.cpu_mhz for ref, host in usable.items()},
            most=parts.spare,
            free=kept_free(snapshot.clusters.get(name)),
            turns=turns,
            at_once=at_once or len(turns),
        )
        self.least = least_waves(self._case, self._places)
        self.plan = rolling(self._case, self._places)

    def go(self, wave: Wave) -> list[tuple[str, str]]:
        """The VMs that move in the next wave, each with its new host."""
        before, self._places = self._places, wave.places
        moved = zip(self._case.units, before, wave.places, strict=True)
        return [(vm, to) for unit, here, to in moved if here != to for vm in unit.vms]

    def blocked(self, snapshot: Snapshot) -> list[BlockedHost]:
        """The hosts that cannot be emptied, after all waves, and what cannot leave them."""
        found = []
        for host in self.plan.left:
            stuck = hindered(self._case, self._places, host)
            whys = [(_why(unit, host, self._case.memory.keys(), has_room=room), unit) for unit, room in stuck]
            for why in (NO_ROOM, FULL, RULES, HELD):
                vms = sorted(snapshot.vms[vm].name for said, unit in whys if said == why for vm in unit.vms)
                if vms:
                    found.append(BlockedHost(snapshot.hosts[host].name, vms, why))
            if not stuck:
                vms = sorted(vm.name for vm in snapshot.vms.values() if vm.host == host)
                found.append(BlockedHost(snapshot.hosts[host].name, vms, TOGETHER))
        return found


def _groups(on: Mapping[str, tuple[Vm, str]], links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The VMs that stay on one host together: those that must, and do."""
    names = sorted(on)
    number = {name: at for at, name in enumerate(names)}
    here = [(one, other) for one, other in links if one in on and other in on and on[one][1] == on[other][1]]
    found = connected(range(len(names)), [(number[one], number[other]) for one, other in here])
    return [[names[at] for at in group] for group in found]


def _why(unit: Unit, host: str, usable: Set[str], *, has_room: bool) -> str:
    """Why no other host takes the unit."""
    if unit.reach <= {host} and not usable <= {host}:
        return HELD
    if has_room:
        return RULES
    return NO_ROOM if usable <= unit.reach | {host} else FULL


def _unit(parts: _Parts, vms: Sequence[Vm], at: Mapping[str, int], usable: Set[str], reach: VmReach) -> Unit:
    apart = {at[other] for vm in vms for other in parts.apart.get(vm.ref, ()) if other in at}
    counts: Counter[int] = Counter()
    for vm in vms:
        counts.update(parts.counts.get(vm.ref, {}))
    bound = [parts.bound[vm.ref] for vm in vms if vm.ref in parts.bound]
    lacking = {ref for vm in vms for ref in reach.lacking(vm)}
    return Unit(
        vms=tuple(vm.ref for vm in vms),
        memory=sum(vm.memory_mib for vm in vms),
        cycles=sum(vm.cpus for vm in vms) * MHZ_OF_A_VCPU,
        apart=frozenset(apart - {at[vm.ref] for vm in vms}),
        counts=tuple(sorted(counts.items())),
        reach=frozenset() if any(vm.pinned for vm in vms) else frozenset(usable - lacking),
        bound=frozenset.intersection(*bound) if bound else None,
    )
