"""One immutable picture of a site: what every decision is made from. Tables, dumps and the simulator all make one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Budget, Namespace, Node, Pod, Service, Workload
from underhost.schemas.records import NodeHost
from underhost.schemas.shares import Shares
from underhost.schemas.storage import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Vm


@dataclass(frozen=True)
class Options:
    """How the evaluator judges.

    Attributes:
        host_keys: the host label's key and its aliases: terms on these are judged by the live host.
        physical_host: `preferred` (placement avoids a shared host) or `required` (it refuses one).
        cross_namespace: `report` or `act`: whether what is done about a term follows it into other namespaces.
        shares: what one namespace may have of the site.
        drift: report preferences that another feasible node would meet strictly better, too.
        scheduler_names: pods of these schedulers are placed.
    """

    host_keys: tuple[str, ...] = ("node.cluster.x-k8s.io/esxi-host", "alpha.cna.vmware.com/host")
    physical_host: str = "preferred"
    cross_namespace: str = "report"
    shares: Shares = field(default_factory=Shares)
    drift: bool = False
    scheduler_names: tuple[str, ...] = ("default-scheduler", "underhost")


@dataclass(frozen=True)
class Joining:
    """How it is told which host a node runs on; see `join.py`.

    Attributes:
        by_name: whether VM names and guest hostnames may say which VM a node is: not those of a live vCenter, unless a
            person allows it.
        label: the key of the node label that names the host, where no vSphere does; "" where none is to be asked.
    """

    by_name: bool = True
    label: str = ""

    def host_keys(self, keys: Iterable[str]) -> tuple[str, ...]:
        """The host keys of `Options`, the label among them."""
        return tuple(dict.fromkeys([*keys, *([self.label] if self.label else [])]))


BY_VM = Joining()
"""By the VM that it is."""


class OneLook(NamedTuple):
    """What is asked of all pods, found in one look at them: each of a million is far in memory.

    `annotated` and `unplaced` are as in `Snapshot`; `affinities` and `spreads` are the distinct parts of their specs.
    """

    annotated: Mapping[str, Pod]
    unplaced: Mapping[str, Pod]
    affinities: frozenset[bytes]
    spreads: frozenset[bytes]


@dataclass(frozen=True)
class Snapshot:
    """A site at one moment. Mappings are not changed after construction.

    Attributes:
        nodes: by name. pods: by `namespace/name`. namespaces: by name. services, budgets: by `namespace/name`.
        workloads: by `Kind/namespace/name`. vms, hosts: by moref (or name, where an inventory has no ids).
        clusters: by name. rules: by (cluster, name).
        claims: by `namespace/name`; where there are none, no volume of a claim is judged. volumes, storage_classes,
            attachments: by name. csi_nodes: by the node's name. Only dumps have them, the pipeline does not.
        node_hosts: by node name, only the nodes that were joined to a VM, or whose label names a host; see `join.py`.
        rivals: by the name of a node that claims a VM which is another node, that node; see `join.py`.
        vsphere: whether the site has a vSphere side: only then is an unknown host a finding.
        joining: how `node_hosts` are told.
        offsets: topic to the last offset that is in the picture.
        checked: whether the labels of all pods are known to be objects of strings, as those of files are.
    """

    site: str = "default"
    nodes: Mapping[str, Node] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    services: Mapping[str, Service] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    vms: Mapping[str, Vm] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], DrsRule] = field(default_factory=dict)
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CsiNode] = field(default_factory=dict)
    attachments: Mapping[str, VolumeAttachment] = field(default_factory=dict)
    node_hosts: Mapping[str, NodeHost] = field(default_factory=dict)
    rivals: Mapping[str, str] = field(default_factory=dict)
    vsphere: bool = False
    joining: Joining = BY_VM
    offsets: Mapping[str, int] = field(default_factory=dict)
    checked: bool = False

    @property
    def annotated(self) -> Mapping[str, Pod]:
        """The pods with an annotation that is read: few of a large site."""
        return self.look.annotated

    @property
    def unplaced(self) -> Mapping[str, Pod]:
        """The pods without a node: few of a large site."""
        return self.look.unplaced

    @cached_property
    def look(self) -> OneLook:
        """What is asked of all pods. Those beside each other are often alike: comparing is cheaper than hashing."""
        annotated, unplaced = dict[str, Pod](), dict[str, Pod]()
        affinities, spreads = set[bytes](), set[bytes]()
        affinity, spread = EMPTY_OBJECT, EMPTY_LIST
        for key, pod in self.pods.items():
            spec = pod.spec
            if pod.metadata.annotations is not None:
                annotated[key] = pod
            if not spec.node_name:
                unplaced[key] = pod
            if spec.affinity is not affinity and spec.affinity != affinity:
                affinity = spec.affinity
                affinities.add(bytes(affinity))
            if spec.topology_spread_constraints is not spread and spec.topology_spread_constraints != spread:
                spread = spec.topology_spread_constraints
                spreads.add(bytes(spread))
        return OneLook(annotated, unplaced, frozenset(affinities), frozenset(spreads))

    def count_hosts(self) -> int:
        """The hosts; where the input names none, those that nodes are known to be on."""
        return len(self.hosts) or len({joined.host for joined in self.node_hosts.values() if joined.host})
