"""The DRS rules that keep a quorum: no host may hold more of its members than may be lost.

In: quorums, and the vSphere clusters with their VMs. Out: anti-affinity rules, in few groups: with `spare` groups of
VMs, each of which must be apart, a host holds `spare` of them at most, and VMs of different groups may share one. Where
the hosts of a cluster are fewer than a group's VMs there are more groups: as many as fit are kept apart.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from underhost.agents.affinity.quorum import CONTROL_PLANE, ETCD, Quorum
from underhost.agents.drs.names import numbered, rule_name
from underhost.agents.drs.shares import QUORUM_RULE
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import ANTI_AFFINITY, DrsRule

_OF_NODES = {ETCD: "kube-system.etcd", CONTROL_PLANE: "kube-system.control-plane"}


class QuorumVms(NamedTuple):
    """What a vSphere cluster holds of a quorum: the rule's label, and the groups of VMs (references) to keep apart."""

    label: str
    groups: tuple[tuple[str, ...], ...]


def quorum_vms(
    snapshot: Snapshot, usable: Mapping[str, int], quorums: Iterable[Quorum]
) -> Mapping[str, list[QuorumVms]]:
    """By vSphere cluster, the quorums of which one of its hosts could hold too many members; in order.

    `usable`: the usable hosts of each cluster with VMs that are nodes.
    """
    found: defaultdict[str, list[QuorumVms]] = defaultdict(list)
    for quorum in quorums:
        held: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for member in quorum.members:
            joined = snapshot.node_hosts.get(member.node)
            host = snapshot.hosts.get(joined.host) if joined is not None else None
            if joined is not None and host is not None and host.cluster in usable:
                held[host.cluster][joined.vm] += 1
        for cluster, vms in sorted(held.items()):
            if 1 <= quorum.spare < vms.total() and len(vms) > 1 and usable[cluster]:
                label = _OF_NODES.get(quorum.id) or f"{quorum.id.namespace}.{quorum.id.name}"
                found[cluster].append(QuorumVms(label + QUORUM_RULE, _groups(quorum.spare, vms, usable[cluster])))
    return found


def _groups(spare: int, vms: Mapping[str, int], usable: int) -> tuple[tuple[str, ...], ...]:
    """`spare` groups, fewer where a VM holds several members, more where the hosts are too few for one of them."""
    number = max(1, spare // max(vms.values()), -(-len(vms) // usable))
    names = sorted(vms)
    return tuple(group for at in range(number) if len(group := tuple(names[at::number])) > 1)


def quorum_rules(site: str, cluster: str, quorums: Iterable[QuorumVms], others: Sequence[DrsRule]) -> list[DrsRule]:
    """The rules of one cluster. What another rule keeps apart needs none, and what one keeps together gets none.

    A label says no kind, so that several quorums may have one: a name that is taken is numbered further.
    """
    taken = {one.name for one in others}
    apart = [set(one.vms) for one in others if one.type == ANTI_AFFINITY]
    together = [set(one.vms) for one in others if one.type != ANTI_AFFINITY]
    found = []
    for label, groups in quorums:
        for at, group in enumerate(groups):
            vms = set(group)
            if not any(vms <= one for one in apart) and not any(len(vms & one) > 1 for one in together):
                number = at + 1
                while (name := rule_name(site, numbered(label, number))) in taken:
                    number += 1
                taken.add(name)
                found.append(DrsRule(name=name, type=ANTI_AFFINITY, vms=list(group), cluster=cluster))
    return found
