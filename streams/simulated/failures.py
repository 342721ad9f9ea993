"""What a dead host does to a site: VMs restart elsewhere, their nodes are silent for a while, their pods not ready.

In: fate's verbs on both simulated clusters. Out: changes of both, in the order and with the delays
that vSphere HA and the node lifecycle controller have.
"""

import msgspec

from underhost.schemas.kubernetes import Condition, Node, Pod
from underhost.schemas.vsphere import CONNECTED, DISCONNECTED
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import plain, raw
from underhost.streams.simulated.store import ObjectKey
from underhost.streams.simulated.timeline import Timeline
from underhost.streams.simulated.vsphere import SimulatedVSphere

UNREACHABLE = "node.kubernetes.io/unreachable"
HA_DETECTS = 15.0
"""Seconds until HA takes a host for dead and restarts its VMs."""
BOOT = 45.0
"""Seconds from a VM's restart to its node's first heartbeat."""
NODE_GRACE = 40.0
"""Seconds without a heartbeat until a node counts as not ready."""


class HostFailures:
    """Hosts that die and come back. `boot`: seconds from a VM's restart to its node's heartbeat, by default `BOOT`."""

    def __init__(
        self,
        timeline: Timeline,
        kubernetes: SimulatedKubernetes,
        vsphere: SimulatedVSphere,
        *,
        boot: float | None = None,
    ) -> None:
        self._boot = boot
        self._timeline, self._kubernetes, self._vsphere = timeline, kubernetes, vsphere
        self._silent: set[str] = set()

    def fail_host(self, host: str) -> None:
        """The host dies with everything on it. Raises Gone."""
        ref = self._vsphere.host(host).id
        self._vsphere.set_host_state(host, DISCONNECTED)
        lost = [vm.name for vm in self._vsphere.vms().values() if vm.host == ref]
        self._silent.update(lost)
        self._timeline.after(NODE_GRACE, lambda: self._lose(lost))
        self._timeline.after(HA_DETECTS, lambda: self._restart(host))

    def restore_host(self, host: str) -> None:
        """The host is back, empty if HA has moved its VMs; VMs that are still on it boot. Raises Gone."""
        self._vsphere.set_host_state(host, CONNECTED)
        ref = self._vsphere.host(host).id
        here = [vm.name for vm in self._vsphere.vms().values() if vm.host == ref and vm.name in self._silent]
        self._timeline.after(BOOT if self._boot is None else self._boot, lambda: self._return(here))

    def _restart(self, host: str) -> None:
        restarted = self._restart_elsewhere(host)
        self._timeline.after(BOOT if self._boot is None else self._boot, lambda: self._return(restarted))

    def _restart_elsewhere(self, host: str) -> list[str]:
        """The dead host's VMs start on others, the emptiest first, and no VM-VM rule is asked. Their names."""
        vsphere, restarted = self._vsphere, []
        dead = vsphere.host(host)
        for vm in vsphere.vms().values() if vsphere.cluster.ha and dead.state == DISCONNECTED else ():
            load = vsphere.load()
            possible = sorted((load[ref], each.name, ref) for ref, each in vsphere.usable().items())
            if vm.host == dead.id and possible:
                vsphere.store.put(ObjectKey("vm", "", vm.id), msgspec.structs.replace(vm, host=possible[0][2]))
                restarted.append(vm.name)
        return restarted

    def _lose(self, names: list[str]) -> None:
        for name in names:
            if name in self._silent:
                self._set_ready(name, "Unknown", "NodeStatusUnknown")

    def _return(self, names: list[str]) -> None:
        for name in names:
            if name in self._silent:
                self._silent.discard(name)
                self._set_ready(name, "True", "KubeletReady")

    def _set_ready(self, name: str, status: str, reason: str) -> None:
        """The node's condition and taints, and the readiness of its pods, as the node lifecycle controller has them."""
        node: Node | None = self._kubernetes.nodes().get(name)
        if node is None:
            return
        conditions = [item for item in node.status.conditions or [] if item.type != "Ready"]
        taints = [item for item in plain(node.spec.taints) or [] if item["key"] != UNREACHABLE]
        if status != "True":
            taints += [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        self._kubernetes.update(
            msgspec.structs.replace(
                node,
                spec=msgspec.structs.replace(node.spec, taints=raw(taints)),
                status=msgspec.structs.replace(
                    node.status, conditions=[*conditions, Condition("Ready", status, reason)]
                ),
            )
        )
        for pod in self._kubernetes.pods().values():
            if pod.spec.node_name == name and pod.status.phase == "Running":
                self._kubernetes.update(_with_ready(pod, "True" if status == "True" else "False"))


def _with_ready(pod: Pod, status: str) -> Pod:
    conditions = [
        Condition(item.type, status) if item.type == "Ready" else item for item in pod.status.conditions or []
    ]
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))
