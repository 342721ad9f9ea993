"""Moves VMs in vCenter; a `VmMover`.

In: references of a VM and a host. Out: a task (`RelocateVM_Task`), and what becomes of it. A VM moves within its
vSphere cluster, and keeps its datastores. What the move is for is the sink's business.
"""

from typing import Any

from pyVmomi import vim

from underhost.schemas.errors import Refused
from underhost.streams.ports import LiveVm
from underhost.streams.vsphere.client import Session
from underhost.streams.vsphere.tasks import VSphereTasks, read, running

MIGRATIONS = frozenset({"VirtualMachine.relocate", "VirtualMachine.migrate", "Drm.ExecuteVMotionLRO"})
"""What vCenter calls the tasks that take a VM to another host: people's, ours and DRS's."""


class VSphereVmMover(VSphereTasks):
    """Moves VMs of one vCenter."""

    async def live_vm(self, vm: str) -> LiveVm:
        """See `VmMover.live_vm`."""
        return await self.asked(lambda session: _live(session, _vm(session, vm)))

    async def relocate(self, vm: str, host: str) -> str:
        """See `VmMover.relocate`."""

        def start(session: Session) -> str:
            target = vim.HostSystem(host, session.content.rootFolder._stub)
            machine = _vm(session, vm)
            here = read(session, machine, "runtime.host")["runtime.host"]
            if target.parent != here.parent:
                raise Refused(f"host {target.name} is in another cluster than VM {machine.name}")
            spec = vim.vm.RelocateSpec(host=target)
            return str(machine.RelocateVM_Task(spec, vim.VirtualMachine.MovePriority.defaultPriority)._GetMoId())

        return await self.asked(start)


def _vm(session: Session, ref: str) -> Any:
    return vim.VirtualMachine(ref, session.content.rootFolder._stub)


def _live(session: Session, vm: Any) -> LiveVm:
    """Blocks."""
    task = running(vm, MIGRATIONS)  # first: one that ends in between has the VM where it takes it
    found = read(session, vm, "name", "runtime.host", "runtime.powerState")
    host = found["runtime.host"]._GetMoId() if "runtime.host" in found else ""
    return LiveVm(found["name"], host, found["runtime.powerState"] == vim.VirtualMachine.PowerState.poweredOn, task)
