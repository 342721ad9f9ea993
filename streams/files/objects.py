"""What files hold, as typed objects: the result of reading them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from underhost.schemas.errors import BadObjectError
from underhost.schemas.kubernetes import Budget, Namespace, Node, Pod, Service, Workload
from underhost.schemas.manifests import Manifest
from underhost.schemas.storage import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from underhost.schemas.vsphere import Inventory


@dataclass(frozen=True)
class Objects:
    """What files hold. The mappings have the keys of the engine's Snapshot; their order is that of the input.

    Attributes:
        nodes, namespaces: by name. pods, services, budgets: by `namespace/name`.
        workloads: owners of pods, by `Kind/namespace/name`. others: manifests to expand (the workloads among them), and
            PriorityClass: by `Kind/namespace/name` (`Kind/name`).
        claims, volumes, storage_classes, csi_nodes, attachments: what the volume rules read.
        inventory: the vSphere side, where one is given.
        notes: one line for each thing that was read differently than a person may expect; for stderr.
        makers: kinds in the input that may create pods but are not read: custom resources, CronJob.
        misspelled: by `Kind/namespace/name`, the fields of a hand-written pod's or budget's spec that were not read
            because of wrong capitals.
        origins: the file of every object (`Kind/namespace/name`) that is not of `first_file`.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    budgets: dict[str, Budget] = field(default_factory=dict)
    others: dict[str, Manifest] = field(default_factory=dict)
    inventory: Inventory | None = None
    notes: Sequence[str] = ()
    origins: dict[str, str] = field(default_factory=dict)
    first_file: str = ""
    misspelled: dict[str, list[str]] = field(default_factory=dict)
    makers: set[str] = field(default_factory=set)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNode] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)

    def holds(self, label: str) -> bool:
        """Whether the object (`Kind/namespace/name`) is among these."""
        kind, _, key = label.partition("/")
        tables: dict[str, Mapping[str, object]] = {
            "Node": self.nodes,
            "Pod": self.pods,
            "Namespace": self.namespaces,
            "Service": self.services,
            "PodDisruptionBudget": self.budgets,
        }
        return label in self.others or key in tables.get(kind, {})

    def labelled(self, error: BadObjectError) -> BadObjectError:
        """A fault found in an object (`Kind namespace/name`) later on, which is named as the reader names it."""
        label = error.object.replace(" ", "/", 1)
        return BadObjectError(error.message, object_=label, field=error.field, file=error.file)

    def within(self, error: BadObjectError) -> BadObjectError:
        """The same with its file."""
        named = self.labelled(error)
        file = named.file or self.origins.get(named.object, self.first_file)
        return BadObjectError(named.message, object_=named.object, field=named.field, file=file)
