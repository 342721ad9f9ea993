"""What has to be looked at again: marks of one batch of changes.

In: a pod at a place, before or after a change. Out: the sets that the judges of `resident.py` work off.
"""

from dataclasses import dataclass, field

from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.evaluate.groups import Place as GroupPlace
from underhost.agents.evaluate.relations import Relations
from underhost.agents.rules.separation import INTER_POD_AFFINITY


@dataclass
class Marks:
    """Pods and nodes by name, classes by number, places of separations."""

    pods: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    broken: set[GroupPlace] = field(default_factory=set)
    undone: set[GroupPlace] = field(default_factory=set)
    spread: set[int] = field(default_factory=set)
    near: set[int] = field(default_factory=set)

    def pod(self, live: CompiledSite, relations: Relations, key: str, place: Place) -> None:
        """A pod at a place, where it comes, goes or is when something about its node changes."""
        self.pods.add(key)
        if not place.node:
            return
        self.nodes.add(place.node)
        node, topology = live.model.nodes.index[place.node], live.model.topology
        concern = relations.of(live.model.classes[place.cls])
        self.spread |= concern.spread
        self.near |= concern.near
        host = live.host_of(node)
        for at in concern.apart:
            value = live.value_of(at.key, node)
            if value is not None:
                if at.rule == INTER_POD_AFFINITY:
                    self.broken.add((at, value))
                if host and not topology.is_host_key(at.key):
                    self.undone.add((at, host))
