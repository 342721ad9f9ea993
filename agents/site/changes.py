"""What has changed between two snapshots of a site, and whether a rule or a finding reads the difference.

In: mappings of two snapshots, or two versions of one object. Out: the keys whose objects differ, and answers yes or no.
Objects are compared by identity: whoever keeps a site's tables keeps the object where nothing about it changed.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from operator import attrgetter, is_not
from typing import Generic, TypeVar
from weakref import ref

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node, Pod, Workload
from underhost.schemas.records import NodeHost

K = TypeVar("K")
V = TypeVar("V")
_STEPS = 8  # others (the extender, a page) take snapshots between two cycles as well
_objects = attrgetter("nodes", "pods", "namespaces", "services", "workloads", "budgets", "vms", "hosts")
_values = attrgetter(
    *("site", "clusters", "rules", "vsphere", "node_hosts", "rivals"),
    *("claims", "volumes", "storage_classes", "csi_nodes", "attachments"),
)


class Outdated(Exception):
    """What is compiled of a site cannot be extended to a change: compile the site anew."""


class Tracked(dict[K, V]):
    """A mapping of a snapshot that knows in which keys it may differ from those taken shortly before it.

    Whoever follows a site looks at these alone; whoever saw another mapping last compares all, and is right as well.
    """

    def __init__(self, rows: Mapping[K, V], before: "Tracked[K, V] | None" = None, changed: Iterable[K] = ()) -> None:
        super().__init__(rows)
        self._steps: tuple[tuple[ref[Tracked[K, V]], tuple[K, ...]], ...] = ()
        if before is not None:
            self._steps = ((ref(before), tuple(changed)), *before._steps)[:_STEPS]

    def since(self, before: Mapping[K, V]) -> Iterable[K] | None:
        """The keys that may differ from that mapping; None where it is none of those before this."""
        found: dict[K, None] = {}
        for view, changed in self._steps:
            found.update(dict.fromkeys(changed))
            if view() is before:
                return found
        return None


class Derived(Generic[K, V]):
    """Values that are derived from objects, one by key: derived again only where one of the objects is another one."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[tuple[object, ...], V]] = {}

    def of(self, sources: Mapping[K, tuple[object, ...]], derive: Callable[[K], V]) -> dict[K, V]:
        """The value of every key of `sources`, which gives the objects that it is derived from; others are dropped."""
        before, self._known = self._known, {}
        for key, objects in sources.items():
            known = before.get(key)
            if known is None or not same_objects(known[0], objects):
                known = objects, derive(key)
            self._known[key] = known
        return {key: value for key, (_, value) in self._known.items()}

    def clear(self) -> None:
        """Derive all anew."""
        self._known.clear()


def same_objects(before: Iterable[object], now: Iterable[object]) -> bool:
    """Whether two sequences of equal length hold the very same objects."""
    return not any(map(is_not, before, now))


def is_same_picture(before: Snapshot, now: Snapshot) -> bool:
    """Whether two snapshots hold the same objects: then only markers or outcomes have come in between."""
    return same_objects(_objects(before), _objects(now)) and _values(before) == _values(now)


def changed_keys(before: Mapping[K, V], now: Mapping[K, V]) -> list[K]:
    """The keys whose objects are not the same."""
    if before is now:
        return []
    told = now.since(before) if isinstance(now, Tracked) else None
    if told is not None:
        return [key for key in told if before.get(key) is not now.get(key)]
    names, known = list(now), list(before)
    if names[: len(known)] == known:  # nobody has gone: both are in one order, which is compared five times as fast
        changed = map(is_not, now.values(), before.values())
        return [*compress(names, changed), *names[len(known) :]]
    found = [key for key, value in now.items() if before.get(key) is not value]
    if len(before) + len(found) != len(now) or any(key in before for key in found):
        found += [key for key in before if key not in now]
    return found


def is_named_alike(old: Pod, new: Pod) -> bool:
    """Whether findings name both alike."""
    return old.metadata.uid == new.metadata.uid


def is_classed_alike(old: Pod, new: Pod) -> bool:
    """Whether a pod is of the same class as it was, wherever it is now, but for its labels."""
    one, other = old.metadata, new.metadata
    return (
        msgspec.structs.replace(old.spec, node_name=new.spec.node_name) == new.spec
        and one.owner_references == other.owner_references
        and (one.deletion_timestamp is None) == (other.deletion_timestamp is None)
    )


def selects_alike(old: Pod, new: Pod) -> bool:
    """Whether the terms of both read the same labels of pods."""
    one, other = old.spec, new.spec
    return one.affinity == other.affinity and one.topology_spread_constraints == other.topology_spread_constraints


def is_owned_alike(old: Pod, new: Pod) -> bool:
    """Whether both are of the same application, and belong to their node alike."""
    one, other = old.metadata, new.metadata
    return one.owner_references == other.owner_references and one.annotations == other.annotations


def owners_of(one: Pod | Workload) -> object:
    """Who owns the object; equal for equal owners."""
    return one.metadata.owner_references


def reads_alike(old: Node, new: Node) -> bool:
    """Whether the rules read the same of both."""
    return (
        old.spec.unschedulable == new.spec.unschedulable
        and bytes(old.metadata.labels) == bytes(new.metadata.labels)
        and bytes(old.spec.taints) == bytes(new.spec.taints)
        and bytes(old.status.allocatable) == bytes(new.status.allocatable)
        and old.status.declared_features == new.status.declared_features
    )


def host_of(joined: NodeHost | None) -> tuple[str, str, str] | None:
    """What a finding or a rule reads of a node's place: not since when."""
    return None if joined is None else (joined.vm, joined.host, joined.host_name)
