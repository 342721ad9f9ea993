"""Where VMs go when their host dies or is emptied: by capacity and VM-VM rules, on hosts of the same vSphere cluster.

In: a snapshot and a host. Out: for each VM that runs there the host that takes it, or None. Pure. It stands for vSphere
HA and DRS, whose own choice among several good hosts nobody can know: here the one that is least full takes the VM, the
largest VM first, and of equal ones the smallest name; VMs that a rule keeps together rather go where all have room.

Memory is counted as configured, without overcommitment. vCPUs may be overcommitted up to `MHZ_OF_A_VCPU`. A host that
does not say what it has (0) takes anything.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY, CONNECTED, VM_HOST, Cluster, DrsRule, Host, Vm

MHZ_OF_A_VCPU = 300
"""The least share of a host's cycles for each vCPU, about eight vCPUs a core: beyond it a host counts as full."""

Moves = list[tuple[Vm, str | None]]


def kept_free(cluster: Cluster | None) -> frozenset[str]:
    """The hosts, by reference, that HA's admission control keeps free: only what a failed host has run comes there."""
    admission = cluster.admission if cluster is not None and cluster.ha else None
    return frozenset(admission.failover_hosts) if admission is not None else frozenset()


class VmReach:
    """What each of some hosts lacks of what a VM uses; most VMs of a cluster use the same."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._hosts = list(hosts)
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, str]] = {}

    def lacking(self, vm: Vm) -> Mapping[str, str]:
        """By the reference of a host that lacks something, what that is; of one that names nothing nobody knows."""
        uses = tuple(vm.datastores), tuple(vm.networks)
        if uses not in self._known:
            found = {host.ref: _lack(vm, host) for host in self._hosts}
            self._known[uses] = {ref: lack for ref, lack in found.items() if lack}
        return self._known[uses]


def _lack(vm: Vm, host: Host) -> str:
    kinds = (("datastore", vm.datastores, host.datastores), ("network", vm.networks, host.networks))
    return next((f"{what} {name}" for what, used, there in kinds for name in used if there and name not in there), "")


class Hosts:
    """The hosts of a site and what runs on them, counted on with every move. VMs may name a host by id or by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._of_cluster: defaultdict[str, list[str]] = defaultdict(list)
        names: defaultdict[str, list[str]] = defaultdict(list)
        for ref, host in snapshot.hosts.items():
            names[host.name].append(ref)
            self._of_cluster[host.cluster].append(ref)
        self._by_name = {name: refs[0] for name, refs in names.items() if len(refs) == 1}
        self.on: defaultdict[str, list[Vm]] = defaultdict(list)
        self._place: dict[str, str] = {}
        self._used: dict[str, tuple[int, int, int]] = {}
        for vm in snapshot.vms.values():
            place = self.ref(vm.host)
            if place is not None and vm.power != "off":
                self.on[place].append(vm)
                self._put(vm, place, 1)
        self._reach = VmReach(snapshot.hosts.values())
        self._rules: defaultdict[str, list[DrsRule]] = defaultdict(list)
        for rule in snapshot.rules.values():
            for vm_ref in rule.vms if rule.enabled else ():
                self._rules[vm_ref].append(rule)

    def at(self, snapshot: Snapshot) -> "Hosts":
        """The same to count on from, in a snapshot of the same VMs, rules and hosts, these in other states."""
        found = copy(self)
        found._snapshot, found._place, found._used = snapshot, dict(self._place), dict(self._used)
        return found

    def ref(self, named: str) -> str | None:
        """The host of this id or name, None where it is not listed (or two share the name)."""
        return named if named in self._snapshot.hosts else self._by_name.get(named)

    def restart(self, dead: Iterable[str]) -> Moves:
        """vSphere HA: the VMs of dead hosts start elsewhere. A rule that is not mandatory may be broken, as HA does."""
        return self._move_all(dead, "ha", soft=True)

    def evacuate(self, ref: str) -> Moves:
        """DRS: the VMs of a host move away. No anti-affinity rule is broken for it; without DRS nobody moves them, and
        nobody moves one that has a device of the host. Where one stays, so do those that must be with it."""
        moves = self._move_all([ref], "drs", soft=False)
        stays = {vm.ref for vm, to in moves if to is None}
        while held := {vm.ref for vm, _ in moves if self._is_held(vm, stays)} - stays:
            stays |= held
        return [(vm, None if vm.ref in stays else to) for vm, to in moves]

    def _is_held(self, vm: Vm, by: Set[str]) -> bool:
        """Whether a mandatory rule keeps the VM with one of these."""
        rules = (rule for rule in self._rules.get(vm.ref, ()) if rule.mandatory and rule.type == AFFINITY)
        return any(not by.isdisjoint(rule.vms) for rule in rules)

    def _move_all(self, refs: Iterable[str], feature: str, soft: bool) -> Moves:
        """All leave their hosts at once, and go to others one after another; nobody where the feature is off."""
        leaving = sorted(((vm, ref) for ref in refs for vm in self.on[ref]), key=_largest_first)
        for vm, ref in leaving:
            self._put(vm, ref, -1)
        moves: Moves = []
        waiting = {vm.ref: vm for vm, _ in leaving if soft or not vm.pinned}
        for vm, ref in leaving:
            is_free = waiting.pop(vm.ref, None) is not None
            is_on = is_free and self._cluster_has(self._snapshot.hosts[ref], feature)
            target = self._best(vm, ref, soft, self._mates(vm, waiting)) if is_on else None
            if target is not None:
                self._put(vm, target, 1)
            moves.append((vm, target))
        return moves

    def _mates(self, vm: Vm, waiting: Mapping[str, Vm]) -> list[Vm]:
        """Those of the VMs that are yet to be placed which rules keep with this one."""
        with_it = {other for rule in self._rules.get(vm.ref, ()) if rule.type == AFFINITY for other in rule.vms}
        return [waiting[other] for other in with_it & waiting.keys()]

    def _best(self, vm: Vm, source: str, soft: bool, mates: Sequence[Vm]) -> str | None:
        hosts, clusters = self._snapshot.hosts, self._snapshot.clusters
        free = frozenset[str]() if soft else kept_free(clusters.get(hosts[source].cluster))
        barred = {source, *free, *self._reach.lacking(vm)}
        found: list[tuple[int, int, bool, float, int, str, str]] = []
        for ref in self._of_cluster[hosts[source].cluster]:
            host = hosts[ref]
            if ref in barred or host.state != CONNECTED or not self._fit([vm], ref):
                continue
            apart, near = self._broken(vm, ref)
            if any(rule.mandatory for rule in (*apart, *near)) or (apart and not soft):
                continue
            memory, _, count = self._used.get(ref, (0, 0, 0))
            full = (memory + vm.memory_mib) / host.memory_mib if host.memory_mib else 0.0
            splits = bool(mates) and not self._fit([vm, *mates], ref)
            found.append((len(apart), len(near), splits, full, count, host.name, ref))
        return min(found)[-1] if found else None

    def _fit(self, vms: Sequence[Vm], ref: str) -> bool:
        host = self._snapshot.hosts[ref]
        memory, cpus, _ = self._used.get(ref, (0, 0, 0))
        if host.memory_mib and memory + sum(vm.memory_mib for vm in vms) > host.memory_mib:
            return False
        return not host.cpu_mhz or (cpus + sum(vm.cpus for vm in vms)) * MHZ_OF_A_VCPU <= host.cpu_mhz

    def _broken(self, vm: Vm, ref: str) -> tuple[list[DrsRule], list[DrsRule]]:
        """The anti-affinity rules, and the rules that want it elsewhere, that the VM would break there."""
        apart, near = [], []
        for rule in self._rules.get(vm.ref, ()):
            places = {self._place[other] for other in rule.vms if other != vm.ref and other in self._place}
            if rule.type == ANTI_AFFINITY and ref in places:
                apart.append(rule)
            elif (rule.type == AFFINITY and places and ref not in places) or (
                rule.type == VM_HOST and ref not in rule.hosts
            ):
                near.append(rule)
        return apart, near

    def _put(self, vm: Vm, ref: str, sign: int) -> None:
        memory, cpus, count = self._used.get(ref, (0, 0, 0))
        self._used[ref] = (memory + sign * vm.memory_mib, cpus + sign * vm.cpus, count + sign)
        if sign > 0:
            self._place[vm.ref] = ref
        else:
            self._place.pop(vm.ref, None)

    def _cluster_has(self, host: Host, feature: str) -> bool:
        cluster = self._snapshot.clusters.get(host.cluster)
        return cluster is None or bool(getattr(cluster, feature))


