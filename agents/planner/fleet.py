"""The hosts and VMs of one vSphere cluster as the planner sees them: what fits where, what must be apart, what stays.

In: a snapshot, its model, and how room is counted. Out: one `VmCluster` for each. Which VMs must be apart because of
their pods is `agents/drs`'s to say; DRS rules, room, reach and pins are vSphere's. Sets of VMs are bit sets.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from underhost.agents.affinity.gathering import Gathering
from underhost.agents.affinity.quorum import Quorum, quorums
from underhost.agents.compiled.model import Model
from underhost.agents.drs.cliques import bits
from underhost.agents.drs.vm_graph import Concerns, VmGraph, vm_graphs
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.hosts import MHZ_OF_A_VCPU, VmReach, kept_free
from underhost.schemas.vsphere import (
    AFFINITY,
    ANTI_AFFINITY,
    CONNECTED,
    DISABLED,
    DISCONNECTED,
    MANUAL,
    VM_HOST,
    Cluster,
    DrsRule,
    Host,
    Vm,
)

T = TypeVar("T")
ANOTHER = "another host"
UNBOUNDED = 1 << 40
"""Room of a host that does not say what it has."""


class Reason(NamedTuple):
    """One thing that keeps a VM from a host: what the smallest explanations are made of.

    Attributes:
        kind: one of those below.
        about: positions: of two VMs (`APART`), one VM (`PINNED`), a host (`CLOSED`, `FULL`), a VM and a host (`REACH`),
            a DRS rule (`RULE`), a quorum (`CROWD`), another finding that shall end (`ALSO`).
    """

    kind: str
    about: tuple[int, ...]


APART, PINNED, CLOSED, FULL, REACH = "apart", "pinned", "closed", "full", "reach"
RULE, CROWD, ALSO = "rule", "crowd", "also"


@dataclass(frozen=True)
class Room:
    """How room is counted.

    Attributes:
        headroom: percent of each host's memory and cycles that stay free.
        reserved: a VM's memory counts as it is reserved, not as it is configured.
        admission: as much of each host stays free, at the least, as HA's admission control wants of its whole cluster.
    """

    headroom: int = 0
    reserved: bool = False
    admission: bool = False

    def memory_of(self, vm: Vm) -> int:
        """MiB that the VM takes of a host."""
        return vm.reserved_mib if self.reserved else vm.memory_mib

    def of(self, cluster: Cluster, hosts: Sequence[Host]) -> list[tuple[int, int]]:
        """(MiB, vCPUs) that VMs may take of each host of the cluster."""
        kept = cluster.admission if self.admission and cluster.ha else None
        failures = -(-100 * kept.hosts // max(1, len(hosts))) if kept is not None else 0
        free = [max(self.headroom, failures, each) for each in (kept.memory_percent, kept.cpu_percent)] if kept else []
        memory, cpu = (100 - min(100, each) for each in free or [self.headroom] * 2)
        return [
            (
                host.memory_mib * memory // 100 if host.memory_mib else UNBOUNDED,
                host.cpu_mhz * cpu // (100 * MHZ_OF_A_VCPU) if host.cpu_mhz else UNBOUNDED,
            )
            for host in hosts
        ]


class KeptRule(NamedTuple):
    """A DRS rule that is in force: `vms` must be apart, or run on `hosts` (of which it says nothing where empty)."""

    name: str
    vms: int
    hosts: frozenset[int]
    apart: bool


class Crowd(NamedTuple):
    """A quorum: no host may hold more than `spare` of its members; `members` by VM, of this cluster alone."""

    name: str
    members: Counter[int]
    spare: int
    off: Counter[int]  # by host, members on its VMs that are off: no vMotion takes them elsewhere


@dataclass(frozen=True)
class VmCluster:
    """One cluster. VMs and hosts are numbered by their references; all VMs that are powered on count, whoever's.

    Attributes:
        hosts, vms: the objects. number: of a VM, by reference.
        at: the host of each VM.
        memory, cpus: what each VM takes. size: MiB that its vMotion copies.
        room: (MiB, vCPUs) of each host.
        closed: of each host, why it takes nobody; "" where it does.
        pinned: of each VM, why it may not be moved; "" where it may.
        apart: for each VM those that pods keep from its host. rules: DRS's own. crowds: quorums.
        blind: (VM, host): the host lacks a datastore or network of the VM.
    """

    name: str
    hosts: Sequence[Host]
    vms: Sequence[Vm]
    number: Mapping[str, int]
    at: tuple[int, ...]
    memory: Sequence[int]
    cpus: Sequence[int]
    size: Sequence[int]
    room: Sequence[tuple[int, int]]
    closed: Sequence[str]
    pinned: Sequence[str]
    apart: Sequence[int]
    rules: Sequence[KeptRule]
    crowds: Sequence[Crowd]
    blind: Mapping[tuple[int, int], str]
    graph: VmGraph
    keeps: Sequence[int] = field(default=())
    """For each VM all those it must be apart from: because of pods, or of a rule."""

    def may_move(self, vm: int) -> bool:
        """Whether the VM may be moved at all."""
        return not self.pinned[vm]

    def may_take(self, vm: int, host: int) -> bool:
        """Whether the host may hold the VM, whoever else is there."""
        return (
            not self.closed[host]
            and (vm, host) not in self.blind
            and all(rule.apart or not rule.vms >> vm & 1 or host in rule.hosts for rule in self.rules)
        )

    def holding(self, held: Mapping[str, str]) -> "VmCluster":
        """The same fleet where these VMs, by reference, stay where they are, with the reason."""
        if held.keys().isdisjoint(self.number):
            return self
        pinned = [why or held.get(vm.ref, "") for vm, why in zip(self.vms, self.pinned, strict=True)]
        return replace(self, pinned=pinned)

    def places(self, pairs: Iterable[tuple[str, str]]) -> set[tuple[int, int]]:
        """(VM, host) by number, of those references that are of this fleet."""
        position = {host.ref: at for at, host in enumerate(self.hosts)}
        return {(self.number[vm], position[host]) for vm, host in pairs if vm in self.number and host in position}

    def without(self, reason: Reason) -> "VmCluster":
        """The same fleet where this keeps nobody from anywhere."""
        kind, about = reason
        if kind == PINNED:
            return replace(self, pinned=_put(self.pinned, about[0], ""))
        if kind == CLOSED:
            return replace(self, closed=_put(self.closed, about[0], ""))
        if kind == FULL:
            return replace(self, room=_put(self.room, about[0], (UNBOUNDED, UNBOUNDED)))
        if kind == REACH:
            return replace(self, blind={place: why for place, why in self.blind.items() if place != about})
        if kind == RULE:
            rules = [rule for at, rule in enumerate(self.rules) if at != about[0]]
            # The position of the others must stay: the rule binds nobody any more.
            rules.insert(about[0], self.rules[about[0]]._replace(vms=0))
            return replace(self, rules=rules, keeps=keeping(self.apart, rules))
        if kind == CROWD:
            return replace(self, crowds=_put(self.crowds, about[0], self.crowds[about[0]]._replace(members=Counter())))
        one, other = about
        apart = list(self.apart)
        apart[one] &= ~(1 << other)
        apart[other] &= ~(1 << one)
        return replace(self, apart=apart, keeps=keeping(apart, self.rules))

    def with_host(self) -> "VmCluster":
        """The same fleet with one more host, as roomy as the roomiest, that reaches everything."""
        hosts = [*self.hosts, Host(ANOTHER, ANOTHER, self.name)]
        rules = [
            rule if rule.apart or not rule.vms else rule._replace(hosts=rule.hosts | {len(self.hosts)})
            for rule in self.rules
        ]
        room = [*self.room, max(self.room)]
        return replace(self, hosts=hosts, room=room, closed=[*self.closed, ""], rules=rules)


def _put(values: Sequence[T], at: int, value: T) -> list[T]:
    found = list(values)
    found[at] = value
    return found


def keeping(apart: Sequence[int], rules: Iterable[KeptRule]) -> list[int]:
    """For each VM all those it must be apart from."""
    found = list(apart)
    for rule in rules:
        for vm in bits(rule.vms if rule.apart else 0):
            found[vm] |= rule.vms & ~(1 << vm)
    return found


def fleets_of(snapshot: Snapshot, model: Model, room: Room, concerns: Concerns | None = None) -> list[VmCluster]:
    """The fleet of each vSphere cluster that holds the VM of a node, by name.

    `concerns` are what pods ask for; without them it is quick, for who has the evaluator judge that.
    """
    asked = concerns or Concerns(model, (), ())
    graphs = vm_graphs(snapshot, model, asked)
    by_cluster: defaultdict[str, list[Host]] = defaultdict(list)
    for _, host in sorted(snapshot.hosts.items()):
        by_cluster[host.cluster].append(host)
    kept = [one for one in (quorums(snapshot) if concerns is not None else ()) if 1 <= one.spare < len(one.members)]
    running: defaultdict[str, list[Vm]] = defaultdict(list)
    for _, vm in sorted(snapshot.vms.items()):
        if vm.power != "off" and vm.host in snapshot.hosts:
            running[snapshot.hosts[vm.host].cluster].append(vm)
    return [
        _fleet(snapshot, graph, by_cluster[graph.name], running[graph.name], room, asked.near, kept) for graph in graphs
    ]


def _fleet(
    snapshot: Snapshot,
    graph: VmGraph,
    hosts: list[Host],
    vms: list[Vm],
    room: Room,
    near: Sequence[Gathering],
    kept: Sequence[Quorum],
) -> VmCluster:
    number = {vm.ref: at for at, vm in enumerate(vms)}
    position = {host.ref: at for at, host in enumerate(hosts)}
    at = tuple(position[vm.host] for vm in vms)
    ours = [number[ref] for ref in graph.vms if ref in number]
    shift = {index: number[ref] for index, ref in enumerate(graph.vms) if ref in number}
    apart = [0] * len(vms)
    for index, others in enumerate(graph.adjacency(graph.edges)):
        if index in shift:
            apart[shift[index]] = sum(1 << shift[other] for other in bits(others) if other in shift)
    cluster = snapshot.clusters.get(graph.name, Cluster(graph.name))
    listed = [rule for (name, _), rule in sorted(snapshot.rules.items()) if name == graph.name and rule.enabled]
    rules = [found for rule in listed if (found := _rule(rule, number, position)) is not None]
    return VmCluster(
        name=graph.name,
        hosts=hosts,
        vms=vms,
        number=number,
        at=at,
        memory=[room.memory_of(vm) for vm in vms],
        cpus=[vm.cpus for vm in vms],
        size=[vm.memory_mib for vm in vms],
        room=room.of(cluster, hosts),
        closed=[_closed(host, kept_free(cluster)) for host in hosts],
        pinned=_pins(cluster, hosts, vms, at, frozenset(ours), listed, _gathered(graph, near, shift, at)),
        apart=apart,
        rules=rules,
        crowds=[_crowd(snapshot, quorum, number, position) for quorum in kept],
        blind=_blind(hosts, vms, at, ours),
        graph=graph,
        keeps=keeping(apart, rules),
    )


def _crowd(snapshot: Snapshot, quorum: Quorum, number: Mapping[str, int], position: Mapping[str, int]) -> Crowd:
    """A quorum's members on the VMs of one cluster."""
    joined = [one for member in quorum.members if (one := snapshot.node_hosts.get(member.node)) is not None]
    members = Counter(number[one.vm] for one in joined if one.vm in number)
    off = Counter(position[one.host] for one in joined if one.vm not in number and one.host in position)
    return Crowd(quorum.name, members, quorum.spare, off)


