"""The objects of one simulated API server or vCenter, and the changes since a watcher listed them.

In: objects that the simulation puts and drops. Out: for each watcher the list at one moment, and every change after it
in order. It does not interpret the objects.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class ObjectKey(NamedTuple):
    """`kind` as in record keys; `namespace` is empty for what has none."""

    kind: str
    namespace: str
    name: str


class Change(NamedTuple):
    """An object as it is now; `value` is None where it was deleted. `uid` is the object's."""

    key: ObjectKey
    value: Any
    uid: str


class Watch:
    """The changes that one watcher has not taken yet.

    Attributes:
        changed: set while there are changes to take, and whenever the watcher should check the clock again.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._changes: deque[Change] = deque()

    def push(self, change: Change) -> None:
        """Keep a change for the watcher."""
        self._changes.append(change)
        self.changed.set()

    def take(self) -> list[Change]:
        """Everything since the last call, oldest first."""
        self.changed.clear()
        changes = list(self._changes)
        self._changes.clear()
        return changes


class Store:
    """Objects by kind, namespace and name, with one version counter, as etcd has.

    Args:
        stamp: gives the object that carries the version: (object, version) -> object.
    """

    def __init__(self, stamp: Callable[[Any, int], Any]) -> None:
        self._stamp = stamp
        self._objects: dict[ObjectKey, Any] = {}
        self._sorted: dict[str, list[tuple[ObjectKey, Any]]] = {}
        """The objects of a kind, sorted, until one of them changes: the simulation's controllers ask all the time."""
        self._watches: list[Watch] = []
        self._listeners: list[Callable[[Change], None]] = []
        self.version = 0

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """The object, or None."""
        return self._objects.get(ObjectKey(kind, namespace, name))

    def of_kind(self, kind: str) -> Iterator[tuple[ObjectKey, Any]]:
        """Every object of a kind, sorted by namespace and name."""
        found = self._sorted.get(kind)
        if found is None:
            of_kind = ((key, value) for key, value in self._objects.items() if key.kind == kind)
            found = self._sorted[kind] = sorted(of_kind, key=_by_key)
        return iter(found)

    def put(self, key: ObjectKey, value: Any) -> Any:
        """Create or replace an object and tell the watchers; an equal object is no change. Returns what is stored."""
        held = self._objects.get(key)
        if held is not None and self._stamp(value, 0) == self._stamp(held, 0):
            return held
        self.version += 1
        self._objects[key] = stored = self._stamp(value, self.version)
        self._sorted.pop(key.kind, None)
        self._tell(Change(key, stored, _uid(stored)))
        return stored

    def drop(self, key: ObjectKey) -> None:
        """Delete an object and tell the watchers; nothing happens when it is not there."""
        held = self._objects.pop(key, None)
        if held is not None:
            self.version += 1
            self._sorted.pop(key.kind, None)
            self._tell(Change(key, None, _uid(held)))

    def watch(self) -> tuple[list[Change], Watch]:
        """The objects of this moment, sorted by key, and a watch that has every change after it."""
        watch = Watch()
        self._watches.append(watch)
        objects = [Change(key, value, _uid(value)) for key, value in sorted(self._objects.items(), key=_by_key)]
        return objects, watch

    def unwatch(self, watch: Watch) -> None:
        """Forget a watcher that has stopped."""
        self._watches.remove(watch)

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` at every change, before anything else happens: the simulation's own controllers."""
        self._listeners.append(listener)

    def _tell(self, change: Change) -> None:
        for watch in self._watches:
            watch.push(change)
        for listener in self._listeners:
            listener(change)


def _uid(value: Any) -> str:
    """The uid, which a Kubernetes object has in its metadata and a vSphere object at the top."""
    return str(getattr(value, "metadata", value).uid)


def _by_key(item: tuple[ObjectKey, Any]) -> ObjectKey:
    return item[0]
