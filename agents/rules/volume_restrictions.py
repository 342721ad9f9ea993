"""VolumeRestrictions, as far as it can be judged from pods alone: one disk is mounted by one pod of a node.

Inline GCE, iSCSI and RBD disks may be shared read-only; AWS disks never. Claims (ReadWriteOncePod) are not judged: they
need objects that the snapshot does not hold.
"""

import numpy as np

from underhost.agents.engine.classes import Disk, PodClass
from underhost.agents.engine.counters import Counter
from underhost.agents.engine.domains import Where
from underhost.agents.engine.requests import Request
from underhost.agents.engine.rule import UNSCHEDULABLE, CodeArray, Peers, Prepared, Refusal
from underhost.agents.engine.state import State

NAME = "VolumeRestrictions"
WEIGHT = 0
REASON_DISK_CONFLICT = "node(s) had no available disk"


class _VolumeRestrictions(Prepared):
    refusals = (Refusal(UNSCHEDULABLE, (REASON_DISK_CONFLICT,)),)

    def __init__(self, state: State, cls: PodClass, counter: Counter) -> None:
        self._state, self._cls, self._counter = state, cls.id, counter

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        if not self._counter.any():
            return None
        counts = self._counter.at(nodes)
        if out:
            counts = counts - self._counter.share(self._cls, nodes)
        return (counts > 0).astype(np.int8)

    def peers(self, node: int) -> list[Peers]:
        return [Peers("", "", self._state.running_in(self._counter, node), NAME)]


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without inline disks."""
    if not cls.disks:
        return None
    holders = state.memo.get(NAME)
    if holders is None:
        holders = state.memo[NAME] = [one for one in state.model.classes if one.disks]
    rivals = [one.id for one in holders if any(_conflict(mine, theirs) for mine in cls.disks for theirs in one.disks)]
    weights = state.weights(dict.fromkeys(rivals, 1))
    return _VolumeRestrictions(state, cls, state.counter(state.model.topology.each_node, weights))


def _conflict(mine: Disk, theirs: Disk) -> bool:
    """The same disk, not read-only on both sides."""
    kind, identity, read_only = mine
    other_kind, other_identity, other_read_only = theirs
    if kind != other_kind or (read_only and other_read_only):
        return False
    if kind == "rbd":  # pool and image are equal, and some monitor is shared
        return identity[:2] == other_identity[:2] and not set(identity[2:]).isdisjoint(other_identity[2:])
    return identity == other_identity
