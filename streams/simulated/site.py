"""The simulated site: a Kubernetes cluster and the vSphere cluster below it, in memory, decided by a seed.

In: the name of a scenario, a seed, a clock; then an operator's verbs and the sinks' commands. Out: two sources that
publish what happens, and the two writers. It holds nothing over a restart: a new site begins anew, and the topics are
reconciled with it.
"""

import random
from collections.abc import Sequence

from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.simulated.controllers import Controllers
from underhost.streams.simulated.drs import Drs
from underhost.streams.simulated.events import SimulatedEvents
from underhost.streams.simulated.failures import Failures
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.scenarios import SCENARIOS
from underhost.streams.simulated.sources import SimulatedSource
from underhost.streams.simulated.standby import add_standby
from underhost.streams.simulated.taints import TaintEvictions
from underhost.streams.simulated.timeline import Clock, LogicalClock, Timeline, WallClock
from underhost.streams.simulated.vsphere import SimulatedVSphere

AGE_OF_THE_CLUSTER = 3600.0
"""Seconds that the clusters' own pods have been running when somebody first looks."""


class SimulatedSite:
    """One site, alive while a source of it runs or a test advances it.

    Args:
        scenario: a name of SCENARIOS.
        seed: decides every generated name and uid.
        clock: the real time unless given.
        vmotion: seconds that a VM takes to move.
        drs_interval: seconds between two runs of DRS.

    Attributes:
        kubernetes: the API server; a KubernetesWriter. events: its Events; an EventWriter.
        vsphere: the vCenter; a DrsWriter.
        controllers: owners, scheduler, kubelets.
        drs: keeps the rules, empties hosts. failures: hosts that die.

    Raises InputError for an unknown scenario.
    """

    def __init__(
        self,
        scenario: str,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        vmotion: float = 1.5,
        drs_interval: float = 5.0,
    ) -> None:
        if scenario not in SCENARIOS:
            known = ", ".join(sorted(SCENARIOS))
            meant = did_you_mean(scenario, SCENARIOS)
            raise InputError(f"no simulated site {scenario!r}; there is: {known}{meant}")
        self.scenario = SCENARIOS[scenario]
        source = random.Random(seed)
        self.timeline = Timeline(clock or WallClock())
        self.kubernetes = SimulatedKubernetes(self.timeline, source)
        self.events = SimulatedEvents(self.kubernetes)
        self.controllers = Controllers(self.kubernetes, self.timeline, source)
        self.vsphere = SimulatedVSphere(self.timeline, self.scenario.vsphere_cluster, vmotion=vmotion)
        self.drs = Drs(self.timeline, self.vsphere, source, interval=drs_interval)
        self.failures = Failures(self.timeline, self.kubernetes, self.vsphere)
        self.taints = TaintEvictions(self.timeline, self.kubernetes)
        self._random = source
        with self.timeline.at(self.timeline.now() - AGE_OF_THE_CLUSTER):
            self.scenario.system(self.kubernetes, self.controllers, self.vsphere, source)
        self.timeline.run_due()
        self.scenario.workload(self.kubernetes, self.controllers)
        self.drs.start()
        self.timeline.run_due()

    def sources(self, site: str, publisher: Publisher, reader: TopicReader) -> Sequence[Source]:
        """The watchers of both clusters, for the site's name in the topics."""
        stores = {"kubernetes": self.kubernetes.store, "vsphere": self.vsphere.store}
        return [SimulatedSource(name, site, store, self.timeline, publisher, reader) for name, store in stores.items()]

    def advance(self, seconds: float) -> None:
        """Let time pass and do what is due. Only with a LogicalClock."""
        if not isinstance(self.timeline.clock, LogicalClock):
            raise TypeError("only a LogicalClock can be advanced")
        self.timeline.clock.advance(seconds)
        self.timeline.run_due()

    # ------------------------------------------------------------------------------------------- what an operator does
    def move_vm(self, vm: str, host: str) -> None:
        """vMotion to an explicit host, by names: DRS rules are not asked. Raises Gone or Refused."""
        self.vsphere.move_vm(vm, host)

    def fail_host(self, host: str) -> None:
        """A host dies: HA restarts its VMs elsewhere, their nodes are lost until they have booted. Raises Gone."""
        self.failures.fail_host(host)

    def restore_host(self, host: str) -> None:
        """A dead host is back. Raises Gone."""
        self.failures.restore_host(host)

    def enter_maintenance(self, host: str) -> None:
        """DRS empties a host as the rules allow. Raises Gone or Refused."""
        self.drs.enter_maintenance(host)

    def exit_maintenance(self, host: str) -> None:
        """The host takes VMs again. Raises Gone."""
        self.vsphere.set_host_state(host, "connected")

    def drain(self, node: str) -> None:
        """Cordon a node and evict its pods as the budgets allow. Raises Gone."""
        self.kubernetes.drain(node)

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; its owner makes another. Raises Gone."""
        self.kubernetes.delete_pod(namespace, name)

    def uncordon(self, node: str) -> None:
        """Open a node for new pods. Raises Gone."""
        self.kubernetes.cordon(node, unschedulable=False)

    def taint(self, node: str, key: str, effect: str, value: str = "") -> None:
        """Taint a node; NoExecute ends the pods that do not tolerate it. Raises Gone."""
        self.kubernetes.taint(node, key, effect, value)

    def untaint(self, node: str, key: str) -> None:
        """Remove the taints of a key. Raises Gone."""
        self.kubernetes.untaint(node, key)

    def fail_node(self, node: str) -> None:
        """A node falls silent: lost after 40 s; five minutes later its pods are made anew elsewhere. Raises Gone."""
        self.failures.fail_node(node)

    def restore_node(self, node: str) -> None:
        """The node is heard again after it has booted. Raises Gone."""
        self.failures.restore_node(node)

    def add_node(self, name: str, host: str, like: str) -> None:
        """A stand-by node joins: a VM on that host, made like the VM and node of another. Raises Gone or Conflict."""
        add_standby(self.kubernetes, self.vsphere, self._random, name, host, like)
