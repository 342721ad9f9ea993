"""One object that the volume rules read: its parts in, the typed object out."""

from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw

from underhost.schemas import storage
from underhost.schemas.kubernetes import Metadata
from underhost.streams.files.faults import begins, fault_of

TABLES = {
    "PersistentVolumeClaim": "claims",
    "PersistentVolume": "volumes",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "VolumeAttachment": "attachments",
}
StorageObject = (
    storage.PersistentVolumeClaim
    | storage.PersistentVolume
    | storage.StorageClass
    | storage.CsiNode
    | storage.VolumeAttachment
)
T = TypeVar("T")


class Parts(Protocol):
    """An object of a file, with its parts left raw."""

    spec: Raw
    status: Raw
    provisioner: Raw
    volume_binding_mode: Raw
    allowed_topologies: Raw


def storage_object(kind: str, metadata: Metadata, item: Parts) -> StorageObject:
    """The object. Raises BadObjectError with the field only."""
    if kind == "PersistentVolumeClaim":
        claim = _part(item.spec, storage.ClaimSpec, "spec") or storage.ClaimSpec()
        begins(claim.selector, "{", "spec.selector")
        phase = _part(item.status, storage.Phase, "status") or storage.Phase()
        return storage.PersistentVolumeClaim(metadata, claim, phase)
    if kind == "PersistentVolume":
        volume = _part(item.spec, storage.VolumeSpec, "spec") or storage.VolumeSpec()
        begins(volume.node_affinity, "{", "spec.nodeAffinity")
        phase = _part(item.status, storage.Phase, "status") or storage.Phase()
        return storage.PersistentVolume(metadata, volume, phase)
    if kind == "StorageClass":
        return storage.StorageClass(
            metadata,
            _part(item.provisioner, str, "provisioner") or "",
            _part(item.volume_binding_mode, str, "volumeBindingMode") or storage.IMMEDIATE,
            _part(item.allowed_topologies, tuple[storage.TopologyTerm, ...], "allowedTopologies") or (),
        )
    if kind == "CSINode":
        return storage.CsiNode(metadata, _part(item.spec, storage.CsiNodeSpec, "spec") or storage.CsiNodeSpec())
    attached = _part(item.spec, storage.AttachmentSpec, "spec") or storage.AttachmentSpec()
    return storage.VolumeAttachment(metadata, attached)


def _part(raw: Raw, type_: type[T], name: str) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type_ | None)
    except msgspec.ValidationError as error:
        raise fault_of(error, name) from error
