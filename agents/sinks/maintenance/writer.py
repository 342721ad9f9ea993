"""Puts ESXi hosts into vSphere's maintenance mode, and takes them out; a `HostMaintainer`.

In: the reference of a host. Out: a task (`EnterMaintenanceMode_Task`, `ExitMaintenanceMode_Task`), and what becomes of
it. VMs that are powered off stay where they are. Whether the host may go is the sink's business.
"""

from typing import Any

from pyVmomi import vim

from underhost.streams.ports import LiveHost
from underhost.streams.vsphere.client import Session
from underhost.streams.vsphere.tasks import VSphereTasks, read, read_all, running

CHANGES = frozenset({"HostSystem.enterMaintenanceMode", "HostSystem.exitMaintenanceMode"})
"""What vCenter calls the tasks that change a host's mode."""


class VSphereHostMaintainer(VSphereTasks):
    """The hosts of one vCenter."""

    async def live_host(self, host: str) -> LiveHost:
        """See `HostMaintainer.live_host`."""
        return await self.asked(lambda session: _live(session, _host(session, host)))

    async def enter_maintenance(self, host: str, within: int) -> str:
        """See `HostMaintainer.enter_maintenance`."""

        def start(session: Session) -> str:
            task = _host(session, host).EnterMaintenanceMode_Task(timeout=within, evacuatePoweredOffVms=False)
            return str(task._GetMoId())

        return await self.asked(start)

    async def exit_maintenance(self, host: str, within: int) -> str:
        """See `HostMaintainer.exit_maintenance`."""

        def start(session: Session) -> str:
            return str(_host(session, host).ExitMaintenanceMode_Task(timeout=within)._GetMoId())

        return await self.asked(start)


def _host(session: Session, ref: str) -> Any:
    return vim.HostSystem(ref, session.content.rootFolder._stub)


def _live(session: Session, host: Any) -> LiveHost:
    """Blocks."""
    task = running(host, CHANGES)  # first: one that ends in between has the host in its new mode
    found = read(session, host, "name", "runtime.connectionState", "runtime.inMaintenanceMode", "vm")
    vms = read_all(session, found["vm"], "name", "runtime.host", "runtime.powerState") if found.get("vm") else {}
    on = vim.VirtualMachine.PowerState.poweredOn
    return LiveHost(
        found["name"],
        found["runtime.connectionState"] == vim.HostSystem.ConnectionState.connected,
        found["runtime.inMaintenanceMode"],
        {
            ref: vm["name"]
            for ref, vm in vms.items()
            if vm["runtime.powerState"] == on and vm.get("runtime.host") == host
        },
        task,
    )