def _closed(host: Host, free: Collection[str]) -> str:
    """Why a host takes nobody; "" where it does."""
    if host.state != CONNECTED:
        return f"host {host.name} is {DISCONNECTED if host.state == DISCONNECTED else 'in maintenance'}"
    return f"HA's admission control keeps host {host.name} free" if host.ref in free else ""


def _rule(rule: DrsRule, number: Mapping[str, int], position: Mapping[str, int]) -> KeptRule | None:
    """A rule that parts VMs, or binds them to hosts; None for one of another kind, or of VMs that do not run."""
    vms = sum(1 << number[ref] for ref in set(rule.vms) if ref in number)
    if rule.type == ANTI_AFFINITY and vms.bit_count() > 1:
        return KeptRule(rule.name, vms, frozenset(), apart=True)
    if rule.type == VM_HOST and vms:
        return KeptRule(rule.name, vms, frozenset(position[ref] for ref in rule.hosts if ref in position), apart=False)
    return None


def _gathered(graph: VmGraph, near: Sequence[Gathering], shift: Mapping[int, int], at: Sequence[int]) -> dict[int, str]:
    """The VMs that share a host on purpose: a pod's required affinity on the host is met there by another VM alone."""
    found: dict[int, str] = {}
    for one in near:
        mates = graph.pods_by_vm(one.matched, -1)
        for index in bits(graph.on.get(one.owner, 0)):
            if mates[index] > (one.owner in one.matched) or index not in shift:
                continue  # its mate is on the VM itself
            here = [shift[mate] for mate in mates if mate != index and mate in shift]
            here = [mate for mate in here if at[mate] == at[shift[index]]]
            pods = graph.pods_on([one.owner], 1 << index)
            for vm in (shift[index], *(here if len(here) == 1 else ())) if here else ():
                found.setdefault(vm, f"required affinity on the host holds it there: {pods[0]}")
    return found


