"""DRS rules between pyVmomi's types and ours."""

from typing import Any

from pyVmomi import vim

from underhost.schemas.vsphere import DrsRule

ANTI_AFFINITY = "anti-affinity"
AFFINITY = "affinity"
OTHER = "other"


def rule_of(cluster: str, info: Any) -> DrsRule:
    """A ClusterRuleInfo of the cluster with this name. An absent `enabled` means disabled, as the server has it."""
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
    """A VM-VM rule as the server takes it: in force, as mandatory as asked, and a person's to see and change."""
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
    # Exact types: a subclass that a later API adds has members that we would lose.
    if type(info) is vim.cluster.AntiAffinityRuleSpec:
        return ANTI_AFFINITY
    if type(info) is vim.cluster.AffinityRuleSpec:
        return AFFINITY
    return OTHER
