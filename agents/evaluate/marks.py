"""What has to be looked at again because of a change, and whom a pod concerns.

In: a pod at a place, before or after a change. Out: the sets that the judges work off.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from underhost.agents.affinity.separation import (
    INTER_POD_AFFINITY,
    Separation,
    SeparationId,
    separation_ids,
    separation_of,
    sides_of,
)
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.compiled.site import Place as PodPlace
from underhost.agents.site.selectors import SelectorTable

Place = tuple[SeparationId, str]
"""A separation, and a domain's value or a host's id."""


class Concern(NamedTuple):
    """What pods of one class take part in.

    `apart`: separations, on either side. `spread`: classes whose hard spread counts them, `near`: classes whose
    required affinity may be met by them; the class itself is in these if it has such terms.
    """

    apart: tuple[SeparationId, ...]
    spread: frozenset[int]
    near: frozenset[int]


class Relations:
    """The concerns of all classes and the sides of all separations, each made when it is first asked for."""

    def __init__(self, selectors: SelectorTable) -> None:
        self._selectors = selectors
        self._concerns: dict[int, Concern] = {}
        self._separations: dict[SeparationId, Separation] = {}
        self._every: list[SeparationId] | None = None

    def forget(self) -> None:
        """A class is new; its selectors and those of others are matched already."""
        self._concerns.clear()
        self._separations.clear()
        self._every = None

    def of(self, cls: PodClass) -> Concern:
        """What the pods of a class take part in."""
        found = self._concerns.get(cls.id)
        if found is None:
            counting = [ids for selector in cls.selectors for ids in selector.spread.values()]
            wanting = [ids for selector in cls.selectors for ids in selector.near.values()]
            found = self._concerns[cls.id] = Concern(
                apart=tuple(side.id for side in sides_of(cls)),
                spread=frozenset({cls.id} if cls.hard else ()).union(*counting),
                near=frozenset({cls.id} if cls.required_affinity else ()).union(*wanting),
            )
        return found

    def separation(self, at: SeparationId) -> Separation:
        """Its two sides, as they are now."""
        found = self._separations.get(at)
        if found is None:
            found = self._separations[at] = separation_of(self._selectors, at)
        return found

    def every(self) -> Sequence[SeparationId]:
        """All separations."""
        if self._every is None:
            self._every = separation_ids(self._selectors)
        return self._every


@dataclass
class Marks:
    """Pods and nodes by name (`hosts`: nodes whose host may be known or unknown by now), classes by number, places."""

    pods: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    broken: set[Place] = field(default_factory=set)
    undone: set[Place] = field(default_factory=set)
    spread: set[int] = field(default_factory=set)
    near: set[int] = field(default_factory=set)

    def pod(
        self, site: CompiledSite, relations: Relations, key: str, place: PodPlace, keys: Collection[str] | None = None
    ) -> None:
        """A pod at a place, where it comes, goes or is when something about its node changes.

        `keys` are the labels that change of a node that stays on its host; None: the pod or the node comes or goes.
        """
        self.pods.add(key)
        if not place.node:
            return
        self.nodes.add(place.node)
        concern = relations.of(site.model.classes[place.cls])
        self.spread |= concern.spread
        self.near |= concern.near
        apart = concern.apart if keys is None else [at for at in concern.apart if at.key in keys]
        if not apart:
            return
        node, topology = site.model.nodes.index[place.node], site.model.topology
        host = site.host_of(node)
        for at in apart:
            value = site.value_of(at.key, node)
            if value is not None:
                if at.rule == INTER_POD_AFFINITY:
                    self.broken.add((at, value))
                if host and not topology.is_host_key(at.key):
                    self.undone.add((at, host))

    def came_to_host(self, site: CompiledSite, relations: Relations, node: int) -> None:
        """The pods of a node stay where they are, and the host below them is another one now."""
        model, host = site.model, site.host_of(node)
        if not host:
            return
        labels, running, is_host_key = model.nodes.labels[node], model.running, model.topology.is_host_key
        for cls in {running.class_at[pod] for pod in running.on_node[node]}:
            for at in relations.of(model.classes[cls]).apart:
                if not is_host_key(at.key):
                    if at.key in labels:
                        self.undone.add((at, host))
                elif at.rule == INTER_POD_AFFINITY:
                    self.broken.add((at, host))
