"""The simulated site, and what an operator or fate may do to it: drains, failures, taints, new nodes."""

import random
from collections.abc import Mapping
from typing import Any

from support.simulation.clock import LogicalClock
from support.simulation.failures import Failures
from support.simulation.maintenance import EmptyingDrs
from support.simulation.standby import add_standby
from support.simulation.taints import TaintEvictions

from underhost.streams.simulated import drains
from underhost.streams.simulated.kubernetes import key_of
from underhost.streams.simulated.objects import labels_of, raw, with_metadata
from underhost.streams.simulated.site import SimulatedSite


class OperatedSite(SimulatedSite):
    """A simulated site with an operator's verbs, by names. They raise Gone for what is not there."""

    drs: EmptyingDrs
    drs_type = EmptyingDrs

    def __init__(self, scenario: str, *, seed: int = 0, **options: Any) -> None:
        super().__init__(scenario, seed=seed, **options)
        self.failures = Failures(self.timeline, self.kubernetes, self.vsphere)
        self.taints = TaintEvictions(self.timeline, self.kubernetes)
        self._random = random.Random(f"{seed}/operator")  # not the numbers that the site itself is made of

    def advance(self, seconds: float) -> None:
        """Let time pass and do what is due. Only with a LogicalClock."""
        assert isinstance(self.timeline.clock, LogicalClock)
        self.timeline.clock.advance(seconds)
        self.timeline.run_due()

    # ---------------------------------------------------------------------------------------------------------- vSphere
    def move_vm(self, vm: str, host: str) -> None:
        """vMotion to an explicit host: DRS rules are not asked. Raises Refused, too."""
        self.vsphere.move_vm(vm, host)

    def fail_host(self, host: str) -> None:
        """A host dies: HA restarts its VMs elsewhere, their nodes are lost until they have booted."""
        self.failures.fail_host(host)

    def restore_host(self, host: str) -> None:
        """A dead host is back."""
        self.failures.restore_host(host)

    def enter_maintenance(self, host: str) -> None:
        """DRS empties a host as the rules allow. Raises Refused, too."""
        self.drs.enter_maintenance(host)

    def exit_maintenance(self, host: str) -> None:
        """The host takes VMs again."""
        self.vsphere.set_host_state(host, "connected")

    # ------------------------------------------------------------------------------------------------------- Kubernetes
    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; its owner makes another."""
        self.kubernetes.delete_pod(namespace, name)

    def drain(self, node: str) -> None:
        """Cordon a node and evict its pods as the budgets allow."""
        drains.drain(self.kubernetes, self.timeline, node)

    def cordon(self, node: str) -> None:
        """Close a node for new pods."""
        drains.cordon(self.kubernetes, node)

    def uncordon(self, node: str) -> None:
        """Open a node for new pods."""
        drains.cordon(self.kubernetes, node, unschedulable=False)

    def taint(self, node: str, key: str, effect: str) -> None:
        """Taint a node; NoExecute ends the pods that do not tolerate it."""
        drains.set_taints(self.kubernetes, node, key, [{"key": key, "effect": effect}])

    def untaint(self, node: str, key: str) -> None:
        """Remove the taints of a key."""
        drains.set_taints(self.kubernetes, node, key, [])

    def fail_node(self, node: str) -> None:
        """A node falls silent: lost after 40 s; five minutes later its pods are made anew elsewhere."""
        self.failures.fail_node(node)

    def restore_node(self, node: str) -> None:
        """The node is heard again after it has booted."""
        self.failures.restore_node(node)

    def add_node(self, name: str, host: str, like: str) -> None:
        """A stand-by node joins: a VM on that host, made like the VM and node of another. Raises Conflict, too."""
        add_standby(self.kubernetes, self.vsphere, self._random, name, host, like)

    def delete_node(self, node: str) -> None:
        """Delete a node; the pods that were on it are gone."""
        self.kubernetes.delete(self.kubernetes.node(node))
        self.kubernetes.managers.pop(node, None)
        for pod in self.kubernetes.pods().values():
            if pod.spec.node_name == node:
                self.kubernetes.store.drop(key_of(pod))

    def label_node(self, node: str, labels: Mapping[str, str | None], *, manager: str = "kubectl-label") -> None:
        """Set or remove labels in somebody's name, whoever owned them before; an equal value changes no owner."""
        held = self.kubernetes.node(node)
        current, managers = labels_of(held.metadata), self.kubernetes.managers[node]
        for key, value in labels.items():
            if value is None:
                current.pop(key, None)
                managers.pop(key, None)
            elif current.get(key) != value:
                current[key] = value
                managers[key] = {manager}
        self.kubernetes.update(with_metadata(held, labels=raw(current)))


def a_site(**options: Any) -> OperatedSite:
    """The KubeVirt site on a clock that only `advance` moves."""
    return OperatedSite("kubevirt", clock=LogicalClock(), **options)
