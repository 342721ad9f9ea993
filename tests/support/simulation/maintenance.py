"""DRS that also empties hosts for maintenance."""

import random
from collections.abc import Set
from typing import Any

from underhost.schemas.errors import Refused
from underhost.streams.simulated.drs import Drs
from underhost.streams.simulated.store import Change
from underhost.streams.simulated.timeline import Timeline
from underhost.streams.simulated.vsphere import SimulatedVSphere


class EmptyingDrs(Drs):
    """Moves every VM away from a host as the rules allow; once the last is gone the host is in maintenance mode.

    A VM that no other host can take without breaking a rule stays, and the host waits for it, as in reality.
    """

    def __init__(self, timeline: Timeline, vsphere: SimulatedVSphere, source: random.Random, **options: Any) -> None:
        super().__init__(timeline, vsphere, source, **options)
        self._leaving: set[str] = set()
        vsphere.store.listen(self._on_change)

    def enter_maintenance(self, host: str) -> None:
        """Begin to empty the host. Raises Gone or Refused (not connected)."""
        target = self._vsphere.host(host)
        if target.state != "connected":
            raise Refused(f"host {target.name} is not connected or in maintenance mode")
        self._leaving.add(target.id)
        self._evacuate(target.id)

    def _usable(self) -> Set[str]:
        return super()._usable() - self._leaving

    def _run(self) -> None:
        for host in sorted(self._leaving):
            if self._vsphere.host(host).state == "connected":
                self._evacuate(host)
            else:
                self._leaving.discard(host)
        super()._run()

    def _on_change(self, change: Change) -> None:
        """A VM that has left a host may have been the last one."""
        if change.key.kind == "vm":
            for host in sorted(self._leaving):
                self._close_if_empty(host)

    def _evacuate(self, host: str) -> None:
        """Move away what the rules allow to be moved."""
        for vm in self._vsphere.vms().values():
            if self._vsphere.whereabouts(vm) == host:
                self._move_without_conflict(vm, self._vsphere.hosts().values())
        self._close_if_empty(host)

    def _close_if_empty(self, host: str) -> None:
        if not any(vm.host == host for vm in self._vsphere.vms().values()):
            self._leaving.discard(host)  # first: what follows is a change, too
            self._vsphere.set_host_state(host, "maintenance")