def _pins(
    cluster: Cluster,
    hosts: Sequence[Host],
    vms: Sequence[Vm],
    at: Sequence[int],
    ours: frozenset[int],
    rules: Iterable[DrsRule],
    gathered: Mapping[int, str],
) -> list[str]:
    together = {
        ref: rule.name for rule in rules if rule.type == AFFINITY and len(set(rule.vms)) > 1 for ref in rule.vms
    }

    def why(number: int, vm: Vm) -> str:
        override = cluster.overrides.get(vm.ref, "")
        if number not in ours:
            return "no node runs on it"
        if hosts[at[number]].state == DISCONNECTED:
            return f"its host {hosts[at[number]].name} is disconnected"
        if vm.pinned:
            return f"it has a device of its host: {vm.pinned}"
        if override in (MANUAL, DISABLED):
            return f"its DRS override is {override}: a person moves it"
        if vm.ref in together:
            return f"DRS rule {together[vm.ref]} keeps it with others"
        return gathered.get(number, "")

    return [why(number, vm) for number, vm in enumerate(vms)]


def _blind(
    hosts: Sequence[Host], vms: Sequence[Vm], at: Sequence[int], ours: Iterable[int]
) -> dict[tuple[int, int], str]:
    """Where a host is known to lack what a VM uses; of a host that names nothing nobody knows."""
    reach, position = VmReach(hosts), {host.ref: place for place, host in enumerate(hosts)}
    found = ((number, position[ref], lack) for number in ours for ref, lack in reach.lacking(vms[number]).items())
    return {(number, place): lack for number, place, lack in found if place != at[number]}


