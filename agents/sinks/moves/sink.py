"""Moving a VM: what a command says, and carrying it out (sink).

In: `move` commands of the decider (`decider.py`). Out: outcomes, each once the vMotion has ended. Only VMs that nodes
of the site run on are moved, from the host that the command says to the host that it says. A VM that is there already
is left alone; one whose migration is under way is waited for: so a command that comes once more moves nothing twice,
and one that only follows a move begins none.
"""

import msgspec

from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, answer, desired_of, named
from underhost.agents.sinks.own_vms import VmsAsked, require_own
from underhost.agents.sinks.ports import Sink, VmMover
from underhost.agents.sinks.tasks import LOOK, until_done
from underhost.schemas.commands import MOVE
from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.records import Action, Outcome
from underhost.streams.ports import LiveVm

VAIN = "the vMotion failed"
"""How the reason of a move begins that vCenter has refused, or that has failed there: what is counted as in vain."""
LEFT = "is left to a person"
"""What is said of a VM that is not moved any more."""


class DesiredMove(msgspec.Struct, omit_defaults=True, rename={"from_": "from"}):
    """`Action.desired` of a vMotion: the VM, the hosts, and what the decider has to remember when it begins anew.

    Attributes:
        name, from_name, to_name: for people; `from_` and `to` are references.
        because: ids of the findings that it is for. namespaces: whose share of vMotions it is of.
        at: when it was decided, RFC 3339.
        vain: moves of this VM that have failed or were undone so far. why: what became of the last of them.
        follow: not "": nothing is begun: whether it is on its way is looked for, and its end is waited for. It is when
            that was asked, RFC 3339: so it is not taken for an earlier command that was answered.
        refuse: not "": nothing is to be done, and this is why; the outcome is to say so.
    """

    name: str = ""
    cluster: str = ""
    from_: str = ""
    to: str = ""
    from_name: str = ""
    to_name: str = ""
    because: list[str] = []
    namespaces: list[str] = []
    at: str = ""
    vain: int = 0
    why: str = ""
    follow: str = ""
    refuse: str = ""


class MoveSink(Sink):
    """Moves VMs. `enabled` false is a dry run; `look`: seconds between two looks at a task."""

    kind = MOVE

    def __init__(self, mover: VmMover, site: str, *, enabled: bool, vms: VmsAsked, look: float = LOOK) -> None:
        self._mover, self._site, self._enabled, self._vms, self._look = mover, site, enabled, vms, look

    async def apply(self, action: Action) -> Outcome:
        """Look where the VM is, move it unless it is there or on its way, and say what happened."""
        return await answer(action, self._apply(action))

    async def _apply(self, action: Action) -> tuple[str, str]:
        """(result, reason)."""
        vm, desired = named(action, "vm"), desired_of(action, DesiredMove, "a move command")
        if desired.refuse:
            return REFUSED, desired.refuse
        require_own(self._vms, [vm], self._site)
        live = await self._mover.live_vm(vm)
        if live.task:
            return await self._arrive(vm, desired, live.task, f"a migration of it was under way ({live.task})")
        if live.host == desired.to:
            return NOOP, f"it is on host {desired.to_name} already"
        if desired.follow:
            return REFUSED, f"it is not on its way to host {desired.to_name}, and is not wanted there any more"
        if why := _unlike(live, desired):
            return REFUSED, why
        if not self._enabled:
            return DRY_RUN, f"would move it from host {desired.from_name} to host {desired.to_name}"
        try:
            task = await self._mover.relocate(vm, desired.to)
        except (Gone, Conflict, Refused) as error:
            return REFUSED, f"{VAIN}: {error}"
        moved = f"moved from host {desired.from_name} to host {desired.to_name}"
        return await self._arrive(vm, desired, task, moved)

    async def _arrive(self, vm: str, desired: DesiredMove, task: str, how: str) -> tuple[str, str]:
        """Follow a task to its end; where the VM is then is what counts."""
        try:
            await until_done(self._mover, task, self._look)
        except Refused as error:
            return FAILED, f"{VAIN}: {error}"
        live = await self._mover.live_vm(vm)
        if live.host == desired.to:
            return APPLIED, how
        return FAILED, f"{how}, but it is not on host {desired.to_name}"


def _unlike(live: LiveVm, desired: DesiredMove) -> str:
    """What of the live VM is not as it was decided from; "" where all is."""
    if live.name != desired.name:
        return f"the VM is another one now ({live.name})"
    if live.host != desired.from_:
        return f"it is not on host {desired.from_name} any more"
    return "" if live.is_on else "it is powered off"
