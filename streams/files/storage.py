"""The objects that the volume rules read, one function for each kind: an object's parts in, the typed object out.

Every function raises BadObjectError with the field only.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw

from underhost.schemas import storage
from underhost.schemas.kubernetes import Metadata
from underhost.streams.files.faults import begins, fault_of
from underhost.streams.files.objects import Objects

T = TypeVar("T")


class Parts(Protocol):
    """An object of a file, with its parts left raw."""

    spec: Raw
    status: Raw
    provisioner: Raw
    volume_binding_mode: Raw
    allowed_topologies: Raw


def _claim(metadata: Metadata, item: Parts) -> storage.PersistentVolumeClaim:
    spec = _part(item.spec, storage.ClaimSpec, "spec") or storage.ClaimSpec()
    begins(spec.selector, "{", "spec.selector")
    return storage.PersistentVolumeClaim(metadata, spec, _phase(item))


def _volume(metadata: Metadata, item: Parts) -> storage.PersistentVolume:
    spec = _part(item.spec, storage.VolumeSpec, "spec") or storage.VolumeSpec()
    begins(spec.node_affinity, "{", "spec.nodeAffinity")
    return storage.PersistentVolume(metadata, spec, _phase(item))


def _storage_class(metadata: Metadata, item: Parts) -> storage.StorageClass:
    return storage.StorageClass(
        metadata,
        _part(item.provisioner, str, "provisioner") or "",
        _part(item.volume_binding_mode, str, "volumeBindingMode") or storage.IMMEDIATE,
        _part(item.allowed_topologies, tuple[storage.TopologyTerm, ...], "allowedTopologies") or (),
    )


def _csi_node(metadata: Metadata, item: Parts) -> storage.CsiNode:
    return storage.CsiNode(metadata, _part(item.spec, storage.CsiNodeSpec, "spec") or storage.CsiNodeSpec())


def _attachment(metadata: Metadata, item: Parts) -> storage.VolumeAttachment:
    spec = _part(item.spec, storage.AttachmentSpec, "spec") or storage.AttachmentSpec()
    return storage.VolumeAttachment(metadata, spec)


def _phase(item: Parts) -> storage.Phase:
    return _part(item.status, storage.Phase, "status") or storage.Phase()


def _part(raw: Raw, type_: type[T], name: str) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type_ | None)
    except msgspec.ValidationError as error:
        raise fault_of(error, name) from error


class StorageKind(NamedTuple):
    """How a kind is read, and where its objects are kept."""

    read: Callable[[Metadata, Parts], Any]
    table: Callable[[Objects], dict[str, Any]]


STORAGE_KINDS: Mapping[str, StorageKind] = {
    "PersistentVolumeClaim": StorageKind(_claim, lambda objects: objects.claims),
    "PersistentVolume": StorageKind(_volume, lambda objects: objects.volumes),
    "StorageClass": StorageKind(_storage_class, lambda objects: objects.storage_classes),
    "CSINode": StorageKind(_csi_node, lambda objects: objects.csi_nodes),
    "VolumeAttachment": StorageKind(_attachment, lambda objects: objects.attachments),
}
