"""The simulated DRS: each run corrects broken VM-VM rules, or else balances.

In: the simulated vCenter's hosts, VMs and enabled rules. Out: vMotions. A broken rule is corrected only at the next
run, and a VM that is moving is left alone. DRS balances by the number of VMs, one move a run, as tolerant as the real
one by default. The seed chooses the VM, because DRS does not know what runs in it.
"""

import random
from collections.abc import Iterable, Iterator, Set
from itertools import combinations

from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY, DrsRule, Host, Vm
from underhost.streams.simulated.timeline import Timeline
from underhost.streams.simulated.vsphere import SimulatedVSphere

TOLERATED = 2
"""VMs by which the fullest host may exceed the emptiest: the real DRS does not move for a small gain, either."""


class Drs:
    """DRS of the one cluster.

    Args:
        source: decides which VM is moved for balance.
        interval: seconds between two runs.

    Attributes:
        held: somebody has set DRS to manual: it does nothing.
    """

    def __init__(
        self, timeline: Timeline, vsphere: SimulatedVSphere, source: random.Random, *, interval: float
    ) -> None:
        self._timeline, self._vsphere, self._interval = timeline, vsphere, interval
        self._random = random.Random(source.getrandbits(32))
        self.held = False

    def start(self) -> None:
        """Begin the runs."""
        self._timeline.after(self._interval, self._run)

    def _usable(self) -> Set[str]:
        """The hosts to which a VM may be moved."""
        return self._vsphere.usable().keys()

    def _run(self) -> None:
        """Correct broken rules, oldest first; then balance, if nothing moves."""
        self._timeline.after(self._interval, self._run)
        if self.held:
            return
        for rule in self._vsphere.all_rules():
            if rule.enabled and rule.type == ANTI_AFFINITY:
                self._separate(rule)
            elif rule.enabled and rule.type == AFFINITY:
                self._gather(rule)
        if not self._vsphere.in_motion:
            self._balance()

    def _separate(self, rule: DrsRule) -> None:
        for first, second in combinations(sorted(rule.vms), 2):
            vms = self._vsphere.vms()
            if {first, second} & self._vsphere.in_motion.keys() or not {first, second} <= vms.keys():
                continue  # DRS waits for the end of a migration that is under way
            if vms[first].host == vms[second].host:
                # Moving one is enough. Where the second has nowhere to go, the first may have.
                for vm in (vms[second], vms[first]):
                    if self._move_without_conflict(vm, self._vsphere.hosts().values()):
                        break

    def _balance(self) -> None:
        """Move one VM from the fullest host to the emptiest if they differ by more than `TOLERATED`."""
        load = {host: count for host, count in self._vsphere.load().items() if host in self._usable()}
        if not load or max(load.values()) - min(load.values()) <= TOLERATED:
            return
        fullest, emptiest = (pick(sorted(load), key=load.__getitem__) for pick in (max, min))
        here = [vm for vm in self._vsphere.vms().values() if self._vsphere.whereabouts(vm) == fullest]
        for vm in self._random.sample(here, len(here)):
            if not self._is_gathered(vm) and self._move_without_conflict(vm, [self._vsphere.host(emptiest)]):
                break

    def _is_gathered(self, vm: Vm) -> bool:
        """Whether a rule keeps the VM with others."""
        return any(rule.enabled and rule.type == AFFINITY and vm.id in rule.vms for rule in self._vsphere.all_rules())

    def _gather(self, rule: DrsRule) -> None:
        vms = [vm for ref, vm in self._vsphere.vms().items() if ref in rule.vms]
        places = sorted({self._vsphere.whereabouts(vm) for vm in vms})
        for vm in vms[1:] if len(places) > 1 else ():
            if self._vsphere.whereabouts(vm) != self._vsphere.whereabouts(vms[0]):
                self._move_without_conflict(vm, [self._vsphere.host(self._vsphere.whereabouts(vms[0]))])

    def _move_without_conflict(self, vm: Vm, targets: Iterable[Host]) -> bool:
        """Move to the host with the fewest VMs among those where no rule is broken; False when there is none."""
        load = self._vsphere.load()
        usable = self._usable()
        enemies = {self._vsphere.whereabouts(other) for other in self._kept_apart_from(vm)}
        possible = sorted(
            (load[host.id], host.name, host.id)
            for host in targets
            if host.id in usable and host.id not in enemies and host.id != self._vsphere.whereabouts(vm)
        )
        if not possible or vm.id in self._vsphere.in_motion:
            return False
        self._vsphere.move(vm, self._vsphere.host(possible[0][2]), "DRS")
        return True

    def _kept_apart_from(self, vm: Vm) -> Iterator[Vm]:
        vms = self._vsphere.vms()
        for rule in self._vsphere.all_rules():
            if rule.enabled and rule.type == ANTI_AFFINITY and vm.id in rule.vms:
                yield from (vms[ref] for ref in rule.vms if ref != vm.id and ref in vms)
