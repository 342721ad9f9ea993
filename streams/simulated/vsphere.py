"""A simulated vCenter: one vSphere cluster of hosts and VMs, vMotion, VM-VM rules, and a DRS that keeps the rules.

In: an operator's moves, and the rule edits of the DRS sink (this class is a DrsWriter by structure). Out: changes of
hosts, VMs, rules and the cluster in `store`. What it takes from the real one: a move to an explicit host ignores
rules; DRS mends a violated rule only at its next run; of two rules that contradict each other the newer is disabled
in silence. What it leaves out: load balancing, mandatory rules' refusals, VM-Host groups.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import msgspec

from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.kubernetes import encode
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Vm
from underhost.streams.simulated.store import ObjectKey, Store
from underhost.streams.simulated.timeline import Timeline

ANTI_AFFINITY = "anti-affinity"
AFFINITY = "affinity"


class SimulatedVSphere:
    """The vCenter under the simulated cluster.

    Args:
        timeline: when things happen.
        cluster: the vSphere cluster; every host and VM is in it.
        vmotion: seconds that a VM takes to move.
        drs_interval: seconds between two runs of DRS.
    """

    def __init__(
        self, timeline: Timeline, cluster: Cluster, *, vmotion: float = 1.5, drs_interval: float = 5.0
    ) -> None:
        self.store = Store(_stamp)
        self.moves: list[tuple[str, str, str, str]] = []
        """Every vMotion that ended: (VM, from, to, who asked for it), names, oldest first."""
        self._timeline = timeline
        self._cluster = cluster
        self._vmotion = vmotion
        self._drs_interval = drs_interval
        self._in_motion: dict[str, str] = {}
        self._rule_keys = 0
        bare = msgspec.structs.replace(cluster, rules=[], uid=cluster.id)
        self.store.put(ObjectKey("cluster", "", cluster.name), bare)

    # ------------------------------------------------------------------------------------------ what a scenario builds
    def add_host(self, host: Host) -> None:
        """A host joins the cluster."""
        host = msgspec.structs.replace(host, cluster=self._cluster.name, uid=host.uid or host.id)
        self.store.put(ObjectKey("host", "", host.id), host)

    def add_vm(self, vm: Vm) -> None:
        """A VM appears on its host."""
        self.store.put(ObjectKey("vm", "", vm.id), msgspec.structs.replace(vm, uid=vm.uid or vm.id))

    def start(self) -> None:
        """DRS begins its runs."""
        self._timeline.after(self._drs_interval, self._drs_run)

    # ------------------------------------------------------------------------------------------------------- reading
    def hosts(self) -> dict[str, Host]:
        """Hosts by moref."""
        return {key.name: host for key, host in self.store.of_kind("host")}

    def vms(self) -> dict[str, Vm]:
        """VMs by moref."""
        return {key.name: vm for key, vm in self.store.of_kind("vm")}

    def host_of(self, vm: str) -> str:
        """The name of the host a VM (by name) runs on. Raises Gone."""
        return self._host(self._vm(vm).host).name

    # ------------------------------------------------------------------------------------------- what an operator does
    def move_vm(self, vm: str, host: str) -> None:
        """Start a vMotion to an explicit host, by names; it ends after `vmotion` seconds, and no rule is asked.

        Raises Gone (no such VM or host) or Refused (the host cannot take a VM, or the VM is moving already).
        """
        moved, target = self._vm(vm), self._host(host)
        if target.state != "connected":
            raise Refused(f"host {target.name} is not connected or in maintenance mode")
        if moved.id in self._in_motion:
            raise Refused(f"a migration of {moved.name} is already in progress")
        self._move(moved, target, "operator")

    # --------------------------------------------------------------------------------------------------- the DRS writer
    async def rules(self, cluster: str) -> Sequence[DrsRule]:
        """Every rule of the cluster, in the order of their keys. Raises Gone."""
        self._check_cluster(cluster)
        return sorted((rule for _, rule in self._rules()), key=lambda rule: rule.key)

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        """Add a rule. Raises Gone (cluster), Conflict (the name is taken) or Refused (fewer than two known VMs)."""
        self._check_cluster(cluster)
        self._check_members(rule)
        if any(held.name == rule.name for _, held in self._rules()):
            raise Conflict(f"a rule named {rule.name} exists in cluster {cluster}")
        self._rule_keys += 1
        self._put_rule(
            msgspec.structs.replace(rule, key=self._rule_keys, uid=f"{self._cluster.id}-rule-{self._rule_keys}")
        )

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        """Replace the rule with this key in place. Raises Gone (cluster, key), Conflict (name) or Refused (members)."""
        self._check_cluster(cluster)
        held = self._rule_by_key(rule.key)
        self._check_members(rule)
        if any(other.name == rule.name and other.key != rule.key for _, other in self._rules()):
            raise Conflict(f"a rule named {rule.name} exists in cluster {cluster}")
        if held.name != rule.name:
            self.store.drop(self._rule_object_key(held))
        self._put_rule(msgspec.structs.replace(rule, uid=held.uid))

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        """Remove the rule with this key. Raises Gone."""
        self._check_cluster(cluster)
        self.store.drop(self._rule_object_key(self._rule_by_key(rule.key)))

    # ------------------------------------------------------------------------------------------------------------- DRS
    def _drs_run(self) -> None:
        """Mend the violated rules, oldest first, then sleep until the next run."""
        self._timeline.after(self._drs_interval, self._drs_run)
        for rule in sorted((rule for _, rule in self._rules()), key=lambda rule: rule.key):
            if rule.enabled and rule.type == ANTI_AFFINITY:
                self._separate(rule)
            elif rule.enabled and rule.type == AFFINITY:
                self._gather(rule)

    def _separate(self, rule: DrsRule) -> None:
        for first, second in combinations(sorted(rule.vms), 2):
            vms = self.vms()
            if first in vms and second in vms and self._whereabouts(vms[first]) == self._whereabouts(vms[second]):
                # The first stays: moving one is enough. If it has nowhere to go, the other may have.
                for vm in (vms[second], vms[first]):
                    if self._move_without_conflict(vm, self.hosts().values()):
                        break

    def _gather(self, rule: DrsRule) -> None:
        vms = [vm for ref, vm in self.vms().items() if ref in rule.vms]
        places = sorted({self._whereabouts(vm) for vm in vms})
        for vm in vms[1:] if len(places) > 1 else ():
            if self._whereabouts(vm) != self._whereabouts(vms[0]):
                self._move_without_conflict(vm, [self._host(self._whereabouts(vms[0]))])

    def _move_without_conflict(self, vm: Vm, targets: Any) -> bool:
        """Move to the host with the fewest VMs among those where no rule is broken; False when there is none."""
        load = {ref: 0 for ref in self.hosts()}
        for other in self.vms().values():
            load[self._whereabouts(other)] = load.get(self._whereabouts(other), 0) + 1
        enemies = {self._whereabouts(other) for other in self._kept_apart_from(vm)}
        possible = sorted(
            (load[host.id], host.name, host.id)
            for host in targets
            if host.state == "connected" and host.id not in enemies and host.id != self._whereabouts(vm)
        )
        if not possible or vm.id in self._in_motion:
            return False
        self._move(vm, self._host(possible[0][2]), "DRS")
        return True

    def _kept_apart_from(self, vm: Vm) -> Iterator[Vm]:
        vms = self.vms()
        for _, rule in self._rules():
            if rule.enabled and rule.type == ANTI_AFFINITY and vm.id in rule.vms:
                yield from (vms[ref] for ref in rule.vms if ref != vm.id and ref in vms)

    # ---------------------------------------------------------------------------------------------------------- vMotion
    def _move(self, vm: Vm, target: Host, who: str) -> None:
        if self._whereabouts(vm) == target.id:
            return
        self._in_motion[vm.id] = target.id

        def arrive() -> None:
            del self._in_motion[vm.id]
            here = self.vms().get(vm.id)
            if here is not None:
                self.moves.append((vm.name, self._host(here.host).name, target.name, who))
                self.store.put(ObjectKey("vm", "", vm.id), msgspec.structs.replace(here, host=target.id))

        self._timeline.after(self._vmotion, arrive)

    def _whereabouts(self, vm: Vm) -> str:
        """The host a VM is on or on its way to."""
        return self._in_motion.get(vm.id, vm.host)

    # ----------------------------------------------------------------------------------------------------------- lookup
    def _rules(self) -> list[tuple[ObjectKey, DrsRule]]:
        return list(self.store.of_kind("drs-rule"))

    def _rule_by_key(self, key: int) -> DrsRule:
        for _, rule in self._rules():
            if rule.key == key:
                return rule
        raise Gone(f"no rule with key {key} in cluster {self._cluster.name}")

    def _rule_object_key(self, rule: DrsRule) -> ObjectKey:
        return ObjectKey("drs-rule", "", f"{self._cluster.name}:{rule.name}")

    def _put_rule(self, rule: DrsRule) -> None:
        """Store a rule; if an older enabled one says the opposite of a pair, the server disables it without a word."""
        contradicted = any(
            held.enabled and held.key < rule.key and held.type != rule.type and len(set(held.vms) & set(rule.vms)) > 1
            for _, held in self._rules()
        )
        stored = msgspec.structs.replace(
            rule, cluster=self._cluster.name, vms=sorted(rule.vms), enabled=rule.enabled and not contradicted
        )
        self.store.put(self._rule_object_key(rule), stored)

    def _check_cluster(self, cluster: str) -> None:
        if cluster not in (self._cluster.name, self._cluster.id):
            raise Gone(f"no vSphere cluster {cluster}")

    def _check_members(self, rule: DrsRule) -> None:
        known = self.vms()
        if unknown := sorted(set(rule.vms) - set(known)):
            raise Refused(f"rule {rule.name} names unknown VMs: {', '.join(unknown)}")
        if len(set(rule.vms)) < 2:
            raise Refused(f"rule {rule.name} needs two VMs or more")

    def _vm(self, name: str) -> Vm:
        for ref, vm in self.vms().items():
            if name in (ref, vm.name):
                return vm
        raise Gone(f"no VM {name}")

    def _host(self, name: str) -> Host:
        for ref, host in self.hosts().items():
            if name in (ref, host.name):
                return host
        raise Gone(f"no host {name}")


def _stamp(value: Any, version: int) -> Any:
    """The record with a digest of its content as version, as the live watcher does: vSphere has none of its own."""
    del version
    bare = msgspec.structs.replace(value, resource_version="")
    return msgspec.structs.replace(bare, resource_version=hashlib.sha256(encode(bare)).hexdigest()[:16])
