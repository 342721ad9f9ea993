"""DRS rules between pyVmomi's types and ours."""

from collections.abc import Iterable, Sequence
from typing import Any

from pyVmomi import vim

from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY, OTHER, VM_HOST, VM_RULES, DrsRule


def rule_of(cluster: str, info: Any, groups: Iterable[Any] = (), hosts: Iterable[str] = ()) -> DrsRule:
    """Our rule of a ClusterRuleInfo in the cluster of this name. An absent `enabled` means disabled, as in vCenter.

    `groups` are the cluster's groups of VMs and hosts, `hosts` the morefs of all its hosts: a rule that keeps VMs away
    from hosts lets them run on the others.
    """
    kind = _kind(info)
    vms: Sequence[Any] = info.vm if kind in VM_RULES else ()
    allowed: set[str] = set()
    if kind == VM_HOST:
        members = {group.name: group for group in groups}
        vms = getattr(members.get(info.vmGroupName), "vm", None) or ()
        on, off = (
            {host._GetMoId() for host in getattr(members.get(name), "host", None) or ()}
            for name in (info.affineHostGroupName, info.antiAffineHostGroupName)
        )
        allowed = (on if info.affineHostGroupName else set(hosts)) - off
    return DrsRule(
        name=info.name or "",
        type=kind,
        vms=sorted(vm._GetMoId() for vm in vms),
        hosts=sorted(allowed),
        enabled=bool(info.enabled),
        mandatory=bool(info.mandatory),
        cluster=cluster,
        key=info.key or 0,
    )


def info_of(rule: DrsRule) -> Any:
    """A VM-VM rule as vCenter takes it: enabled, mandatory as asked, visible and editable for people."""
    if rule.type == ANTI_AFFINITY:
        info = vim.cluster.AntiAffinityRuleSpec()
    elif rule.type == AFFINITY:
        info = vim.cluster.AffinityRuleSpec()
    else:
        raise ValueError(f"a rule of type {rule.type} is not ours to write")
    info.name = rule.name
    info.enabled = True
    info.mandatory = rule.mandatory
    info.userCreated = True
    info.vm = [vim.VirtualMachine(moref) for moref in rule.vms]
    if rule.key:
        info.key = rule.key
    return info


def _kind(info: Any) -> str:
    # Exact types: we would lose the members of a subclass that a later API adds.
    if type(info) is vim.cluster.AntiAffinityRuleSpec:
        return ANTI_AFFINITY
    if type(info) is vim.cluster.AffinityRuleSpec:
        return AFFINITY
    if type(info) is vim.cluster.VmHostRuleInfo:
        return VM_HOST
    return OTHER