class Loads:
    """What is on each host while VMs move: `put` keeps count."""

    def __init__(self, fleet: VmCluster, at: Sequence[int]) -> None:
        self.fleet, self.at = fleet, list(at)
        self.on = [0] * len(fleet.hosts)
        self.memory: Counter[int] = Counter()
        self.cpus: Counter[int] = Counter()
        for vm, host in enumerate(at):
            self.add(vm, host, 1)

    def add(self, vm: int, host: int, sign: int) -> None:
        """The VM takes room on the host, or (-1) gives it back."""
        self.on[host] = self.on[host] | 1 << vm if sign > 0 else self.on[host] & ~(1 << vm)
        self.memory[host] += sign * self.fleet.memory[vm]
        self.cpus[host] += sign * self.fleet.cpus[vm]

    def move(self, vm: int, host: int) -> None:
        """The VM runs there from now on."""
        self.add(vm, self.at[vm], -1)
        self.at[vm] = host
        self.add(vm, host, 1)

    def fits(self, vm: int, host: int) -> bool:
        """Whether the host may take the VM as it is now: there is room, and nobody that it must be apart from."""
        fleet = self.fleet
        memory, cpus = fleet.room[host]
        return (
            host != self.at[vm]
            and fleet.may_take(vm, host)
            and not self.on[host] & fleet.keeps[vm]
            and self.memory[host] + fleet.memory[vm] <= memory
            and self.cpus[host] + fleet.cpus[vm] <= cpus
            and all(self._spares(crowd, vm, host) for crowd in fleet.crowds)
        )

    def _spares(self, crowd: Crowd, vm: int, host: int) -> bool:
        coming = crowd.members.get(vm, 0)
        return not coming or self.held(crowd, host) + coming <= crowd.spare

    def held(self, crowd: Crowd, host: int) -> int:
        """How many members of the quorum the host holds."""
        return sum(count for vm, count in crowd.members.items() if self.on[host] >> vm & 1)
