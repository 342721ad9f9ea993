"""Whose turn it is: a VM that DRS is about to move because of a rule of ours is left to DRS.

In: pictures, and the rules that are needed. Out: until when a VM is left alone. DRS moves by itself where its cluster
is fully automated and the VM is no exception. DRS that does not move a VM is not waited for for ever.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from underhost.agents.sinks.evictions.drs_first import PATIENCE
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import ANTI_AFFINITY, FULLY_AUTOMATED, Cluster, DrsRule


class DrsTurn:
    """Of one site. `needed` gives the rules that it needs."""

    def __init__(self, needed: Callable[[Snapshot], list[DrsRule]]) -> None:
        self._needed = needed
        self._since: dict[str, float] = {}

    def until(self, snapshot: Snapshot, vms: Collection[str], now: float) -> dict[str, float]:
        """Of these VMs those that are left alone, and until when, monotonic seconds. Raises BadObjectError."""
        theirs = {vm for rule in self._needed(snapshot) for vm in _moved_by(rule, snapshot)}
        self._since = {vm: self._since.get(vm, now) for vm in vms if vm in theirs}
        return {vm: since + PATIENCE for vm, since in self._since.items() if since + PATIENCE > now}


def _moved_by(rule: DrsRule, snapshot: Snapshot) -> Iterable[str]:
    """The VMs that DRS moves for a rule: those that share a host though they must be apart."""
    cluster = snapshot.clusters.get(rule.cluster, Cluster(rule.cluster))
    if rule.type != ANTI_AFFINITY or not cluster.drs or cluster.automation != FULLY_AUTOMATED:
        return ()
    at = {ref: snapshot.vms[ref].host for ref in rule.vms if ref in snapshot.vms}
    crowded = {host for host, count in Counter(at.values()).items() if count > 1}
    return [
        ref
        for ref, host in at.items()
        if host in crowded and cluster.overrides.get(ref, FULLY_AUTOMATED) == FULLY_AUTOMATED
    ]
