"""Unbound claims that wait for their first consumer: which nodes have a volume for them, or let one be made.

In: a state and such claims of one pod. Out: the nodes where they can be satisfied, and, once a pod is placed, what it
takes. As upstream: the smallest volume that fits, the smallest claim first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.domains import BoolArray
from underhost.agents.compiled.matching import requirement_mask
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.state import State
from underhost.agents.compiled.volumes import claims as v
from underhost.agents.site.fault import faults_of
from underhost.agents.site.requests import Amount
from underhost.agents.site.selectors import matches
from underhost.agents.site.terms import NodeSelectorTerm, node_requirements
from underhost.schemas.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

NO_PROVISIONER = "kubernetes.io/no-provisioner"
_AVAILABLE, _FILESYSTEM = "Available", "Filesystem"


@dataclass
class TakenVolumes:
    """What the pods placed so far have taken.

    Attributes:
        selected: by claim, the node (position) where its volume is to be made. taken: by volume, its claim.
        version: grows with every change.
    """

    selected: dict[str, int] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    version: int = 0


class _Option(NamedTuple):
    """A volume large enough for a claim. `reach`: bool[N], None for all nodes. `free`: if nobody has it, it fits."""

    volume: PersistentVolume
    size: Amount
    reach: BoolArray | None
    free: bool


class _Match(NamedTuple):
    found: list[tuple[PersistentVolume, PersistentVolumeClaim]]
    unfound: list[PersistentVolumeClaim]


class Finder:
    """Finds volumes for the waiting claims of one class of pods."""

    def __init__(self, state: State, volumes: v.Volumes, claims: list[PersistentVolumeClaim]) -> None:
        self._state, self._volumes = state, volumes
        self._claims = sorted(claims, key=v.requested)
        self._assumed: TakenVolumes = state.memo.remember(("VolumeBinding", "assumed"), Depends.NOTHING, TakenVolumes)
        self._options = {v.key_of(claim): list(_options(state, volumes, claim)) for claim in self._claims}
        self._near: BoolArray = np.zeros(len(state.model.nodes), bool)  # nodes that some volume singles out
        for options in self._options.values():
            for option in options:
                if option.reach is not None:
                    self._near |= option.reach
        self._cached: tuple[int, BoolArray] | None = None

    def refused(self) -> BoolArray:
        """bool[N]: the nodes where some claim can neither be bound nor made."""
        if self._cached is None or self._cached[0] != self._assumed.version:
            self._cached = (self._assumed.version, self._judge())
        return self._cached[1]

    def reserve(self, node: int) -> None:
        """A pod with the claims was placed on the node."""
        assumed, match = self._assumed, self._match(node)
        for volume, claim in match.found:
            assumed.taken[volume.metadata.name] = v.key_of(claim)
        for claim in (*match.unfound, *(claim for claim, _ in self._selected())):
            assumed.selected[v.key_of(claim)] = node
        assumed.version += 1

    def _judge(self) -> BoolArray:
        selected = self._selected()
        elsewhere: BoolArray = np.zeros(len(self._near), bool)
        for _, node in selected:
            others = np.ones(len(elsewhere), bool)
            if node >= 0:
                others[node] = False
            elsewhere |= others
        made = [claim for claim, _ in selected]
        refused = elsewhere | ~self._makes([*made, *self._match(-1).unfound])
        for node in np.flatnonzero(self._near & ~elsewhere).tolist():
            refused[node] = not self._makes([*made, *self._match(node).unfound])[node]
        return refused

    def _selected(self) -> list[tuple[PersistentVolumeClaim, int]]:
        """The claims whose node has been chosen, with it (-1: a node that is not there)."""
        found = []
        for claim in self._claims:
            node, notes = self._assumed.selected.get(v.key_of(claim)), claim.metadata.annotations
            if node is None and notes is not None and notes.selected_node is not None:
                node = self._state.model.nodes.index.get(notes.selected_node, -1)
            if node is not None:
                found.append((claim, node))
        return found

    def _match(self, node: int) -> _Match:
        """The volumes for the other claims on a node; -1 stands for the nodes that no volume singles out."""
        match = _Match([], [])
        chosen = {id(claim) for claim, _ in self._selected()}
        used: set[str] = set()
        for claim in self._claims:
            if id(claim) in chosen:
                continue
            volume = self._find(claim, node, used)
            if volume is None:
                match.unfound.append(claim)
            else:
                used.add(volume.metadata.name)
                match.found.append((volume, claim))
        return match

    def _find(self, claim: PersistentVolumeClaim, node: int, used: set[str]) -> PersistentVolume | None:
        best: _Option | None = None
        for option in self._options[v.key_of(claim)]:
            volume = option.volume
            if volume.metadata.name in used:
                continue
            reached = option.reach is None or (node >= 0 and bool(option.reach[node]))
            owned = self._owned(volume, claim)
            if owned:
                return volume if reached else None
            if owned is None and option.free and reached and (best is None or option.size < best.size):
                best = option
        return None if best is None else best.volume

    def _owned(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool | None:
        """Whether the volume is the claim's; None where it is nobody's."""
        taken = self._assumed.taken.get(volume.metadata.name)
        if taken is not None:
            return taken == v.key_of(claim)
        reference = volume.spec.claim_ref
        if reference is None:
            return None
        if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
            return False
        return not reference.uid or reference.uid == claim.metadata.uid

    def _makes(self, claims: list[PersistentVolumeClaim]) -> BoolArray:
        """bool[N]: the nodes where volumes for all of these claims can be made."""
        mask: BoolArray = np.ones(len(self._near), bool)
        for name in {v.storage_class_of(claim) for claim in claims}:
            mask &= _makes(self._state, self._volumes.storage_classes[name])
        return mask


def reach(state: State, volume: PersistentVolume) -> BoolArray | None:
    """bool[N]: the nodes that the volume's node affinity names, by label alone; None for all. Raises BadObjectError."""
    listed = v.node_terms(volume)
    if listed is None:
        return None
    key = ("VolumeBinding", bytes(volume.spec.node_affinity))
    return state.memo.remember(key, Depends.NODES, lambda: _reached(state, listed))


