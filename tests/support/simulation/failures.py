"""Nodes that fall silent, beside the hosts that die."""

from underhost.streams.simulated import failures
from underhost.streams.simulated.failures import HostFailures


class Failures(HostFailures):
    """Hosts and nodes that die and come back."""

    def fail_node(self, node: str) -> None:
        """A node's kubelet falls silent, its VM and host as they were. Raises Gone."""
        name = self._vsphere.vm(node).name
        self._silent.add(name)
        self._timeline.after(failures.NODE_GRACE, lambda: self._lose([name]))

    def restore_node(self, node: str) -> None:
        """The node boots, and is heard again. Raises Gone."""
        name = self._vsphere.vm(node).name
        self._timeline.after(failures.BOOT, lambda: self._return([name]))
