"""Moves VMs in vCenter; a `VmMover`.

In: references of a VM and a host. Out: a task (`RelocateVM_Task`), and what becomes of it. A VM moves within its
vSphere cluster, and keeps its datastores. What the move is for is the sink's business.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from pyVmomi import vim, vmodl

from underhost.schemas.errors import Refused
from underhost.streams.before_write import before_write
from underhost.streams.ports import LiveVm
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import Session, connect, translated
from underhost.streams.vsphere.kept_session import Connect, KeptSession

T = TypeVar("T")

MIGRATIONS = frozenset({"VirtualMachine.relocate", "VirtualMachine.migrate", "Drm.ExecuteVMotionLRO"})
"""What vCenter calls the tasks that take a VM to another host: people's, ours and DRS's."""
UNDER_WAY = (vim.TaskInfo.State.queued, vim.TaskInfo.State.running)


class VSphereVmMover:
    """Moves VMs of one vCenter. Logs in at the first call and again when the session was lost.

    All methods raise InputError as well when the password file is gone.
    """

    def __init__(self, settings: VSphereSettings, *, connect: Connect = connect) -> None:
        self._session = KeptSession(settings, connect)

    async def live_vm(self, vm: str) -> LiveVm:
        """See `VmMover.live_vm`."""
        return await self._asked(lambda session: _live(session, _vm(session, vm)))

    async def relocate(self, vm: str, host: str) -> str:
        """See `VmMover.relocate`."""

        def start(session: Session) -> str:
            target = vim.HostSystem(host, session.content.rootFolder._stub)
            machine = _vm(session, vm)
            here = _read(session, machine, "runtime.host")["runtime.host"]
            if target.parent != here.parent:
                raise Refused(f"host {target.name} is in another cluster than VM {machine.name}")
            spec = vim.vm.RelocateSpec(host=target)
            before_write()  # after a login and what was read
            return str(machine.RelocateVM_Task(spec, vim.VirtualMachine.MovePriority.defaultPriority)._GetMoId())

        return await self._asked(start)

    async def is_done(self, task: str) -> bool:
        """See `VmMover.is_done`."""

        def look(session: Session) -> bool:
            info = vim.Task(task, session.content.rootFolder._stub).info
            if info.state == vim.TaskInfo.State.error and info.error is not None:
                raise Refused(str(translated(session.address, info.error)))  # it has ended: waiting would not help
            return info.state not in UNDER_WAY

        return await self._asked(look)

    async def close(self) -> None:
        """Log out."""
        await self._session.close()

    async def _asked(self, ask: Callable[[Session], T]) -> T:
        async def use(session: Session) -> T:
            return await session.call(ask, session)

        return await self._session.use(use)


def _vm(session: Session, ref: str) -> Any:
    return vim.VirtualMachine(ref, session.content.rootFolder._stub)


def _live(session: Session, vm: Any) -> LiveVm:
    """Blocks."""
    # The task first: one that ends in between has the VM where it takes it.
    task = ""
    for each in vm.recentTask:
        with suppress(vmodl.fault.ManagedObjectNotFound):  # vCenter forgets a task some minutes after its end
            info = each.info
            if info.state in UNDER_WAY and info.descriptionId in MIGRATIONS:
                task = str(each._GetMoId())
    read = _read(session, vm, "name", "runtime.host", "runtime.powerState")
    host = read["runtime.host"]._GetMoId() if "runtime.host" in read else ""
    return LiveVm(read["name"], host, read["runtime.powerState"] == vim.VirtualMachine.PowerState.poweredOn, task)


def _read(session: Session, one: Any, *paths: str) -> dict[str, Any]:
    """Narrow properties of one object, all of one moment. Blocks."""
    collect = vmodl.query.PropertyCollector
    spec = collect.FilterSpec(
        objectSet=[collect.ObjectSpec(obj=one)], propSet=[collect.PropertySpec(type=type(one), pathSet=list(paths))]
    )
    found = session.content.propertyCollector.RetrievePropertiesEx([spec], collect.RetrieveOptions())
    return {each.name: each.val for each in found.objects[0].propSet}
