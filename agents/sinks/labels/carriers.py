"""Pods that run and carry a label, by their node.

In: snapshots of one site, one after another. Out: the pods of a node with the label's value, and which are concerned by
a change. A binding gave it to them, or whoever made them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from msgspec import json

from underhost.agents.site.changes import changed_keys
from underhost.agents.site.owners import running
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.kubernetes import Pod


class LabelCarriers:
    """Those of one label; it looks at the pods that have changed since the last snapshot."""

    def __init__(self, key: str) -> None:
        self._key, self._quoted = key, json.encode(key)
        self._before: Mapping[str, Pod] = {}
        self._on: dict[str, str] = {}  # the node of each
        self._by_node: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def follow(self, snapshot: Snapshot) -> set[tuple[str, str]]:
        """The pods that came, changed or went since the last snapshot, each with the node that is concerned."""
        before, self._before = self._before, snapshot.pods
        touched = set[tuple[str, str]]()
        for key in changed_keys(before, snapshot.pods):
            self._take(key, snapshot.pods.get(key), touched)
        return touched

    def on(self, node: str) -> Mapping[str, str]:
        """The value that each pod on the node carries, by `namespace/name`."""
        return self._by_node.get(node, {})

    def node_of(self, pod: str) -> str | None:
        """The node of a pod that carries the label, None for any other."""
        return self._on.get(pod)

    @property
    def pods(self) -> Collection[str]:
        """All of them."""
        return self._on.keys()

    @property
    def nodes(self) -> list[str]:
        """Those with such pods."""
        return list(self._by_node)

    def _take(self, key: str, pod: Pod | None, touched: set[tuple[str, str]]) -> None:
        was = self._on.pop(key, None)
        if was is not None:
            touched.add((key, was))
            del self._by_node[was][key]
            if not self._by_node[was]:
                del self._by_node[was]
        if pod is not None and running(pod) and self._quoted in bytes(pod.metadata.labels):
            value, node = readable_labels(pod.metadata.labels).get(self._key), pod.spec.node_name
            if value is not None:
                self._on[key] = node
                self._by_node[node][key] = value
                touched.add((key, node))
