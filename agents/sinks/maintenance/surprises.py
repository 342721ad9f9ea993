"""What stops a maintenance: what nobody has expected when it began.

In: pictures, and what is wrong in them. Out: why nothing more may be begun; "" where all is as it should be.
"""

from collections.abc import Collection, Iterable, Mapping

from underhost.agents.sinks.maintenance.run import EMPTYING, ENTERING, HAD, IN_MODE, LEAVING
from underhost.agents.sinks.maintenance.sink import is_of_vsphere
from underhost.agents.sinks.maintenance.turns import HostTurn, vms_on
from underhost.agents.sinks.orders import DRY_RUN
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.maintenance import PlannedMaintenance
from underhost.schemas.commands import WRITTEN
from underhost.schemas.records import Finding, Outcome
from underhost.schemas.severities import GRAVE
from underhost.schemas.vsphere import CONNECTED, MAINTENANCE


def in_short(finding: Finding) -> str:
    """A finding in a few words."""
    about = finding.pod or finding.node or finding.object or ""
    return " ".join(filter(None, (finding.severity, finding.rule, about)))


def unfit(plan: PlannedMaintenance) -> str:
    """Why a plan cannot be carried out: a host that cannot be emptied, something that it would break; "" where it
    can."""
    for blocked in plan.document.blocked:
        vms = f" ({', '.join(blocked.vms)})" if blocked.vms else ""
        return f"host {blocked.host} cannot be emptied: {blocked.why}{vms}"
    broken = [one for one in plan.document.new_findings if one.severity in GRAVE]
    return f"it would break something: {in_short(broken[0])}" if broken else ""


def in_vain(what: str, outcome: Outcome) -> str:
    """Why a command has not done what it was ordered for."""
    if outcome.result == DRY_RUN:
        return f"sinks.{WRITTEN[outcome.kind].setting} is off: this was a dry run"
    return f"{what}: {outcome.reason}"


class Surprises:
    """Of one run. `findings` are those that there were as it began."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._known = {one.id for one in findings if one.severity in GRAVE}
        self._hosts: dict[str, tuple[str, str]] = {}

    def watch(self, snapshot: Snapshot, clusters: Collection[str]) -> None:
        """The hosts of these vSphere clusters shall stay as they are."""
        self._hosts = {ref: (host.name, host.state) for ref, host in snapshot.hosts.items() if host.cluster in clusters}

    def of(self, snapshot: Snapshot, findings: Iterable[Finding], turns: Mapping[str, HostTurn]) -> str:
        """What is a surprise in this picture, in one line."""
        new = [one for one in findings if one.severity in GRAVE and one.id not in self._known]
        if new:
            more = f" and {len(new) - 1} more" if len(new) > 1 else ""
            return f"there is a new finding: {in_short(new[0])}{more}"
        for ref, (name, before) in self._hosts.items():
            if why := _changed(snapshot, ref, before, turns.get(ref)):
                return f"host {name} {why}"
        for turn in turns.values():
            if turn.state not in (EMPTYING, ENTERING):
                continue
            there = vms_on(snapshot, turn.ref).items()
            come = sorted(vm.name for ref, vm in there if ref not in turn.vms and not is_of_vsphere(vm.name))
            if come:
                return f"VM {', '.join(come)} came to host {turn.name}, which is being emptied"
        return ""


def _changed(snapshot: Snapshot, ref: str, before: str, turn: HostTurn | None) -> str:
    """What has become of a host for the worse; "" where nothing has."""
    host = snapshot.hosts.get(ref)
    if host is None:
        return "is gone from the inventory"
    if host.state in (before, CONNECTED):
        return ""
    if turn is not None and host.state == MAINTENANCE and turn.state in (ENTERING, IN_MODE, LEAVING, HAD):
        return ""
    if turn is not None and turn.state == IN_MODE:
        return ""  # it is worked on: it may be started anew
    return f"is {'in maintenance mode' if host.state == MAINTENANCE else host.state}, and was not"
