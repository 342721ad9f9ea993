"""A site compiled for the host rules alone, following its changes one by one: what the scheduler extender answers from.

In: a snapshot once, then single pods, nodes and namespaces that changed. Out: the class of any pod, known or not, and
what keeps its pods apart on hosts (`Apart`). It shares nothing with the evaluation, which runs in a thread of its own
over its own compiled site: so no answer waits for it. What cannot follow a change raises `Outdated`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, sides_of
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Topology
from underhost.agents.compiled.follower import Follower, Observer
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.compiled.state import State
from underhost.agents.rules import physical_host
from underhost.agents.site.changes import Outdated
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Pod

__all__ = ["Apart", "HostPicture", "Outdated"]


class Apart(NamedTuple):
    """What the host rules say of one class of pods; the classes are those of running pods that matter to it.

    Attributes:
        cls: the class itself.
        separations: PhysicalHost's, by (rule, topologyKey): the classes that a shared host must not bring together.
        by_host: the classes kept apart by a host key itself, by a term of the class or by a term of theirs.
        near: the topologyKeys of required affinity that are host keys. spread: whether a strict spread has one.
        concerned: every class above. keys: topologyKeys of the required anti-affinity between it and each class.
    """

    cls: PodClass
    separations: Mapping[tuple[str, str], Collection[int]]
    by_host: frozenset[int]
    near: tuple[str, ...]
    spread: bool
    concerned: frozenset[int]
    keys: Mapping[int, frozenset[str]]

    @property
    def matters(self) -> bool:
        """Whether any host rule has something to say of such pods."""
        return bool(self.concerned or self.near or self.spread)


class HostPicture(Observer):
    """One site. `generation` changes whenever positions of nodes or classes may mean something else than before."""

    def __init__(self, snapshot: Snapshot, options: Options, asked: Mapping[str, Pod] | None = None) -> None:
        """`asked` are pods that it must have a class for, besides those of the snapshot. Raises BadObjectError."""
        more = {f"{key} (asked)": pod for key, pod in (asked or {}).items()}
        self._live = CompiledSite(replace(snapshot, pods={**snapshot.pods, **more}), options)
        self.follower = Follower(self._live, snapshot, self)
        for key in more.keys() & self._live.places.keys():
            self._live.remove(key)
        self._snapshot = snapshot
        self._aparts: dict[int, Apart] = {}
        self.generation = 0

    # ------------------------------------------------------------------------------------------------------- asking
    @property
    def state(self) -> State:
        """Counters of the pods that run now."""
        return self._live.state

    @property
    def topology(self) -> Topology:
        """The nodes' domains."""
        return self._live.model.topology

    @property
    def names(self) -> list[str]:
        """The nodes by position."""
        return self._live.model.nodes.names

    @property
    def positions(self) -> Mapping[str, int]:
        """The positions of nodes by name."""
        return self._live.model.nodes.index

    def node_of(self, key: str) -> int:
        """Where a pod of this name runs; -1 for nowhere."""
        place = self._live.places.get(key)
        return self.positions[place.node] if place is not None and place.node else -1

    def class_at(self, key: str) -> int:
        """The class of a pod that `node_of` knows."""
        return self._live.places[key].cls

    def running_on(self, node: int) -> list[str]:
        """The pods on a node."""
        return self._live.pods_on(self.names[node])

    def class_of(self, key: str, pod: Pod) -> tuple[int, Request]:
        """The class and the request of a pod, whether it is in the picture or not. Raises Outdated, BadObjectError."""
        self.follower.learn_labels(self._snapshot, pod, self._snapshot.pods)
        place = self.follower.class_of(key, pod)
        return place.cls, self._live.model.requests[place.request]

    def apart(self, cls: int) -> Apart:
        """What the host rules say of the class."""
        found = self._aparts.get(cls)
        if found is None:
            found = self._aparts[cls] = self._apart(self._live.model.classes[cls])
        return found

    def _apart(self, cls: PodClass) -> Apart:
        by_host = set[int]()
        keys: dict[int, set[str]] = {}
        reach = TermReach(self._live.model.classes, self._live.model.options)
        for side in sides_of(cls):
            both = {*side.mine, *reach.theirs(cls, side)}
            if side.rule == INTER_POD_AFFINITY:
                for other in both:
                    keys.setdefault(other, set()).add(side.key)
                if self.topology.is_host_key(side.key):
                    by_host |= both
        kept = physical_host.separations(self._live.model, cls)
        near = tuple(dict.fromkeys(t.key for t in cls.required_affinity if self.topology.is_host_key(t.key)))
        return Apart(
            cls=cls,
            separations=kept,
            by_host=frozenset(by_host),
            near=near,
            spread=any(self.topology.is_host_key(one.key) for one in cls.hard),
            concerned=frozenset(by_host).union(*kept.values()),
            keys={other: frozenset(found) for other, found in keys.items()},
        )

    # ---------------------------------------------------------------------------------------------------- following
    def add_class(self, cls: PodClass) -> None:
        """Whom other classes are kept apart from may be another one now."""
        self._aparts.clear()

    def nodes_changed(
        self, snapshot: Snapshot, changed: Collection[str], moved: Collection[str], pods: Mapping[str, Pod]
    ) -> None:
        """Nodes are at other positions, or on other hosts."""
        self._aparts.clear()
        self.generation += 1

    def follow_pods(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """Pods that came, changed or went. Raises Outdated, BadObjectError; the picture is then of no use."""
        self._snapshot = snapshot
        for key in names:
            pod = snapshot.pods.get(key)
            self.follower.learn_labels(snapshot, pod, snapshot.pods)
            self.follower.follow_pod(snapshot, key, pod)
        self._live.settle()
