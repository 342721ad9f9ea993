"""The simulated vCenter as the live watcher logs in, waits and polls, with what goes wrong on the way.

In: the server, faults. Out: a `Collector` for each session, in the place of pyVmomi's: everything above it is the
watcher of a live vCenter; and a `VmMover`. As there, rules, flags and the states of hosts are not announced, only
polled.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from trust.simulation.faults import Faults
from trust.simulation.server import Server

from underhost.schemas.errors import Gone, Refused
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.ports import LiveVm
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.simulated.store import Change
from underhost.streams.simulated.vsphere import SimulatedVSphere
from underhost.streams.vsphere.changes import CLUSTER, HOST, LEAVE, MODIFY, VM, ClusterState, ObjectChange, Page, Poll
from underhost.streams.vsphere.client import SessionLost

EXPIRED = 0.3
"""The share of sessions that end because the server does not know the version any more."""
MEAN_LIFE = 60.0
"""Seconds after which a session is lost, on average."""
HELD = 4.0
"""Seconds that the server holds a wait without changes."""
ANSWER = 15.0
"""Seconds after which the client gives up a wait."""
FAILS = 0.05
"""The share of vMotions that vCenter begins, and that fail."""


class VCenter(Server):
    """The vCenter."""

    def __init__(self, vsphere: SimulatedVSphere, faults: Faults) -> None:
        super().__init__("vCenter", vsphere.store, faults)
        self.vsphere = vsphere

    async def log_in(self, settings: VSphereSettings) -> "Session":
        """In the place of `open_collector`."""
        await self.answer()
        return Session(self)

    def all_objects(self) -> Iterable[Change]:
        """The cluster, the hosts, the VMs."""
        for kind in (CLUSTER, HOST, VM):
            for key, value in self.store.of_kind(kind):
                yield Change(key, value, value.uid)


class Session:
    """One login: a `Collector`."""

    def __init__(self, server: VCenter) -> None:
        self._server, self._faults = server, server.faults
        self._clock = asyncio.get_running_loop().time
        self._lost = self._clock() + self._faults.dice.expovariate(1 / MEAN_LIFE)

    async def wait(self, version: str) -> Page | None:
        """See `Collector.wait`."""
        server = self._server
        if not version:
            await server.answer()
            return self._page(server.all_objects(), server.store.version)
        until = self._clock() + HELD
        while (now := server.since(int(version)))[1] == int(version) and self._clock() < until:
            await server.wait(until - self._clock())
        await server.heard(ANSWER)
        await self._faults.delay()
        self._end_now_and_then()
        now = server.since(int(version))
        return self._page(*now) if now[0] else None

    async def poll(self) -> Poll:
        """See `Collector.poll`."""
        server = self._server
        await server.answer()
        cluster = server.vsphere.cluster
        state = ClusterState(cluster.id, cluster.name, cluster.drs, cluster.ha, tuple(server.vsphere.all_rules()))
        states = [ObjectChange(MODIFY, HOST, ref, _state(host)) for ref, host in server.vsphere.hosts().items()]
        await self._faults.delay()
        return Poll((state,), tuple(states), {}, {})

    async def close(self) -> None:
        """See `Collector.close`."""

    def _end_now_and_then(self) -> None:
        if self._faults.on and self._clock() >= self._lost:
            if self._faults.strike("vCenter forgot the version", EXPIRED):
                raise Gone("the version is not known: simulated")
            if self._faults.strike("vCenter session lost", 1.0):
                raise SessionLost("the session has ended: simulated")
            self._lost = self._clock() + self._faults.dice.expovariate(1 / MEAN_LIFE)

    def _page(self, changes: Iterable[Change], version: int) -> Page:
        cluster = self._server.vsphere.cluster.id
        found = [_change(change, cluster) for change in changes if change.key.kind in (CLUSTER, HOST, VM)]
        return Page(str(version), False, tuple(found))


def _change(change: Change, cluster: str) -> ObjectChange:
    """What is announced of one object."""
    kind, _, ref = change.key
    if kind == CLUSTER:
        return ObjectChange(MODIFY, CLUSTER, cluster, {"name": ref})
    if change.value is None:
        return ObjectChange(LEAVE, kind, ref, {})
    return ObjectChange(MODIFY, kind, ref, _vm(change.value) if kind == VM else _host(change.value, cluster))


def _vm(vm: Vm) -> Mapping[str, Any]:
    return {
        "name": vm.name,
        "config.template": False,
        "config.uuid": vm.uuid,
        "config.hardware.numCPU": vm.cpus,
        "config.hardware.memoryMB": vm.memory_mib,
        "runtime.host": vm.host,
        "runtime.powerState": "poweredOn" if vm.power == "on" else "poweredOff",
        "guest.hostName": vm.hostname,
    }


def _host(host: Host, cluster: str) -> Mapping[str, Any]:
    return {
        "name": host.name,
        "parent": cluster,
        "summary.hardware.numCpuCores": 1,
        "summary.hardware.cpuMhz": host.cpu_mhz,
        "summary.hardware.memorySize": host.memory_mib * 1024 * 1024,
    }


def _state(host: Host) -> Mapping[str, Any]:
    return {
        "runtime.connectionState": "disconnected" if host.state == "disconnected" else "connected",
        "runtime.inMaintenanceMode": host.state == "maintenance",
    }


class FailingMover:
    """A `VmMover` whose vMotions fail now and then: the call is taken, and its task ends with an error."""

    def __init__(self, vsphere: SimulatedVSphere, faults: Faults) -> None:
        self._vsphere, self._faults = vsphere, faults
        self._failed = 0

    @property
    def version(self) -> object:
        """What a relocation changes at once."""
        return dict(self._vsphere.in_motion)

    async def live_vm(self, vm: str) -> LiveVm:
        """See `VmMover`."""
        return await self._vsphere.live_vm(vm)

    async def relocate(self, vm: str, host: str) -> str:
        """See `VmMover`."""
        if self._faults.strike("a vMotion fails", FAILS):
            self._failed += 1
            return f"failed-{self._failed}"
        return await self._vsphere.relocate(vm, host)

    async def is_done(self, task: str) -> bool:
        """See `VmMover`."""
        if task.startswith("failed-"):
            raise Refused("the vMotion has failed: simulated")
        return await self._vsphere.is_done(task)
