"""The objects that the volume rules read: claims, volumes, storage classes, and what nodes may attach.

Only from dumps: no topic carries them. As in `kubernetes.py`, parts that mean something only to a rule stay raw JSON.
"""

from msgspec import Raw, field

from underhost.schemas.kubernetes import EMPTY_OBJECT, ApiObject, Metadata

NULL = Raw(b"null")
IMMEDIATE, WAIT_FOR_FIRST_CONSUMER = "Immediate", "WaitForFirstConsumer"


class ClaimSpec(ApiObject, frozen=True):
    """PersistentVolumeClaim spec. `resources` is raw {requests: {storage}}, `selector` a raw LabelSelector."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    resources: Raw = EMPTY_OBJECT
    selector: Raw = NULL


class Phase(ApiObject, frozen=True):
    """Status of a claim (Pending, Bound, Lost) or of a volume (Available, Bound, Released, ...)."""

    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True):
    """v1 PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: Phase = Phase()


class ClaimReference(ApiObject, frozen=True):
    """spec.claimRef of a volume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(ApiObject, frozen=True):
    """spec.csi."""

    driver: str = ""
    volume_handle: str = ""


class InTreeSource(ApiObject, frozen=True):
    """A volume of one of the in-tree kinds that upstream counts as their CSI drivers' volumes."""

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    disk_uri: str = field(default="", name="diskURI")


class VolumeSpec(ApiObject, frozen=True):
    """PersistentVolume spec. `capacity` is raw {storage}, `node_affinity` raw {required: {nodeSelectorTerms}}."""

    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    capacity: Raw = EMPTY_OBJECT
    claim_ref: ClaimReference | None = None
    node_affinity: Raw = NULL
    csi: CsiSource | None = None
    gce_persistent_disk: InTreeSource | None = None
    aws_elastic_block_store: InTreeSource | None = None
    azure_disk: InTreeSource | None = None
    cinder: InTreeSource | None = None
    portworx_volume: InTreeSource | None = None


class PersistentVolume(ApiObject, frozen=True):
    """v1 PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()
    status: Phase = Phase()


class TopologyRequirement(ApiObject, frozen=True):
    """allowedTopologies[].matchLabelExpressions[]."""

    key: str
    values: list[str] | None = None


class TopologyTerm(ApiObject, frozen=True):
    """allowedTopologies[]."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(ApiObject, frozen=True):
    """storage.k8s.io StorageClass; where it does not say, the API server binds immediately."""

    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class DriverLimit(ApiObject, frozen=True):
    """spec.drivers[].allocatable of a CSINode."""

    count: int | None = None


class NodeDriver(ApiObject, frozen=True):
    """spec.drivers[] of a CSINode."""

    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(ApiObject, frozen=True):
    """CSINode spec."""

    drivers: list[NodeDriver] | None = None


class CsiNode(ApiObject, frozen=True):
    """storage.k8s.io CSINode: named as its node."""

    metadata: Metadata
    spec: CsiNodeSpec = CsiNodeSpec()


class AttachmentSource(ApiObject, frozen=True):
    """spec.source of a VolumeAttachment."""

    persistent_volume_name: str | None = None


class AttachmentSpec(ApiObject, frozen=True):
    """VolumeAttachment spec."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(ApiObject, frozen=True):
    """storage.k8s.io VolumeAttachment."""

    metadata: Metadata
    spec: AttachmentSpec = AttachmentSpec()
