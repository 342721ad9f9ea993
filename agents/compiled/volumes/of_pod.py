"""The volumes of a pod as far as the volume rules read them: inline disks, images, claims.

In: `spec.volumes` as raw JSON. Out: disks in the form that classes are told apart by.
"""

import re

from underhost.agents.compiled.classes import Disk
from underhost.agents.compiled.volumes.claims import CLAIM, EPHEMERAL
from underhost.agents.site.fault import decode, faults_of
from underhost.schemas.kubernetes import Pod
from underhost.schemas.pods.volumes import VOLUMES

_READ_VOLUMES = re.compile(rb'"(gcePersistentDisk|awsElasticBlockStore|iscsi|rbd|image)"\s*:')
_READ_CLAIMS = re.compile(rb'"(persistentVolumeClaim|ephemeral|azureDisk|cinder|portworxVolume)"\s*:')


def is_plain(raw: bytes, claims: bool) -> bool:
    """Whether these volumes make no difference to a pod's class; with `claims`, claims make one."""
    return _READ_VOLUMES.search(raw) is None and not (claims and _READ_CLAIMS.search(raw) is not None)


def claims_of(pod: Pod, key: str, raw: bytes) -> tuple[Disk, ...]:
    """The claims of a pod and the disks that only attach limits count, in the order of its volumes."""
    if _READ_CLAIMS.search(raw) is None:
        return ()
    with faults_of(f"Pod {key}"):
        volumes = decode(raw, VOLUMES, "spec.volumes") or []
    found: list[Disk] = []
    name, uid = pod.metadata.name, pod.metadata.uid or f"uid-{key}"
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            found.append((CLAIM, (volume.persistent_volume_claim.claim_name,), False))
        elif volume.ephemeral is not None:
            found.append((EPHEMERAL, (f"{name}-{volume.name}", name, uid), False))
        elif volume.azure_disk is not None:
            found.append(("azureDisk", (volume.azure_disk.disk_uri,), False))
        elif volume.cinder is not None:
            found.append(("cinder", (volume.cinder.volume_id,), False))
        elif volume.portworx_volume is not None:
            found.append(("portworxVolume", (volume.portworx_volume.volume_id,), False))
    return tuple(found)


def inline_volumes(key: str, raw: bytes) -> tuple[tuple[Disk, ...], tuple[str, ...]]:
    """Inline disks and image volumes. Most pods have neither: their volumes are not parsed."""
    if _READ_VOLUMES.search(raw) is None:
        return (), ()
    with faults_of(f"Pod {key}"):
        volumes = decode(raw, VOLUMES, "spec.volumes") or []
    disks: list[Disk] = []
    images: list[str] = []
    for volume in volumes:
        if volume.gce_persistent_disk is not None:
            disk = volume.gce_persistent_disk
            disks.append(("gcePersistentDisk", (disk.pd_name,), disk.read_only))
        if volume.aws_elastic_block_store is not None:
            disks.append(("awsElasticBlockStore", (volume.aws_elastic_block_store.volume_id,), False))
        if volume.iscsi is not None:
            disks.append(("iscsi", (volume.iscsi.iqn,), volume.iscsi.read_only))
        if volume.rbd is not None:
            disk = volume.rbd
            disks.append(("rbd", (disk.pool, disk.image, *sorted(disk.monitors)), disk.read_only))
        if volume.image is not None:
            images.append(volume.image.reference)
    return tuple(disks), tuple(images)
