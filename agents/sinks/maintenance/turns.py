"""A host that has its turn, and the VMs on it.

In: snapshots; the commands of earlier runs. Out: what runs on a host and whose it is; what a run that has ended in the
middle has left.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from underhost.agents.sinks.maintenance.run import EMPTYING, HAD, IN_MODE
from underhost.agents.sinks.maintenance.sink import (
    ENTER,
    KEPT,
    DesiredMaintenance,
    desired_maintenance,
    is_of_vsphere,
)
from underhost.agents.sinks.orders import DONE, seconds_of
from underhost.agents.sinks.own_vms import own_vms
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import FULLY_AUTOMATED, MAINTENANCE, PARTIALLY_AUTOMATED, Cluster, Vm


@dataclass
class HostTurn:
    """A host that has its turn.

    Attributes:
        vms: those on it as its turn began; who comes later is a surprise.
        state: see `run.py`. at: when its command was ordered, or its turn began, monotonic seconds.
        id: of its command, "" while none is under way.
        shown: since when a picture is waited for that shows its mode; None where none is.
    """

    ref: str
    name: str
    cluster: str
    vms: frozenset[str]
    state: str
    at: float
    id: str = ""
    shown: float | None = None


def vms_on(snapshot: Snapshot, ref: str) -> dict[str, Vm]:
    """The VMs that are powered on, on this host, by reference. VMs may name their host by id or by name."""
    names = {ref, snapshot.hosts[ref].name} if ref in snapshot.hosts else {ref}
    return {vm.ref: vm for vm in snapshot.vms.values() if vm.host in names and vm.power != "off"}


def others_on(snapshot: Snapshot, ref: str) -> list[str]:
    """The VMs on the host that run no node of the site."""
    return sorted(vms_on(snapshot, ref).keys() - own_vms(snapshot))


def not_moved_by_drs(snapshot: Snapshot, host: str, cluster: str, here: Mapping[str, Vm]) -> str:
    """Why a VM of no node stays on the host until a person moves it; "" where DRS moves all of them by itself."""
    known = snapshot.clusters.get(cluster, Cluster(cluster))
    moves = known.drs and known.automation == FULLY_AUTOMATED
    for ref in sorted(here.keys() - own_vms(snapshot)):
        if is_of_vsphere(here[ref].name):
            continue
        if not moves or known.overrides.get(ref, FULLY_AUTOMATED) not in (FULLY_AUTOMATED, PARTIALLY_AUTOMATED):
            return f"VM {here[ref].name} on host {host} runs no node, and DRS does not move it by itself"
    return ""


def standing(turns: Iterable[HostTurn]) -> list[str]:
    """How things stand with hosts whose turn has not ended."""
    words = {EMPTYING: "was to be emptied", IN_MODE: "is in maintenance mode"}
    return [
        f"host {turn.name} {words.get(turn.state, 'may be in maintenance mode')}" for turn in turns if turn.state != HAD
    ]


Said = Callable[[Snapshot], DesiredMaintenance]


def unfinished(earlier: Iterable[Action], outcomes: Sequence[Outcome], clock: float) -> list[tuple[str, Said]]:
    """What is to be said of a run that has ended in the middle, by host: of commands without an outcome, and of the
    last command of all, where the run had more to do."""
    results = {outcome.id: outcome.result for outcome in outcomes}
    known = [(desired, action) for action in earlier if (desired := desired_maintenance(action)) is not None]
    known = [(desired, action) for desired, action in known if clock - seconds_of(desired.at) <= KEPT]
    known.sort(key=lambda one: seconds_of(one[0].at))
    found = []
    for at, (desired, action) in enumerate(known):
        result = results.get(action.id)
        had_more = bool(desired.then) or (desired.mode == ENTER and desired.out)
        if not desired.refuse and (result is None or (at == len(known) - 1 and result in DONE and had_more)):
            ref = action.target.partition("/")[2]
            found.append((ref, _said_of(ref, desired)))
    return found


def _said_of(ref: str, desired: DesiredMaintenance) -> Said:
    def said(snapshot: Snapshot) -> DesiredMaintenance:
        host = snapshot.hosts.get(ref)
        state = "gone" if host is None else "in maintenance mode" if host.state == MAINTENANCE else host.state
        left = f"; {were_not_begun(desired.then)}" if desired.then else ""
        why = f"the worker that carried the maintenance out has ended; host {desired.name} is {state}{left}"
        return DesiredMaintenance(name=desired.name, cluster=desired.cluster, refuse=why)

    return said


def were_not_begun(names: Collection[str]) -> str:
    """Of hosts whose turn has not come."""
    return f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} not begun"
