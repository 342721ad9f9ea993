"""The claims of a snapshot and what is behind them: volumes, storage classes, attach limits.

In: a snapshot with claims. Out: `Volumes`, kept in the model, which the volume rules ask for the claims of a class of
pods. Where the snapshot holds no claim at all there is none, and no rule judges volumes of claims.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from underhost.agents.compiled.classes import PodClass
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault, decode, faults_of
from underhost.agents.site.requests import Amount, exact
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.storage import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment

CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"  # kinds of `classes.Disk`: (kind, (name, …), False)
_QUANTITIES = msgspec.json.Decoder(dict[str, str | int | float] | None)
_RESOURCES = msgspec.json.Decoder(dict[str, dict[str, str | int | float] | None] | None)
_SELECTOR = msgspec.json.Decoder(terms.LabelSelector | None)


class _Affinity(msgspec.Struct, frozen=True):
    required: terms.NodeSelector | None = None


_AFFINITY = msgspec.json.Decoder(_Affinity | None)


class Claimed(NamedTuple):
    """A volume of a pod that is a claim's. `claim` is None where it is missing; `owned` is False for an ephemeral
    volume's claim that was not made for the pod."""

    name: str
    claim: PersistentVolumeClaim | None
    ephemeral: bool
    owned: bool
    pod: str


@dataclass(frozen=True)
class Volumes:
    """The mappings of the snapshot, by the same keys."""

    claims: Mapping[str, PersistentVolumeClaim]
    volumes: Mapping[str, PersistentVolume]
    storage_classes: Mapping[str, StorageClass]
    csi_nodes: Mapping[str, CsiNode]
    attachments: Mapping[str, VolumeAttachment]

    def of(self, cls: PodClass) -> Iterator[Claimed]:
        """The claims of a class's pods, in the order of the pod's volumes."""
        for kind, identity, _ in cls.disks:
            if kind in (CLAIM, EPHEMERAL):
                claim = self.claims.get(f"{cls.namespace}/{identity[0]}")
                owned, pod = True, ""
                if kind == EPHEMERAL:
                    pod = identity[1]
                    owned = claim is not None and _controller(claim) == identity[2]
                yield Claimed(identity[0], claim, kind == EPHEMERAL, owned, pod)


def volumes_of(snapshot: Snapshot) -> Volumes | None:
    """The volumes of a snapshot, None where nothing can be said of them."""
    if not snapshot.claims:
        return None
    return Volumes(
        snapshot.claims, snapshot.volumes, snapshot.storage_classes, snapshot.csi_nodes, snapshot.attachments
    )


def not_found(name: str) -> str:
    """Upstream's words for a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def not_owned(cls: PodClass, claimed: Claimed) -> str:
    """Upstream's words for an ephemeral volume whose claim is another's."""
    namespace = cls.namespace
    return f"PVC {namespace}/{claimed.name} was not created for pod {namespace}/{claimed.pod} (pod is not owner)"


def storage_class_of(claim: PersistentVolumeClaim) -> str:
    """The name of the claim's class, "" for none; the old annotation counts first."""
    notes = claim.metadata.annotations
    if notes is not None and notes.storage_class is not None:
        return notes.storage_class
    return claim.spec.storage_class_name or ""


def volume_class_of(volume: PersistentVolume) -> str:
    """The name of the volume's class."""
    notes = volume.metadata.annotations
    if notes is not None and notes.storage_class is not None:
        return notes.storage_class
    return volume.spec.storage_class_name


def requested(claim: PersistentVolumeClaim) -> Amount:
    """The storage that a claim asks for, in thousandths of a byte. Raises BadObjectError."""
    field = "spec.resources.requests[storage]"
    with faults_of(f"PersistentVolumeClaim {key_of(claim)}"):
        resources = decode(bytes(claim.spec.resources), _RESOURCES, "spec.resources") or {}
        return _amount((resources.get("requests") or {}).get("storage", 0), field)


def capacity(volume: PersistentVolume) -> Amount:
    """The storage that a volume has, in thousandths of a byte. Raises BadObjectError."""
    with faults_of(f"PersistentVolume {volume.metadata.name}"):
        held = decode(bytes(volume.spec.capacity), _QUANTITIES, "spec.capacity") or {}
        return _amount(held.get("storage", 0), "spec.capacity[storage]")


def selector_of(claim: PersistentVolumeClaim) -> terms.LabelSelector | None:
    """Which volumes a claim selects by label; None for all. Raises BadObjectError."""
    with faults_of(f"PersistentVolumeClaim {key_of(claim)}"):
        found: terms.LabelSelector | None = decode(bytes(claim.spec.selector), _SELECTOR, "spec.selector")
    return found


def labels_of(volume: PersistentVolume) -> dict[str, str]:
    """The volume's labels. Raises BadObjectError."""
    with faults_of(f"PersistentVolume {volume.metadata.name}"):
        return terms.labels(bytes(volume.metadata.labels))


def node_terms(volume: PersistentVolume) -> list[terms.NodeSelectorTerm] | None:
    """The terms of the volume's node affinity, None where every node can reach it. Raises BadObjectError."""
    with faults_of(f"PersistentVolume {volume.metadata.name}"):
        affinity = decode(bytes(volume.spec.node_affinity), _AFFINITY, "spec.nodeAffinity")
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms or []


def key_of(claim: PersistentVolumeClaim) -> str:
    """`namespace/name`."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _amount(text: str | int | float, field: str) -> Amount:
    try:
        return exact(text)
    except ValueError as error:
        raise Fault(field, str(error)) from None


def _controller(claim: PersistentVolumeClaim) -> str:
    for owner in claim.metadata.owner_references or ():
        if owner.controller:
            return owner.uid
    return ""
