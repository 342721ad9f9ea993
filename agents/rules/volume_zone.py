"""VolumeZone: a bound volume's zone and region labels are those of the node, where the node has any.

Judged where the input holds claims. A volume that is not bound yet passes, if its class waits for the first consumer.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.compiled.volumes.claims import Volumes, labels_of, not_found, storage_class_of
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import IN, written
from underhost.schemas.documents import Because
from underhost.schemas.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim

NAME = "VolumeZone"
WEIGHT = 0
REASON_CONFLICT = "node(s) had no available volume zone"
REASON_NO_NAME = "PersistentVolume had no name"
REASON_NO_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_LABELS = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION, _ZONE: _ZONE, _REGION: _REGION}
_SEPARATOR = "__"
_Zones = tuple[str, frozenset[str]]  # a label's key, and the zones or regions that it allows


class _VolumeZone(Prepared):
    static = True

    def __init__(self, refused: BoolArray, reason: str, state: State, wanted: Sequence[_Zones] = ()) -> None:
        """`wanted`: the labels of the volumes; without any, the refusal is of another thing and of all nodes."""
        self._codes: CodeArray = refused.astype(np.int8)
        self._state, self._wanted = state, wanted
        self.whole, self.refusals = not wanted, (Refusal(UNRESOLVABLE, (reason,)),)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        labels = self._state.model.nodes.labels[node]
        for key, values in self._wanted:
            if _outside(self._state, key, values)[node]:
                yield Because(selector=written(((key, IN, tuple(sorted(values))),)), has=_zone_of(labels, key))


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without claims, or whose volumes are in no zone."""
    volumes = state.model.volumes
    if not cls.disks or volumes is None:
        return None
    refused = np.zeros(len(state.model.nodes), bool)
    wanted: list[_Zones] = []
    for one in volumes.of(cls):
        if one.ephemeral:
            continue  # upstream does not look at their claims
        found = not_found(one.name) if one.claim is None else _volume(volumes, one.claim)
        if isinstance(found, str):
            return _VolumeZone(~np.zeros(len(refused), bool), found, state)
        wanted += _topologies(found)
    for key, values in wanted:
        refused |= _outside(state, key, values)
    return _VolumeZone(refused, REASON_CONFLICT, state, wanted) if wanted else None


def _volume(volumes: Volumes, claim: PersistentVolumeClaim) -> PersistentVolume | str | None:
    """The bound volume, None where it may still be found, or why the claim has none."""
    name = claim.spec.volume_name
    if name:
        return volumes.volumes.get(name) or f'persistentvolume "{name}" not found'
    class_name = storage_class_of(claim)
    if not class_name:
        return REASON_NO_CLASS
    storage_class = volumes.storage_classes.get(class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else REASON_NO_NAME


def _topologies(volume: PersistentVolume | None) -> list[_Zones]:
    """The zones or regions that each label of the volume allows; a label with an empty zone says nothing."""
    if volume is None:
        return []
    labels: Mapping[str, str] = labels_of(volume)
    found = []
    for key in _LABELS:
        if key in labels:
            values = [value.strip() for value in labels[key].split(_SEPARATOR)]
            if all(values):
                found.append((key, frozenset(values)))
    return found


def _zone_of(labels: Mapping[str, str], key: str) -> str | None:
    return labels.get(key, labels.get(_LABELS[key]))


def _outside(state: State, key: str, values: frozenset[str]) -> BoolArray:
    """bool[N]: the nodes with some zone or region label, but none of these values."""

    def make() -> BoolArray:
        refused = [
            not labels.keys().isdisjoint(_LABELS) and _zone_of(labels, key) not in values
            for labels in state.model.nodes.labels
        ]
        return np.array(refused, bool)

    return state.memo.remember((NAME, key, values), Depends.NODES, make)
