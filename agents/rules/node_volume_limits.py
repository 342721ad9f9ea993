"""NodeVolumeLimits: a node attaches no more volumes of a CSI driver than its CSINode says.

Volumes are counted once per node, however many pods use them; attachments without a pod count, too. Judged where the
input holds claims. What a volume counts as is in `volumes/csi.py`.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.compiled.volumes import csi
from underhost.agents.compiled.volumes.claims import CLAIM, EPHEMERAL, Volumes, not_found, not_owned
from underhost.agents.compiled.volumes.csi import Attached
from underhost.agents.rules.rule import UNRESOLVABLE, UNSCHEDULABLE, CodeArray, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "NodeVolumeLimits"
WEIGHT = 0
REASON_EXCEEDED = "node(s) exceed max volume count"
ERROR = "Error"
_NO_LIMIT = np.iinfo(np.int64).max


class _Unusable(Prepared):
    """A claim is missing or another's: the same on every node."""

    static = True

    def __init__(self, size: int, refusal: Refusal) -> None:
        self._size, self.refusals = size, (refusal,)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return np.ones(self._size, np.int8)[nodes]


class _NodeVolumeLimits(Prepared):
    refusals = (Refusal(UNSCHEDULABLE, (REASON_EXCEEDED,)),)

    def __init__(self, size: int, load: "_Load", wanted: frozenset[Attached]) -> None:
        self._size, self._load = size, load
        self._by_driver: dict[str, list[Attached]] = {}
        for one in sorted(wanted):
            if one.driver in load.limits:
                self._by_driver.setdefault(one.driver, []).append(one)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        refused = np.zeros(self._size, bool)
        for driver in self._by_driver:
            refused |= self._need(driver, out).refused
        return refused[nodes].astype(np.int8)

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """By the name that upstream has for a driver's limit as a resource."""
        for driver in self._by_driver:
            need, limit = self._need(driver, False), int(self._load.limits[driver][node])
            if need.refused[node]:
                asked, free = int(need.new[node]), limit - int(need.held[node])
                name = f"attachable-volumes-csi-{driver}"
                yield Because(resource=name, asked=str(asked), free=str(free), allocatable=str(limit))

    def _need(self, driver: str, out: bool) -> "_Need":
        load, wanted = self._load, self._by_driver[driver]
        new: IntArray = np.full(self._size, len(wanted), np.int64)
        count = load.counted[driver].copy()
        for one in wanted:
            for node, pods in load.users(one).items():
                if not (out and pods == 1):
                    new[node] -= 1
                elif not load.has_attachment(one, node):
                    count[node] -= 1  # nobody else holds it
        return _Need(new, count, (new > 0) & (count > load.limits[driver] - new))


class _Need(NamedTuple):
    """Of one driver: int64[N] volumes that a pod would attach, int64[N] held by others, bool[N] too many together."""

    new: IntArray
    held: IntArray
    refused: BoolArray


class _Load:
    """The volumes that pods and attachments hold on each node, kept while pods come and go.

    Attributes:
        limits: int64[N] by driver. counted: int64[N] by driver, volumes attached.
    """

    def __init__(self, state: State, volumes: Volumes) -> None:
        nodes, size = state.model.nodes, len(state.model.nodes)
        self.limits: dict[str, IntArray] = {}
        for name, csi_node in volumes.csi_nodes.items():
            at = nodes.index.get(name)
            if at is None:
                continue
            for driver in csi_node.spec.drivers or ():
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits = self.limits.setdefault(driver.name, np.full(size, _NO_LIMIT))
                    limits[at] = driver.allocatable.count
        self.counted: dict[str, IntArray] = {driver: np.zeros(size, np.int64) for driver in self.limits}
        self._attachments: set[tuple[str, str, int]] = set()
        self._users: dict[Attached, dict[int, int]] = {}
        self._of: dict[int, frozenset[Attached]] = {}
        self._attach(volumes, nodes.index)
        for cls in state.model.classes:
            held = frozenset(one for one in _attached(volumes, cls) if one.driver in self.limits) if cls.disks else None
            if held:
                self._of[cls.id] = held
        state.follow(self, self._of)

    def _attach(self, volumes: Volumes, index: dict[str, int]) -> None:
        for attachment in volumes.attachments.values():
            spec = attachment.spec
            at, volume = index.get(spec.node_name), volumes.volumes.get(spec.source.persistent_volume_name or "")
            if at is None or volume is None or volume.spec.csi is None or spec.attacher not in self.limits:
                continue
            held = (spec.attacher, volume.spec.csi.volume_handle, at)
            if held not in self._attachments:
                self._attachments.add(held)
                self.counted[spec.attacher][at] += 1

    def users(self, volume: Attached) -> dict[int, int]:
        """By node, how many pods hold the volume."""
        return self._users.get(volume, {})

    def has_attachment(self, volume: Attached, node: int) -> bool:
        """Whether it stays attached without its pods."""
        return (volume.driver, volume.handle, node) in self._attachments

    def add(self, cls: int, node: int, sign: int = 1) -> None:
        """A pod of the class comes to the node, or goes."""
        for one in self._of[cls]:
            users = self._users.setdefault(one, {})
            before = users.get(node, 0)
            users[node] = before + sign
            if not users[node]:
                del users[node]
            if bool(before) != bool(before + sign) and not self.has_attachment(one, node):
                self.counted[one.driver][node] += sign


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without volumes that are attached."""
    volumes = state.model.volumes
    if not cls.disks or volumes is None:
        return None
    size = len(state.model.nodes)
    for one in volumes.of(cls):
        if one.claim is None:
            return _Unusable(
                size, Refusal(UNRESOLVABLE, (f"looking up PVC {cls.namespace}/{one.name}: {not_found(one.name)}",))
            )
        if not one.owned:
            return _Unusable(size, Refusal(ERROR, (not_owned(cls, one),)))
    load = state.memo.remember(NAME, Depends.NODES | Depends.CLASSES, lambda: _Load(state, volumes))
    wanted = frozenset(one for one in _attached(volumes, cls) if one.driver in load.limits)
    return _NodeVolumeLimits(size, load, wanted) if wanted else None


def _attached(volumes: Volumes, cls: PodClass) -> Iterable[Attached]:
    """What a class's pods attach; claims that are missing count nothing."""
    for one in volumes.of(cls):
        found = None if one.claim is None else csi.of_claim(volumes, one.claim)
        if found is not None:
            yield found
    for disk in cls.disks:
        found = None if disk[0] in (CLAIM, EPHEMERAL) else csi.of_disk(disk)
        if found is not None:
            yield found
