"""A host's maintenance mode: what a command says, and carrying it out (sink).

In: `maintenance` commands of the decider (`decider.py`). Out: outcomes, each once the host is in the mode that was
asked for. A host is put into maintenance mode only once none of the site's VMs runs on it, and nobody whom the decider
did not know. One that is in that mode already is left alone; a change that is under way is waited for: so a command
that comes once more does nothing twice.
"""

from collections.abc import Callable

import msgspec

from underhost.agents.sinks.orders import (
    APPLIED,
    DRY_RUN,
    FAILED,
    NOOP,
    REFUSED,
    answer,
    desired_of,
    named,
    read_back,
    seconds_of,
)
from underhost.agents.sinks.own_vms import VmsAsked, known
from underhost.agents.sinks.ports import HostMaintainer, Sink
from underhost.agents.sinks.tasks import LOOK, until_done
from underhost.schemas.commands import MAINTENANCE
from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.records import Action, Outcome
from underhost.streams.ports import LiveHost

ENTER, EXIT = "enter", "exit"
COULD_NOT = "it could not be"
"""How the reason of a change begins that vCenter has refused, or that has failed there: the host is as it was."""
KEPT = 86_400.0
"""Seconds after which nobody needs to know any more what a run had begun."""


def is_of_vsphere(name: str) -> bool:
    """Whether a VM is one of vSphere's own cluster services, which it moves or ends by itself, whatever DRS does."""
    return name.startswith("vCLS")


class DesiredMaintenance(msgspec.Struct, omit_defaults=True):
    """`Action.desired` of a host's mode, and what the decider of a later run has to know of it.

    Attributes:
        name, cluster: of the host, for people. mode: ENTER or EXIT.
        others: VMs of no node of the site, by reference, which vSphere itself moves away.
        out: the run that has ordered it takes the host out again. then: hosts whose turn was to come, by name.
        at: when it was decided, RFC 3339.
        refuse: not "": nothing is to be done, and this is why; the outcome is to say so.
    """

    name: str = ""
    cluster: str = ""
    mode: str = ENTER
    others: list[str] = []
    out: bool = False
    then: list[str] = []
    at: str = ""
    refuse: str = ""


class MaintenanceSink(Sink):
    """Changes the mode of hosts. `enabled` false is a dry run.

    `within`: seconds after which vSphere gives a change up. `refresh`: makes the watcher look, as vCenter does not
    announce a mode. `look`: seconds between two looks at a task.
    """

    kind = MAINTENANCE

    def __init__(
        self,
        hosts: HostMaintainer,
        *,
        enabled: bool,
        within: int,
        vms: VmsAsked,
        refresh: Callable[[], None] = lambda: None,
        look: float = LOOK,
    ) -> None:
        self._hosts, self._enabled, self._within = hosts, enabled, within
        self._vms, self._refresh, self._look = vms, refresh, look

    async def apply(self, action: Action) -> Outcome:
        """Look in which mode the host is, change it unless that is done already or under way, and say what happened."""
        return await answer(action, self._apply(action))

    async def _apply(self, action: Action) -> tuple[str, str]:
        """(result, reason)."""
        host, desired = named(action, "host"), desired_of(action, DesiredMaintenance, "a maintenance command")
        if desired.refuse:
            return REFUSED, desired.refuse
        if desired.mode not in (ENTER, EXIT):
            raise Refused(f"not a maintenance command: mode {desired.mode!r}")
        live = await self._hosts.live_host(host)
        if live.name != desired.name:
            return REFUSED, f"the host is another one now ({live.name})"
        if live.task:
            return await self._follow(host, desired, live.task, f"a change of its mode was under way ({live.task})")
        if live.in_maintenance == (desired.mode == ENTER):
            self._refresh()
            return NOOP, f"it is {_state(desired)} already"
        if not self._enabled:
            return DRY_RUN, f"would be {_change(desired)}"
        if why := self._why_not(live, desired):
            return REFUSED, why
        change = self._hosts.enter_maintenance if desired.mode == ENTER else self._hosts.exit_maintenance
        try:
            task = await change(host, self._within)
        except (Gone, Conflict, Refused) as error:
            return REFUSED, f"{COULD_NOT} {_change(desired)}: {error}"
        return await self._follow(host, desired, task, _change(desired))

    def _why_not(self, live: LiveHost, desired: DesiredMaintenance) -> str:
        """Why its mode is not changed now; "" where it is. Raises Unreachable while nobody knows the nodes' VMs."""
        if not live.is_connected:
            return "it is not connected"
        if desired.mode == EXIT:
            return ""
        expected = set(desired.others) - set(known(self._vms))
        unplaced = sorted(name for ref, name in live.vms.items() if ref not in expected and not is_of_vsphere(name))
        return f"VM {', '.join(unplaced)} runs on it" if unplaced else ""

    async def _follow(self, host: str, desired: DesiredMaintenance, task: str, how: str) -> tuple[str, str]:
        """Follow a task to its end; the mode of the host is what counts."""
        try:
            await until_done(self._hosts, task, self._look)
        except Refused as error:
            return FAILED, f"{COULD_NOT} {_change(desired)}: {error}"
        live = await self._hosts.live_host(host)
        self._refresh()
        if live.in_maintenance == (desired.mode == ENTER):
            return APPLIED, how
        return FAILED, f"{how}, but it is not {_state(desired)}"


def _state(desired: DesiredMaintenance) -> str:
    return "in maintenance mode" if desired.mode == ENTER else "out of maintenance mode"


def _change(desired: DesiredMaintenance) -> str:
    return "put into maintenance mode" if desired.mode == ENTER else "taken out of maintenance mode"


def desired_maintenance(action: Action) -> DesiredMaintenance | None:
    """What a command to change a host's mode desires; None for another one."""
    return read_back(action, MAINTENANCE, DesiredMaintenance)


def outdated(action: Action, clock: float) -> bool:
    """Whether nobody needs to remember the command any more; `clock` is in seconds since 1970."""
    desired = desired_maintenance(action)
    return desired is None or clock - seconds_of(desired.at) > KEPT