class Fleet:
    """Who runs where, worked out once for all plans that begin at one snapshot, and kept until another one asks."""

    def __init__(self) -> None:
        self._hosts: tuple[Snapshot, Hosts] | None = None
        self._nodes: tuple[Snapshot, Mapping[str, list[str]]] | None = None

    def hosts(self, snapshot: Snapshot) -> Hosts:
        """The hosts and what runs on them now, to count on from."""
        known = self._hosts
        if (
            known is None
            or known[0].vms is not snapshot.vms
            or known[0].rules is not snapshot.rules
            or not _are_the_same(snapshot.hosts, known[0].hosts)
        ):
            known = self._hosts = snapshot, Hosts(snapshot)
        return known[1].at(snapshot)

    def nodes_of(self, snapshot: Snapshot) -> Mapping[str, list[str]]:
        """The nodes of each VM; more than one only where the inventory contradicts itself."""
        known = self._nodes
        if known is None or known[0].node_hosts is not snapshot.node_hosts:
            known = self._nodes = snapshot, _nodes_of(snapshot)
        return known[1]


def _nodes_of(snapshot: Snapshot) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, joined in sorted(snapshot.node_hosts.items()):
        if joined.vm:
            found[joined.vm].append(name)
    return found


def _largest_first(leaving: tuple[Vm, str]) -> tuple[int, int, str, str]:
    """As it has the fewest places to go."""
    vm, _ = leaving
    return -vm.memory_mib, -vm.cpus, vm.name, vm.ref


def _are_the_same(hosts: Mapping[str, Host], before: Mapping[str, Host]) -> bool:
    """Whether no host came, and none has another name or cluster, or reaches other things; its state may be another."""
    return hosts.keys() == before.keys() and all(
        host is before[ref] or _lasting(host) == _lasting(before[ref]) for ref, host in hosts.items()
    )


def _lasting(host: Host) -> object:
    return host.name, host.cluster, host.datastores, host.networks
