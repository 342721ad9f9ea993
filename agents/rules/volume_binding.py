"""VolumeBinding: bound volumes are within the node's reach, unbound ones can be found or made there.

Judged where the input holds claims. Storage capacity (CSIStorageCapacity) is not read, and a volume that is to be made
is always held to be made. A placed pod takes what was found for it (`agents/rules/provisioning.py`).
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.compiled.volumes.claims import (
    Claimed,
    Volumes,
    node_terms,
    not_found,
    not_owned,
    storage_class_of,
)
from underhost.agents.rules.provisioning import Finder, reach
from underhost.agents.rules.rule import UNRESOLVABLE, CodeArray, Prepared, Refusal, of_labels
from underhost.agents.site.requests import Request
from underhost.agents.site.terms import node_requirements
from underhost.schemas.documents import Because
from underhost.schemas.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim

NAME = "VolumeBinding"
WEIGHT = 0
REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
REASON_NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_REASONS = (REASON_NODE_CONFLICT, REASON_BIND_CONFLICT, REASON_NO_VOLUME)  # by bit of the code
_NODE_CONFLICT, _BIND_CONFLICT, _NO_VOLUME = 1, 2, 4


class _Refused(Prepared):
    """Found before any node is looked at."""

    static = whole = True

    def __init__(self, size: int, reason: str) -> None:
        self._size, self.refusals = size, (Refusal(UNRESOLVABLE, (reason,)),)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return np.ones(self._size, np.int8)[nodes]


class _Bound(Prepared):
    """Only bound volumes: what their node affinity says never changes."""

    static = True
    refusals = tuple(
        Refusal(UNRESOLVABLE, tuple(reason for bit, reason in enumerate(_REASONS) if code >> bit & 1))
        for code in range(1, 1 << len(_REASONS))
    )

    def __init__(self, state: State, codes: CodeArray, volumes: list[PersistentVolume]) -> None:
        self._state, self._codes, self._volumes = state, codes, volumes

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """What the node lacks of the affinity of bound volumes."""
        for volume in self._volumes:
            reached, labels = reach(self._state, volume), self._state.model.nodes.labels[node]
            if reached is not None and not reached[node]:
                for parsed in map(node_requirements, node_terms(volume) or ()):
                    yield from () if isinstance(parsed, str) else of_labels(parsed[0], labels)


class _Waiting(_Bound):
    """Also claims whose volume is still to be found or made."""

    static = False

    def __init__(self, state: State, codes: CodeArray, volumes: list[PersistentVolume], finder: Finder) -> None:
        super().__init__(state, codes, volumes)
        self._finder = finder

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        codes: CodeArray = self._codes + (self._finder.refused() * np.int8(_BIND_CONFLICT))
        return codes[nodes]

    def reserve(self, node: int) -> None:
        self._finder.reserve(node)


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without claims."""
    volumes = state.model.volumes
    if not cls.disks or volumes is None:
        return None
    size = len(state.model.nodes)
    claims: list[PersistentVolumeClaim] = []
    for one in volumes.of(cls):
        reason = _unusable(cls, one)
        if reason:
            return _Refused(size, reason)
        assert one.claim is not None
        claims.append(one.claim)
    if not claims:
        return None
    bound = [claim for claim in claims if _is_bound(claim)]
    waiting = [claim for claim in claims if not _is_bound(claim)]
    if not all(_waits(volumes, claim) for claim in waiting):
        return _Refused(size, REASON_IMMEDIATE)
    codes = _bound_codes(state, volumes, bound)
    behind = [volume for claim in bound if (volume := volumes.volumes.get(claim.spec.volume_name)) is not None]
    if not waiting:
        return _Bound(state, codes, behind)
    return _Waiting(state, codes, behind, Finder(state, volumes, waiting))


def _unusable(cls: PodClass, one: Claimed) -> str:
    """Why upstream gives up on a claim at once, "" if it does not."""
    if one.claim is None and one.ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{one.name}"'
    if one.claim is None:
        return not_found(one.name)
    if one.claim.status.phase == "Lost":
        volume = one.claim.spec.volume_name
        return f'persistentvolumeclaim "{one.name}" bound to non-existent persistentvolume "{volume}"'
    if one.claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{one.name}" is being deleted'
    return "" if one.owned else not_owned(cls, one)


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    notes = claim.metadata.annotations
    return bool(claim.spec.volume_name) and notes is not None and notes.bind_completed is not None


def _waits(volumes: Volumes, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim may be bound by whoever uses it first; one that names a volume may not."""
    storage_class = volumes.storage_classes.get(storage_class_of(claim))
    waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return waits and not claim.spec.volume_name


def _bound_codes(state: State, volumes: Volumes, claims: list[PersistentVolumeClaim]) -> CodeArray:
    """int8[N]: per node the first claim, in order, that speaks against it."""
    codes: CodeArray = np.zeros(len(state.model.nodes), np.int8)
    for claim in claims:
        volume = volumes.volumes.get(claim.spec.volume_name)
        if volume is None:
            codes[codes == 0] = _NO_VOLUME
            break
        reached = reach(state, volume)
        if reached is not None:
            codes[(codes == 0) & ~reached] = _NODE_CONFLICT
    return codes
