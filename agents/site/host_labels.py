"""Which physical host a node is on, where no vSphere says so but a label of the node does: another controller's.

In: nodes, and the key of the label. Out: a `NodeHost` for each node that carries it, and the named hosts. Pure. The
label is as true as whoever writes it keeps it: some cloud controllers write it once and not again after a live
migration, so that it is told since when it has been what it is.
"""

from collections.abc import Iterable, Mapping

from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Host

LABEL = "label"
"""`joinedBy` of a node whose label names its host."""
KNOWN = (
    "node.cluster.x-k8s.io/esxi-host",
    "topology.proxmox.sinextra.dev/zone",
    "topology.proxmox.sinextra.dev/node",
    "topology.k8s.xenorchestra/host_id",
    "nutanix.com/prism-host-uuid",
    "topology.openstack.org/host-id",
    "topology.scs.community/host-id",
    "cloud.google.com/gce-topology-host",
    "oci.oraclecloud.com/host.id",
)
"""Labels that name the host, and nothing wider: of Cluster API's vSphere provider, the cloud controllers of Proxmox VE,
Xen Orchestra, Nutanix and OpenStack, the Sovereign Cloud Stack's standard, Google's and Oracle's clusters."""


def read(node: Node, key: str) -> tuple[str, str]:
    """(host, since) as the label says: "" where it is missing, and where nobody is on record as its manager.

    `since` is RFC 3339: when the manager that owns the label last changed anything, so that it is not later than that.
    """
    host = readable_labels(node.metadata.labels).get(key, "")
    managers = node.metadata.managed_fields or ()
    times = [one.time for one in managers if f"f:{key}" in one.fields_v1.metadata.labels]
    return host, max(times, default="") if host else ""


def by_label(nodes: Mapping[str, Node], key: str) -> dict[str, NodeHost]:
    """The nodes whose label names a host, by name, sorted."""
    rows = {}
    for name in sorted(nodes):
        host, since = read(nodes[name], key)
        if host:
            rows[name] = NodeHost(node=name, vm="", host=host, host_name=host, joined_by=LABEL, since=since)
    return rows


def hosts_of(rows: Iterable[NodeHost], known: Mapping[str, Host]) -> dict[str, Host]:
    """The hosts that labels name, by name, sorted; those that are `known` as they are."""
    names = {row.host for row in rows if row.joined_by == LABEL}
    return {name: known.get(name) or Host(name=name) for name in sorted(names)}


def proposed(snapshot: Snapshot) -> str:
    """The known label that could say where the nodes are, where nothing does: that of most nodes; else ""."""
    if snapshot.vsphere or snapshot.node_hosts or snapshot.joining.label:
        return ""
    carried = {key: 0 for key in KNOWN}
    for node in snapshot.nodes.values():
        raw = bytes(node.metadata.labels)
        for key in KNOWN:
            carried[key] += f'"{key}"'.encode() in raw
    best = max(KNOWN, key=carried.__getitem__)
    return best if carried[best] else ""
