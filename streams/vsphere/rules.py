"""DRS rules between pyVmomi's types and ours."""

from typing import Any

from pyVmomi import vim

from underhost.schemas.vsphere import DrsRule

ANTI_AFFINITY = "anti-affinity"
AFFINITY = "affinity"
OTHER = "other"


def rule_of(cluster: str, info: Any) -> DrsRule:
    """Our rule of a ClusterRuleInfo in the cluster of this name. An absent `enabled` means disabled, as in vCenter."""
    kind = _kind(info)
    return DrsRule(
        name=info.name or "",
        type=kind,
        vms=sorted(vm._GetMoId() for vm in info.vm) if kind != OTHER else [],
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
    return OTHER
