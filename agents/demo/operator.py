"""The operator of the demo's site, and its fate: what a step of the story asks for is done to the clusters."""

from collections.abc import Callable

from underhost.agents.demo.story import Act, Verb
from underhost.streams.simulated import drains
from underhost.streams.simulated.failures import HostFailures
from underhost.streams.simulated.site import SimulatedSite

BOOT = 20.0
"""Seconds that a VM takes to boot here: its node is back before Kubernetes takes it for lost."""


class Operator:
    """Does what acts say to a site, by names."""

    def __init__(self, site: SimulatedSite) -> None:
        self._site = site
        self._home = {vm.name: site.vsphere.host(vm.host).name for vm in site.vsphere.vms().values()}
        self._failures = HostFailures(site.timeline, site.kubernetes, site.vsphere, boot=BOOT)
        self._verbs: dict[Verb, Callable[[Act], None]] = {
            Verb.HOLD_DRS: lambda act: self._hold(True),
            Verb.RELEASE_DRS: lambda act: self._hold(False),
            Verb.MOVE: lambda act: site.vsphere.move_vm(act.target, act.host),
            Verb.FAIL: lambda act: self._failures.fail_host(act.target),
            Verb.RESTORE: lambda act: self._failures.restore_host(act.target),
            Verb.DRAIN: lambda act: drains.drain(site.kubernetes, site.timeline, act.target),
            Verb.UNCORDON: lambda act: drains.cordon(site.kubernetes, act.target, unschedulable=False),
            Verb.ASK_QUORUM: lambda act: self._ask_quorum(act.target, "true"),
            Verb.FORGET_QUORUM: lambda act: self._ask_quorum(act.target, None),
            Verb.RETURN: lambda act: self._return(),
        }

    @property
    def home(self) -> dict[str, str]:
        """The host of each VM at the beginning, by names."""
        return self._home

    def do(self, act: Act) -> None:
        """Do it. Raises Gone, Refused."""
        self._verbs[act.verb](act)

    def _hold(self, held: bool) -> None:
        self._site.drs.held = held

    def _ask_quorum(self, workload: str, wanted: str | None) -> None:
        kind, namespace, name = workload.split("/")
        self._site.controllers.ask_quorum(kind, namespace, name, wanted)

    def _return(self) -> None:
        """Move every VM back to where it was at the beginning."""
        vsphere = self._site.vsphere
        for vm, host in self._home.items():
            if vsphere.host_of(vm) != host and vsphere.vm(vm).id not in vsphere.in_motion:
                vsphere.move_vm(vm, host)
