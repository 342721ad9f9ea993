"""A simulated vCenter: one vSphere cluster of hosts and VMs, vMotion and VM-VM rules; `drs.py` keeps the rules.

In: an operator's moves, the rule edits of the DRS sink, the moves and the maintenance of the mover (this class is a
DrsWriter, a VmMover and a HostMaintainer by structure). Out: changes of hosts, VMs, rules and the cluster in `store`.
As in the real one, a move to an explicit host ignores rules, and of two contradictory rules the newer one is disabled
silently. Mandatory rules refuse nothing here, and there are no VM-Host groups.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.kubernetes import encode
from underhost.schemas.vsphere import CONNECTED, DISCONNECTED, MAINTENANCE, Cluster, DrsRule, Host, Vm
from underhost.streams.ports import LiveHost, LiveVm
from underhost.streams.simulated.store import ObjectKey, Store
from underhost.streams.simulated.timeline import Timeline


class SimulatedVSphere:
    """The vCenter under the simulated cluster.

    Args:
        timeline: when things happen.
        cluster: the vSphere cluster; every host and VM is in it.
        vmotion: seconds that a VM takes to move.
    """

    def __init__(self, timeline: Timeline, cluster: Cluster, *, vmotion: float) -> None:
        self.store = Store(_stamp)
        self.cluster = cluster
        self.moves: list[tuple[str, str, str, str]] = []
        """Every vMotion that ended: (VM, from, to, who asked for it), names, oldest first."""
        self.in_motion: dict[str, str] = {}
        """Targets of the VMs that are moving: host by VM, morefs."""
        self._timeline = timeline
        self._vmotion = vmotion
        self._rule_keys = 0
        bare = msgspec.structs.replace(cluster, rules=[], uid=cluster.id)
        self.store.put(ObjectKey("cluster", "", cluster.name), bare)

    # ------------------------------------------------------------------------------------------ what a scenario builds
    def add_host(self, host: Host) -> None:
        """A host joins the cluster."""
        host = msgspec.structs.replace(host, cluster=self.cluster.name, uid=host.uid or host.id)
        self.store.put(ObjectKey("host", "", host.id), host)

    def add_vm(self, vm: Vm) -> None:
        """A VM appears on its host."""
        self.store.put(ObjectKey("vm", "", vm.id), msgspec.structs.replace(vm, uid=vm.uid or vm.id))

    # ------------------------------------------------------------------------------------------------------- reading
    def hosts(self) -> dict[str, Host]:
        """Hosts by moref."""
        return {key.name: host for key, host in self.store.of_kind("host")}

    def vms(self) -> dict[str, Vm]:
        """VMs by moref."""
        return {key.name: vm for key, vm in self.store.of_kind("vm")}

    def host_of(self, vm: str) -> str:
        """The name of the host a VM (by name) runs on. Raises Gone."""
        return self.host(self.vm(vm).host).name

    def all_rules(self) -> list[DrsRule]:
        """Every rule, oldest first."""
        return sorted((rule for _, rule in self.store.of_kind("drs-rule")), key=lambda rule: rule.key)

    def load(self) -> dict[str, int]:
        """Number of VMs by host; moving ones count on their target."""
        load = dict.fromkeys(self.hosts(), 0)
        for vm in self.vms().values():
            load[self.whereabouts(vm)] = load.get(self.whereabouts(vm), 0) + 1
        return load

    def usable(self) -> dict[str, Host]:
        """Hosts that can take a VM, by moref."""
        return {ref: host for ref, host in self.hosts().items() if host.state == CONNECTED}

    # ------------------------------------------------------------------------------------------- what an operator does
    def move_vm(self, vm: str, host: str) -> None:
        """Start a vMotion to an explicit host, by names; it ends after `vmotion` seconds, and no rule is asked.

        Raises Gone (no such VM or host) or Refused (the host cannot take a VM, or the VM is moving already).
        """
        moved, target = self.vm(vm), self.host(host)
        self._require_movable(moved, target)
        self.move(moved, target, "operator")

    def set_host_state(self, host: str, state: str) -> None:
        """Connected, maintenance or disconnected, whatever runs on it. Raises Gone."""
        target = self.host(host)
        self.store.put(ObjectKey("host", "", target.id), msgspec.structs.replace(target, state=state))

    # --------------------------------------------------------------------------------------------------- the DRS writer
    async def rules(self, cluster: str) -> Sequence[DrsRule]:
        """Every rule of the cluster, in the order of their keys. Raises Refused: no such cluster."""
        self._check_cluster(cluster)
        return self.all_rules()

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        """Add a rule. Raises Conflict (the name is taken) or Refused (no such cluster, fewer than two known VMs)."""
        self._check_cluster(cluster)
        self._check_members(rule)
        if any(held.name == rule.name for held in self.all_rules()):
            raise Conflict(f"a rule named {rule.name} exists in cluster {cluster}")
        self._rule_keys += 1
        self._put_rule(
            msgspec.structs.replace(rule, key=self._rule_keys, uid=f"{self.cluster.id}-rule-{self._rule_keys}")
        )

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        """Replace the rule with this key in place. Raises Gone (key), Conflict (name) or Refused (cluster, members)."""
        self._check_cluster(cluster)
        held = self._rule_by_key(rule.key)
        self._check_members(rule)
        if any(other.name == rule.name and other.key != rule.key for other in self.all_rules()):
            raise Conflict(f"a rule named {rule.name} exists in cluster {cluster}")
        if held.name != rule.name:
            self.store.drop(self._rule_object_key(held))
        self._put_rule(msgspec.structs.replace(rule, uid=held.uid))

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        """Remove the rule with this key. Raises Gone (key) or Refused (cluster)."""
        self._check_cluster(cluster)
        self.store.drop(self._rule_object_key(self._rule_by_key(rule.key)))

    # ---------------------------------------------------------------------------------------------------- the VM mover
    async def live_vm(self, vm: str) -> LiveVm:
        """Where a VM is. Raises Gone."""
        found = self.vm(vm)
        return LiveVm(found.name, found.host, found.power == "on", found.id if found.id in self.in_motion else "")

    async def relocate(self, vm: str, host: str) -> str:
        """Start a vMotion; its task is called as the VM. Raises Gone, or Refused as `move_vm` and without room."""
        moved, target = self.vm(vm), self.host(host)
        there = [one for one in self.vms().values() if target.id in (one.host, self.whereabouts(one))]
        if target.memory_mib and sum(one.memory_mib for one in (*there, moved)) > target.memory_mib:
            raise Refused(f"host {target.name} has no room for {moved.name}")
        self._require_movable(moved, target)
        self.move(moved, target, "mover")
        return moved.id

    async def is_done(self, task: str) -> bool:
        """Whether the vMotion has ended; a change of a host's mode has at once."""
        return task not in self.in_motion

    # ------------------------------------------------------------------------------------------------- maintenance mode
    async def live_host(self, host: str) -> LiveHost:
        """A host and what is powered on there. Raises Gone."""
        found = self.host(host)
        there = {vm.id: vm.name for vm in self.vms().values() if vm.host == found.id and vm.power == "on"}
        return LiveHost(found.name, found.state != DISCONNECTED, found.state == MAINTENANCE, there)

    async def enter_maintenance(self, host: str, within: int) -> str:
        """Put an empty host into maintenance mode. Raises Gone, or Refused where a VM is on it: DRS empties none."""
        live = await self.live_host(host)
        if live.vms:
            raise Refused(f"host {live.name}: {', '.join(sorted(live.vms.values()))} did not leave within {within} s")
        self.set_host_state(host, MAINTENANCE)
        return f"enter-{host}"

    async def exit_maintenance(self, host: str, within: int) -> str:
        """Take a host out of it. Raises Gone."""
        del within
        self.set_host_state(host, CONNECTED)
        return f"exit-{host}"

    # ---------------------------------------------------------------------------------------------------------- vMotion
    def move(self, vm: Vm, target: Host, who: str) -> None:
        """Start a vMotion in somebody's name, unless the VM is on the target already."""
        if self.whereabouts(vm) == target.id:
            return
        self.in_motion[vm.id] = target.id

        def arrive() -> None:
            del self.in_motion[vm.id]
            here = self.vms().get(vm.id)
            if here is not None:
                self.moves.append((vm.name, self.host(here.host).name, target.name, who))
                self.store.put(ObjectKey("vm", "", vm.id), msgspec.structs.replace(here, host=target.id))

        self._timeline.after(self._vmotion, arrive)

    def whereabouts(self, vm: Vm) -> str:
        """The host of a VM, or its target while it is moving."""
        return self.in_motion.get(vm.id, vm.host)

    def _require_movable(self, vm: Vm, target: Host) -> None:
        if target.state != CONNECTED:
            raise Refused(f"host {target.name} is not connected or in maintenance mode")
        if vm.id in self.in_motion:
            raise Refused(f"a migration of {vm.name} is already in progress")

    # ----------------------------------------------------------------------------------------------------------- lookup
    def _rule_by_key(self, key: int) -> DrsRule:
        for rule in self.all_rules():
            if rule.key == key:
                return rule
        raise Gone(f"no rule with key {key} in cluster {self.cluster.name}")

    def _rule_object_key(self, rule: DrsRule) -> ObjectKey:
        return ObjectKey("drs-rule", "", f"{self.cluster.name}:{rule.name}")

    def _put_rule(self, rule: DrsRule) -> None:
        """Store a rule; it is disabled if an older enabled rule contradicts it for a pair of VMs, as in vCenter."""
        contradicted = any(
            held.enabled and held.key < rule.key and held.type != rule.type and len(set(held.vms) & set(rule.vms)) > 1
            for held in self.all_rules()
        )
        stored = msgspec.structs.replace(
            rule, cluster=self.cluster.name, vms=sorted(rule.vms), enabled=rule.enabled and not contradicted
        )
        self.store.put(self._rule_object_key(rule), stored)

    def _check_cluster(self, cluster: str) -> None:
        if cluster not in (self.cluster.name, self.cluster.id):
            raise Refused(f"no vSphere cluster {cluster}")

    def _check_members(self, rule: DrsRule) -> None:
        known = self.vms()
        if unknown := sorted(set(rule.vms) - set(known)):
            raise Refused(f"rule {rule.name} names unknown VMs: {', '.join(unknown)}")
        if len(set(rule.vms)) < 2:
            raise Refused(f"rule {rule.name} needs two VMs or more")

    def vm(self, name: str) -> Vm:
        """The VM of this name or moref. Raises Gone."""
        for ref, vm in self.vms().items():
            if name in (ref, vm.name):
                return vm
        raise Gone(f"no VM {name}")

    def host(self, name: str) -> Host:
        """The host of this name or moref. Raises Gone."""
        for ref, host in self.hosts().items():
            if name in (ref, host.name):
                return host
        raise Gone(f"no host {name}")


def _stamp(value: Any, version: int) -> Any:
    """The record with a digest of its content as version, as the live watcher does: vSphere has none of its own."""
    del version
    bare = msgspec.structs.replace(value, resource_version="")
    return msgspec.structs.replace(bare, resource_version=hashlib.sha256(encode(bare)).hexdigest()[:16])
