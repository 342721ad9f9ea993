"""Which CSI driver a volume is attached by, and by which handle: two pods with one handle on a node share it.

In: a volume, a claim, or a disk of a pod. Out: (driver, handle), or None for what is not counted. In-tree volumes count
as those of the drivers they were migrated to: upstream does so on nodes with a CSINode, and others have no limit.
"""

from typing import NamedTuple

from underhost.agents.compiled.classes import Disk
from underhost.agents.compiled.volumes.claims import Volumes, key_of, labels_of, storage_class_of
from underhost.schemas.storage import PersistentVolume, PersistentVolumeClaim

AWS, GCE, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER, PORTWORX = "cinder.csi.openstack.org", "pxd.portworx.com"
PROVISIONERS = {
    "kubernetes.io/aws-ebs": AWS,
    "kubernetes.io/gce-pd": GCE,
    "kubernetes.io/azure-disk": AZURE,
    "kubernetes.io/cinder": CINDER,
    "kubernetes.io/portworx-volume": PORTWORX,
}
NOT_COUNTED = frozenset(("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"))  # migrated, but for upstream off
_INLINE = {"awsElasticBlockStore": AWS, "gcePersistentDisk": GCE, "azureDisk": AZURE, "cinder": CINDER}
_INLINE["portworxVolume"] = PORTWORX
_UNSPECIFIED = "UNSPECIFIED"
_ZONE, _BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


class Attached(NamedTuple):
    """What a volume counts as, however it is written: in-tree or CSI, in the pod or behind a claim."""

    driver: str
    handle: str


def of_disk(disk: Disk) -> Attached | None:
    """An inline disk of a pod."""
    kind, identity, _ = disk
    driver = _INLINE.get(kind)
    if driver is None:
        return None
    if driver == GCE:
        return Attached(driver, f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{identity[0]}")
    return _named(driver, identity[0])


def of_claim(volumes: Volumes, claim: PersistentVolumeClaim) -> Attached | None:
    """The volume behind a claim; one that is still to be provisioned counts by its class."""
    volume = volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        source = volume.spec.csi
        if source is not None:
            known = source.driver and source.volume_handle
            return Attached(source.driver, source.volume_handle) if known else None
        return _in_tree(volume)
    storage_class = volumes.storage_classes.get(storage_class_of(claim))
    if storage_class is None:
        return None
    provisioner, handle = storage_class.provisioner, f"?-{key_of(claim)}"
    if provisioner in NOT_COUNTED or not provisioner:
        return None
    return Attached(PROVISIONERS.get(provisioner, provisioner), handle)


def _in_tree(volume: PersistentVolume) -> Attached | None:
    spec = volume.spec
    if spec.gce_persistent_disk is not None:
        return _gce(volume, spec.gce_persistent_disk.pd_name)
    if spec.aws_elastic_block_store is not None:
        return _named(AWS, spec.aws_elastic_block_store.volume_id)
    if spec.azure_disk is not None:
        return _named(AZURE, spec.azure_disk.disk_uri)
    if spec.cinder is not None:
        return _named(CINDER, spec.cinder.volume_id)
    if spec.portworx_volume is not None:
        return _named(PORTWORX, spec.portworx_volume.volume_id)
    return None


def _named(driver: str, name: str) -> Attached | None:
    handle = name.rpartition("/")[2] if driver == AWS and name.startswith("aws://") else name
    return Attached(driver, handle) if handle else None


def _gce(volume: PersistentVolume, name: str) -> Attached:
    """A disk of one zone, or of the region where its label names several zones."""
    labels = labels_of(volume)
    zones = (labels.get(_BETA_ZONE) or labels.get(_ZONE) or _UNSPECIFIED).split("__")
    place = f"zones/{zones[0]}" if len(zones) == 1 else f"regions/{zones[0].rpartition('-')[0]}"
    return Attached(GCE, f"projects/{_UNSPECIFIED}/{place}/disks/{name}")
