"""VolumeRestrictions: one disk is mounted by one pod of a node, a ReadWriteOncePod claim by one pod of the cluster.

Inline GCE, iSCSI and RBD disks may be shared read-only; AWS disks never. Claims are judged where the input holds any.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import Disk, PodClass
from underhost.agents.compiled.counters import Counter
from underhost.agents.compiled.domains import Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.compiled.volumes.claims import CLAIM, Volumes, not_found
from underhost.agents.rules.rule import NODE, UNRESOLVABLE, UNSCHEDULABLE, CodeArray, Prepared, Refusal, of_pods
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "VolumeRestrictions"
WEIGHT = 0
REASON_DISK_CONFLICT = "node(s) had no available disk"
REASON_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_ONE_POD = "ReadWriteOncePod"
_DISK_CONFLICT, _IN_USE = 1, 2
_DISKS = frozenset(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))


class _Missing(Prepared):
    static = whole = True

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self.refusals = (Refusal(UNRESOLVABLE, (not_found(name),)),)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return np.ones(self._size, np.int8)[nodes]


class _VolumeRestrictions(Prepared):
    """`disks` counts the pods with a disk in conflict, per node; `users` those with a claim for one pod, over all."""

    refusals = (Refusal(UNSCHEDULABLE, (REASON_DISK_CONFLICT,)), Refusal(UNSCHEDULABLE, (REASON_IN_USE,)))

    def __init__(self, state: State, cls: PodClass, disks: Counter | None, users: Counter | None) -> None:
        self._state, self._cls, self._disks, self._users = state, cls.id, disks, users

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        codes: CodeArray | None = None
        if self._users is not None and self._users.any():
            used = np.full(len(self._state.model.nodes), self._users.total(), np.int64)[nodes]
            if out:
                used = used - self._users.share(self._cls, nodes)
            codes = ((used > 0) * _IN_USE).astype(np.int8)
        if self._disks is not None and self._disks.any():
            counts = self._disks.at(nodes)
            if out:
                counts = counts - self._disks.share(self._cls, nodes)
            codes = np.zeros(len(counts), np.int8) if codes is None else codes
            codes[counts > 0] = _DISK_CONFLICT
        return codes

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """The pods that hold the disk on the node, or the claim anywhere."""
        names = there.model.nodes.names
        for counter in (self._disks,) if self._disks is not None else ():
            yield from of_pods(there.counted(counter, node), NODE, names[node])
        for one in there.anywhere(self._users.weight) if self._users is not None else ():
            yield from of_pods([one], NODE, names[one.node])

    def skips(self) -> bool:
        return self._disks is None and not (self._users is not None and self._users.any())


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without inline disks and without claims for one pod."""
    if not cls.disks:
        return None
    volumes = state.model.volumes
    claims: list[str] = []
    if volumes is not None:
        for one in volumes.of(cls):
            if one.ephemeral:
                continue
            if one.claim is None:
                return _Missing(len(state.model.nodes), one.name)
            if _ONE_POD in (one.claim.spec.access_modes or ()):
                claims.append(one.name)
    inline = [disk for disk in cls.disks if disk[0] in _DISKS]
    if not inline and not claims:
        return None
    disks = users = None
    each_node = state.model.topology.each_node
    if inline:
        rivals = [
            one.id for one in _holders(state) if any(_conflict(mine, theirs) for mine in inline for theirs in one.disks)
        ]
        disks = state.counter(each_node, state.weights(dict.fromkeys(rivals, 1)))
    if claims and volumes is not None:
        users = state.counter(each_node, state.weights(_users(state, volumes, cls.namespace, claims)))
    return _VolumeRestrictions(state, cls, disks, users)


def _holders(state: State) -> list[PodClass]:
    """The classes with disks or claims."""
    return state.memo.remember(NAME, Depends.CLASSES, lambda: [one for one in state.model.classes if one.disks])


def _users(state: State, volumes: Volumes, namespace: str, claims: list[str]) -> dict[int, int]:
    """The classes whose pods use one of the claims."""
    by_claim = state.memo.remember((NAME, "claims"), Depends.CLASSES, lambda: _by_claim(_holders(state)))
    return {cls: 1 for name in claims for cls in by_claim.get(f"{namespace}/{name}", ())}


def _by_claim(holders: list[PodClass]) -> dict[str, list[int]]:
    """The classes by the claims that their pods use."""
    found: dict[str, list[int]] = {}
    for one in holders:
        for name in {held[1][0] for held in one.disks if held[0] == CLAIM}:
            found.setdefault(f"{one.namespace}/{name}", []).append(one.id)
    return found


def _conflict(mine: Disk, theirs: Disk) -> bool:
    """The same disk, not read-only on both sides."""
    kind, identity, read_only = mine
    other_kind, other_identity, other_read_only = theirs
    if kind != other_kind or (read_only and other_read_only):
        return False
    if kind == "rbd":  # pool and image are equal, and some monitor is shared
        return identity[:2] == other_identity[:2] and not set(identity[2:]).isdisjoint(other_identity[2:])
    return identity == other_identity
