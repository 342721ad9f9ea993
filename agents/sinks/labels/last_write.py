"""What our own last write left on a node: while its labels are still so, the next write needs no look at it.

In: the sink's writes, and the labels that the watch has shown last. Out: what to write without asking whose the labels
are. A start begins without memory, so that the first write to each node follows a look.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

MOST = 20_000
"""Nodes that are remembered; with more than these it is begun anew."""


class LabelsLeft(NamedTuple):
    """A node after a write of ours: all its labels, and which of them are ours."""

    uid: str
    labels: Mapping[str, str]
    ours: frozenset[str]

    def differing(self, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
        """What has to change; empty where something does that is not ours, too."""
        changes = {key: value for key, value in wanted.items() if self.labels.get(key) != value}
        return changes if changes.keys() <= self.ours else {}

    def owned(self) -> dict[str, str]:
        """Our labels: server-side apply states the whole of what we own, what is left out would be removed."""
        return {key: self.labels[key] for key in sorted(self.ours)}


class LabelMemory:
    """Nodes as they were left. `seen` gives a node's labels as the watch has shown them last, None if unknown."""

    def __init__(self, seen: Callable[[str], Mapping[str, str] | None]) -> None:
        self._seen = seen
        self._left: dict[str, LabelsLeft] = {}

    def take(self, node: str, uid: str) -> LabelsLeft | None:
        """The node as it was left, if it is this one and its labels are still so; it is forgotten until `keep`."""
        left = self._left.pop(node, None)
        return left if left is not None and left.uid == uid and self._seen(node) == left.labels else None

    def keep(self, node: str, uid: str, before: Mapping[str, str], ours: Mapping[str, str | None]) -> None:
        """We have written these labels of ours onto these labels."""
        if len(self._left) >= MOST:
            self._left.clear()
        labels = {key: value for key, value in {**before, **ours}.items() if value is not None}
        self._left[node] = LabelsLeft(uid, labels, frozenset(ours) & labels.keys())
