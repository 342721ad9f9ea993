"""The volumes of a pod: only the fields that the rules read, so that nothing else of them leaves the API.

What a driver is given inline (`csi.volumeAttributes`, options of a flexVolume) may be a password, and more people read
topics and snapshots than pods.
"""

from typing import Any

import msgspec
from msgspec import Raw, field

from underhost.schemas.kubernetes import EMPTY_LIST, ApiObject, Pod


class InlineDisk(ApiObject, frozen=True):
    """A disk that a pod names itself, of any of the in-tree kinds."""

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    disk_uri: str = field(default="", name="diskURI")
    iqn: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class ImageVolume(ApiObject, frozen=True):
    """volumes[].image."""

    reference: str = ""


class ClaimVolume(ApiObject, frozen=True):
    """volumes[].persistentVolumeClaim."""

    claim_name: str = ""


class Present(ApiObject, frozen=True):
    """A volume of which only counts that it is there."""


class Volume(ApiObject, frozen=True):
    """spec.volumes[]; the name counts for an ephemeral one, whose claim is named by it."""

    name: str = ""
    gce_persistent_disk: InlineDisk | None = None
    aws_elastic_block_store: InlineDisk | None = None
    iscsi: InlineDisk | None = None
    rbd: InlineDisk | None = None
    image: ImageVolume | None = None
    azure_disk: InlineDisk | None = None
    cinder: InlineDisk | None = None
    portworx_volume: InlineDisk | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: Present | None = None
    empty_dir: Present | None = None


VOLUMES = msgspec.json.Decoder(list[Volume] | None)
_NONE = Volume()
_encoder = msgspec.json.Encoder()


def trimmed(pod: Pod) -> Pod:
    """The pod with what is read of its volumes. Raises msgspec.DecodeError where they are no volumes."""
    raw = pod.spec.volumes
    if raw is EMPTY_LIST:
        return pod
    kept: list[Volume] = []
    for volume in VOLUMES.decode(raw) or []:
        nameless = msgspec.structs.replace(volume, name="")
        if nameless != _NONE:
            kept.append(volume if volume.ephemeral is not None else nameless)
    fields: dict[str, Any] = {"volumes": Raw(_encoder.encode(kept)) if kept else EMPTY_LIST}
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
