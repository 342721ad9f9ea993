"""What is different between two snapshots, and whether it matters."""

from collections.abc import Mapping
from itertools import compress
from operator import is_not
from typing import TypeVar

import msgspec

from underhost.agents.site.snapshot import Snapshot, View
from underhost.schemas.kubernetes import Node, Pod, Workload
from underhost.schemas.records import NodeHost

K = TypeVar("K")
V = TypeVar("V")


def changed_keys(before: Mapping[K, V], now: Mapping[K, V]) -> list[K]:
    """The keys whose objects are not the same."""
    if before is now:
        return []
    told = now.since(before) if isinstance(now, View) else None
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
    """Whether a pod is of the same class as it was, wherever it is now."""
    one, other = old.metadata, new.metadata
    return (
        msgspec.structs.replace(old.spec, node_name=new.spec.node_name) == new.spec
        and one.labels == other.labels
        and one.owner_references == other.owner_references
        and (one.deletion_timestamp is None) == (other.deletion_timestamp is None)
    )


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
    )


def host_of(joined: NodeHost | None) -> tuple[str, str, str] | None:
    """What a finding or a rule reads of a node's place: not since when."""
    return None if joined is None else (joined.vm, joined.host, joined.host_name)


def count_hosts(snapshot: Snapshot) -> int:
    """The hosts that nodes are known to be on."""
    return len({joined.host for joined in snapshot.node_hosts.values() if joined.host})
