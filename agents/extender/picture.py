"""A site compiled for the host rules alone, following its changes one by one: what the scheduler extender answers from.

In: a snapshot once, then single pods, nodes and namespaces that changed. Out: the class of any pod, known or not, and
what keeps its pods apart on hosts (`Apart`). It shares nothing with the evaluation, which runs in a thread of its own
over its own compiled site: so no answer waits for it. What cannot follow a change raises `Outdated`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.classifier import Outdated
from underhost.agents.compiled.domains import Topology
from underhost.agents.compiled.live import Live
from underhost.agents.compiled.live_model import LiveState
from underhost.agents.compiled.reader import FINISHED
from underhost.agents.evaluate.relations import Relations
from underhost.agents.rules.separations import INTER_POD_AFFINITY
from underhost.agents.site.changes import changed_keys, host_of, reads_alike
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Namespace, Node, Pod
from underhost.schemas.records import NodeHost

__all__ = ["Apart", "HostPicture", "Outdated"]

_MOST_GROWN = 256  # new classes after which counters that nobody asks any more are dropped


class Apart(NamedTuple):
    """What the host rules say of one class of pods; the classes are those of running pods that matter to it.

    Attributes:
        cls: the class itself.
        separations: PhysicalHost's, by (rule, topologyKey): the classes that a shared host must not bring together.
        own, existing: the classes kept apart by a host key itself, by a term of the class or by a term of theirs.
        near: the topologyKeys of required affinity that are host keys. spread: whether a strict spread has one.
        concerned: every class above. keys: topologyKeys of the required anti-affinity between it and each class.
    """

    cls: PodClass
    separations: Mapping[tuple[str, str], Collection[int]]
    own: frozenset[int]
    existing: frozenset[int]
    near: tuple[str, ...]
    spread: bool
    concerned: frozenset[int]
    keys: Mapping[int, frozenset[str]]

    @property
    def matters(self) -> bool:
        """Whether any host rule has something to say of such pods."""
        return bool(self.concerned or self.near or self.spread)


class HostPicture:
    """One site. `generation` changes whenever positions of nodes or classes may mean something else than before."""

    def __init__(self, snapshot: Snapshot, options: Options, asked: Mapping[str, Pod] | None = None) -> None:
        """`asked` are pods that it must have a class for, besides those of the snapshot. Raises BadObjectError."""
        more = {f"{key} (asked)": pod for key, pod in (asked or {}).items()}
        self._live, self._relations = Live(replace(snapshot, pods={**snapshot.pods, **more}), options), Relations()
        for key in more.keys() & self._live.places.keys():
            self._live.remove(key)
        for cls in self._live.model.classes:
            self._relations.add(cls)
        self._aparts: dict[int, Apart] = {}
        self._nodes: dict[str, Node] = dict(snapshot.nodes)
        self._hosts: Mapping[str, NodeHost] = snapshot.node_hosts
        self._grown = 0
        self.generation = 0

    # ------------------------------------------------------------------------------------------------------- asking
    @property
    def state(self) -> LiveState:
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
        model = self._live.model
        return [model.running.keys[at] for at in model.on_node[node]]

    def class_of(self, key: str, pod: Pod) -> tuple[int, Request]:
        """The class and the request of a pod, whether it is in the picture or not. Raises Outdated, BadObjectError."""
        place, new = self._live.place_of(key, pod)
        if new:
            self._know(place.cls)
        return place.cls, self._live.model.requests[place.request]

    def apart(self, cls: int) -> Apart:
        """What the host rules say of the class."""
        found = self._aparts.get(cls)
        if found is None:
            found = self._aparts[cls] = self._apart(self._live.model.classes[cls])
        return found

    def _apart(self, cls: PodClass) -> Apart:
        separations: dict[tuple[str, str], set[int]] = {}
        own, existing = set[int](), set[int]()
        keys: dict[int, set[str]] = {}
        matching = {selector.id for selector in cls.selectors}
        for at in self._relations.of(cls).apart:
            one = self._relations.separation(at)
            mine = set(one.matched) if cls.id in one.owners else set[int]()
            theirs = set(one.owners) if at.selector in matching else set[int]()
            if at.rule == INTER_POD_AFFINITY:
                for other in mine | theirs:
                    keys.setdefault(other, set()).add(at.key)
            if not self.topology.is_host_key(at.key):
                separations.setdefault((at.rule, at.key), set()).update(mine | theirs)
            elif at.rule == INTER_POD_AFFINITY:
                own |= mine
                existing |= theirs
        if self.topology.hosts is None:
            separations = {}
        kept = {place: classes for place, classes in separations.items() if classes}
        near = tuple(dict.fromkeys(t.key for t in cls.required_affinity if self.topology.is_host_key(t.key)))
        return Apart(
            cls=cls,
            separations=kept,
            own=frozenset(own),
            existing=frozenset(existing),
            near=near,
            spread=any(self.topology.is_host_key(one.key) for one in cls.hard),
            concerned=frozenset(own | existing).union(*kept.values()),
            keys={other: frozenset(found) for other, found in keys.items()},
        )

    def _know(self, cls: int) -> None:
        found = self._live.model.classes[cls]
        self._relations.add(found)
        self._aparts.clear()
        self._grown += 1
        if self._grown < _MOST_GROWN:
            self._live.state.know_classes([found])
        else:
            self._grown = 0
            self._live.state.forget_counters()

    # ---------------------------------------------------------------------------------------------------- following
    def follow_pods(self, pods: Mapping[str, Pod | None]) -> None:
        """Pods that came, changed or (None) went. Raises Outdated, BadObjectError; the picture is then of no use."""
        for key, pod in pods.items():
            self._follow_pod(key, pod)
        self._live.settle()

    def _follow_pod(self, key: str, pod: Pod | None) -> None:
        live, was = self._live, self._live.places.get(key)
        place = None
        if pod is not None and pod.status.phase not in FINISHED:
            place, new = live.place_of(key, pod)
            if new:
                self._know(place.cls)
        if place == was:
            return
        if was is not None:
            live.remove(key)
        if pod is not None and place is not None:
            live.add(key, pod, place)

    def follow_namespace(self, name: str, namespace: Namespace | None) -> None:
        """A namespace came, changed or (None) went. Raises Outdated, BadObjectError."""
        self._live.classifier.change_namespace(name, namespace)

    def follow_nodes(self, snapshot: Snapshot, changed: Iterable[str]) -> None:
        """These nodes came, changed or went; where nodes run is as in the snapshot, which is not kept.

        Raises Outdated, BadObjectError; the picture is then of no use.
        """
        touched = {name for name in changed if self._differs(name, snapshot.nodes.get(name))}
        moved, before, now = set[str](), self._hosts, snapshot.node_hosts
        if now is not before:
            other = changed_keys(before, now)
            moved = {name for name in other if host_of(before.get(name)) != host_of(now.get(name))}
        self._hosts = now
        if touched or moved:
            self._change_nodes(snapshot, touched, moved)

    def _differs(self, name: str, new: Node | None) -> bool:
        old = self._nodes.get(name)
        if old is None or new is None:
            return old is not new
        return not reads_alike(old, new)

    def _change_nodes(self, snapshot: Snapshot, touched: set[str], moved: set[str]) -> None:
        live, nodes = self._live, snapshot.nodes
        exchanged = [name for name in touched if (name in self._nodes) != (name in nodes)]
        rebound = [key for name in exchanged for key in self._on(name)]
        for key in rebound:
            live.remove(key)
        for name in touched:
            if name in nodes:
                self._nodes[name] = nodes[name]
            else:
                del self._nodes[name]
        live.change_nodes(snapshot, touched, moved)
        self._aparts.clear()
        self.generation += 1
        self.follow_pods({key: snapshot.pods.get(key) for key in rebound})

    def _on(self, name: str) -> list[str]:
        """The pods bound to a node, there or not."""
        at = self.positions.get(name)
        if at is not None:
            return self.running_on(at)
        return list(self._live.unbound.get(name, ()))