def _reached(state: State, listed: list[NodeSelectorTerm]) -> BoolArray:
    mask = np.zeros(len(state.model.nodes), bool)
    for term in listed:
        parsed = None if term.empty else node_requirements(term)
        if parsed is None or isinstance(parsed, str):
            continue
        some = np.ones(len(mask), bool)
        for requirement in parsed[0]:  # upstream gives the node no name here, so that no field counts
            some &= requirement_mask(state, requirement)
        mask |= some
    return mask


def _options(state: State, volumes: v.Volumes, claim: PersistentVolumeClaim) -> Iterator[_Option]:
    """The volumes of the claim's class that are large enough, by name."""
    wanted, spec = v.requested(claim), claim.spec
    selector = v.selector_of(claim)
    with faults_of(f"PersistentVolumeClaim {v.key_of(claim)}"):
        requirements = None if selector is None else selector.requirements("spec.selector")
    for volume in _of_class(state, volumes, v.storage_class_of(claim)):
        held = volume.spec
        if v.capacity(volume) < wanted or volume.metadata.deletion_timestamp is not None:
            continue
        if (spec.volume_mode or _FILESYSTEM) != (held.volume_mode or _FILESYSTEM):
            continue
        if (spec.volume_attributes_class_name or "") != (held.volume_attributes_class_name or ""):
            continue
        free = (
            volume.status.phase == _AVAILABLE
            and (requirements is None or matches(requirements, v.labels_of(volume)))
            and set(spec.access_modes or ()) <= set(held.access_modes or ())
        )
        yield _Option(volume, v.capacity(volume), reach(state, volume), free)


def _of_class(state: State, volumes: v.Volumes, name: str) -> list[PersistentVolume]:
    key = ("VolumeBinding", "classes")
    return state.memo.remember(key, Depends.NOTHING, lambda: _by_class(volumes)).get(name, [])


def _by_class(volumes: v.Volumes) -> dict[str, list[PersistentVolume]]:
    found: dict[str, list[PersistentVolume]] = {}
    for _, volume in sorted(volumes.volumes.items()):  # of equals the first by name
        found.setdefault(v.volume_class_of(volume), []).append(volume)
    return found


def _makes(state: State, storage_class: StorageClass) -> BoolArray:
    """bool[N]: the nodes where the class's provisioner makes volumes."""

    def make() -> BoolArray:
        able = storage_class.provisioner not in ("", NO_PROVISIONER)
        terms = storage_class.allowed_topologies
        allowed = [
            able
            and (
                not terms
                or any(
                    term.match_label_expressions
                    and all(labels.get(one.key) in (one.values or ()) for one in term.match_label_expressions)
                    for term in terms
                )
            )
            for labels in state.model.nodes.labels
        ]
        return np.array(allowed, bool)

    return state.memo.remember(("VolumeBinding", "makes", storage_class.metadata.name), Depends.NODES, make)
