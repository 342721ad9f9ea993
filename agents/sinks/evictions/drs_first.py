"""DRS first: nothing is evicted while DRS is about to move VMs for rules of ours.

In: pictures with the rules that are there, and the rules that are needed. Out: until when evictions wait. A VM that DRS
moves may take away the place that an eviction counts on, so that the next pod fits nowhere; or the move ends what the
eviction is for. DRS that does not move (it is manual, or has no host that would do) is not waited for for ever.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

from underhost.agents.drs.names import owns
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import ANTI_AFFINITY, VM_RULES, DrsRule

PATIENCE = 600.0
"""Seconds that DRS is waited for: it looks every five minutes, and its first run may have come too early."""


class DrsFirst:
    """Of one site. `needed` gives the rules that it needs."""

    def __init__(self, site: str, needed: Callable[[Snapshot], list[DrsRule]]) -> None:
        self._site, self._needed = site, needed
        self._since: float | None = None

    def until(self, snapshot: Snapshot, now: float) -> float:
        """When evictions may go on, monotonic seconds: `now` where nothing is left for DRS. Raises BadObjectError."""
        if not self._is_left(snapshot):
            self._since = None
            return now
        if self._since is None:
            self._since = now
        return max(now, self._since + PATIENCE)

    def _is_left(self, snapshot: Snapshot) -> bool:
        """Whether rules are yet to be written, or one that is there is broken."""
        there = [rule for rule in snapshot.rules.values() if owns(self._site, rule.name) and rule.type in VM_RULES]
        needed = {_said(rule) for rule in self._needed(snapshot) if len(set(rule.vms)) > 1}
        return needed != {_said(rule) for rule in there} or any(_is_broken(rule, snapshot) for rule in there)


def _said(rule: DrsRule) -> tuple[str, str, frozenset[str]]:
    return rule.cluster, rule.type, frozenset(rule.vms)


def _is_broken(rule: DrsRule, snapshot: Snapshot) -> bool:
    apart = rule.type == ANTI_AFFINITY
    return any((one == other) is apart for one, other in combinations(_hosts(rule, snapshot), 2))


def _hosts(rule: DrsRule, snapshot: Snapshot) -> Iterator[str]:
    """The hosts of its VMs, as far as they are known."""
    vms = (snapshot.vms.get(ref) for ref in rule.vms)
    return (vm.host for vm in vms if vm is not None and vm.host)
