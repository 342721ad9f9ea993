"""Where VMs go when their host dies or is emptied: by capacity and VM-VM rules, on hosts of the same vSphere cluster.

In: a snapshot and a host. Out: for each VM that runs there the host that takes it, or None. Pure. It stands for vSphere
HA and DRS, whose own choice among several good hosts nobody can know: here the one that is least full takes the VM, the
largest VM first, and of equal ones the smallest name.

Memory is counted as configured, without overcommitment. vCPUs may be overcommitted up to `MHZ_OF_A_VCPU`. A host that
does not say what it has (0) takes anything.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.drs.names import AFFINITY, ANTI_AFFINITY
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import DrsRule, Host, Vm

CONNECTED, MAINTENANCE, DISCONNECTED = "connected", "maintenance", "disconnected"
MHZ_OF_A_VCPU = 300
"""The least share of a host's cycles for each vCPU, about eight vCPUs a core: beyond it a host counts as full."""

Moves = list[tuple[Vm, str | None]]


class Hosts:
    """The hosts of a site and what runs on them; `take` keeps count. VMs may name a host by id or by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        names: defaultdict[str, list[str]] = defaultdict(list)
        for ref, host in snapshot.hosts.items():
            names[host.name].append(ref)
        self._by_name = {name: refs[0] for name, refs in names.items() if len(refs) == 1}
        self.on: defaultdict[str, list[Vm]] = defaultdict(list)
        self._place: dict[str, str] = {}
        self._used: dict[str, tuple[int, int, int]] = {}
        for vm in snapshot.vms.values():
            place = self.ref(vm.host)
            if place is not None and vm.power != "off":
                self.on[place].append(vm)
                self._put(vm, place, 1)
        self._rules: defaultdict[str, list[DrsRule]] = defaultdict(list)
        for rule in snapshot.rules.values():
            for vm_ref in rule.vms if rule.enabled else ():
                self._rules[vm_ref].append(rule)

    def ref(self, named: str) -> str | None:
        """The host of this id or name, None where it is not listed (or two share the name)."""
        return named if named in self._snapshot.hosts else self._by_name.get(named)

    def restart(self, dead: Iterable[str]) -> Moves:
        """vSphere HA: the VMs of dead hosts start elsewhere. A rule that is not mandatory may be broken, as HA does."""
        moves: Moves = []
        for ref in sorted(dead, key=self._name):
            host = self._snapshot.hosts[ref]
            if self._cluster_has(host, "ha"):
                moves += self._move_all(ref, soft=True)
            else:
                moves += [(vm, None) for vm in _in_order(self.on[ref])]
        return moves

    def evacuate(self, ref: str) -> Moves:
        """DRS: the VMs of a host move away. No anti-affinity rule is broken for it; without DRS nobody moves them."""
        if not self._cluster_has(self._snapshot.hosts[ref], "drs"):
            return [(vm, None) for vm in _in_order(self.on[ref])]
        return self._move_all(ref, soft=False)

    def _move_all(self, ref: str, soft: bool) -> Moves:
        moves: Moves = []
        for vm in _in_order(self.on[ref]):
            self._put(vm, ref, -1)
        for vm in _in_order(self.on[ref]):
            target = self._best(vm, ref, soft)
            if target is not None:
                self._put(vm, target, 1)
            moves.append((vm, target))
        return moves

    def _best(self, vm: Vm, source: str, soft: bool) -> str | None:
        cluster = self._snapshot.hosts[source].cluster
        found: list[tuple[int, int, float, int, str, str]] = []
        for ref, host in self._snapshot.hosts.items():
            if ref == source or host.cluster != cluster or host.state != CONNECTED or not self._fits(vm, ref):
                continue
            apart, near = self._broken(vm, ref)
            if any(rule.mandatory for rule in (*apart, *near)) or (apart and not soft):
                continue
            memory, _, count = self._used.get(ref, (0, 0, 0))
            full = (memory + vm.memory_mib) / host.memory_mib if host.memory_mib else 0.0
            found.append((len(apart), len(near), full, count, host.name, ref))
        return min(found)[-1] if found else None

    def _fits(self, vm: Vm, ref: str) -> bool:
        host = self._snapshot.hosts[ref]
        memory, cpus, _ = self._used.get(ref, (0, 0, 0))
        if host.memory_mib and memory + vm.memory_mib > host.memory_mib:
            return False
        return not host.cpu_mhz or (cpus + vm.cpus) * MHZ_OF_A_VCPU <= host.cpu_mhz

    def _broken(self, vm: Vm, ref: str) -> tuple[list[DrsRule], list[DrsRule]]:
        """The anti-affinity rules, and the affinity rules, that the VM would break there."""
        apart, near = [], []
        for rule in self._rules.get(vm.ref, ()):
            places = {self._place[other] for other in rule.vms if other != vm.ref and other in self._place}
            if rule.type == ANTI_AFFINITY and ref in places:
                apart.append(rule)
            elif rule.type == AFFINITY and places and ref not in places:
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

    def _name(self, ref: str) -> str:
        return self._snapshot.hosts[ref].name


def nodes_of(snapshot: Snapshot) -> Mapping[str, list[str]]:
    """The nodes of each VM; more than one only where the inventory contradicts itself."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, joined in sorted(snapshot.node_hosts.items()):
        found[joined.vm].append(name)
    return found


def _in_order(vms: Iterable[Vm]) -> list[Vm]:
    """The largest first, as it has the fewest places to go."""
    return sorted(vms, key=lambda vm: (-vm.memory_mib, -vm.cpus, vm.name, vm.ref))
