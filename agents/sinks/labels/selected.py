"""Which of our labels owners, Services and budgets of each namespace select by: on pods, those are nobody's to write.

In: snapshots of one site, one after another. Out: by label, who selects by it. A pod whose label changed would leave
or join what selects it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import attrgetter, is_

import msgspec

from underhost.agents.site import terms
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Budget, Service, Workload

SWITCH = "underhost.io/host-label"
"""The label of a namespace whose pods get no label of ours, where it is "false"."""
_Selecting = Service | Workload | Budget
_followed = attrgetter("services", "workloads", "budgets", "namespaces")
"""What is kept until the next snapshot: who asks seldom, as the binder of a quiet site, must not keep a site's pods."""


class SelectedHostLabels:
    """Of the labels under these keys; it looks at what has changed since the last snapshot."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._quoted = {key: msgspec.json.encode(key) for key in keys}
        self._before = _followed(Snapshot())
        self._by: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)  # by namespace and name: the keys
        self._off: set[str] = set()

    def follow(self, snapshot: Snapshot) -> set[str]:
        """The namespaces of which something else may be said than of the last snapshot."""
        services, workloads, budgets, namespaces = self._before
        if all(map(is_, self._before, _followed(snapshot))):
            return set()
        self._before = _followed(snapshot)
        touched = set[str]()
        touched |= self._read("Service/", changed_keys(services, snapshot.services), snapshot.services)
        touched |= self._read("", changed_keys(workloads, snapshot.workloads), snapshot.workloads)
        touched |= self._read("PodDisruptionBudget/", changed_keys(budgets, snapshot.budgets), snapshot.budgets)
        for name in changed_keys(namespaces, snapshot.namespaces):
            if _says_no(snapshot, name) != (name in self._off):
                self._off ^= {name}
                touched.add(name)
        return touched

    def is_off(self, namespace: str) -> bool:
        """Whether the namespace says that its pods get none."""
        return namespace in self._off

    def of(self, namespace: str) -> Mapping[str, str]:
        """By key, the first by name of those in the namespace that select by it, as `Service/shop/db`."""
        by = self._by.get(namespace)
        if not by:
            return {}
        return {key: name for name in sorted(by, reverse=True) for key in by[name]}

    def _read(self, kind: str, names: Iterable[str], now: Mapping[str, _Selecting]) -> set[str]:
        """Which of our keys the selectors name; as text, which may find a value that is called like a key."""
        touched = set[str]()
        for name in names:
            full, one = f"{kind}{name}", now.get(name)
            space = full.split("/", 2)[1]
            raw = b"" if one is None else bytes(one.spec.selector)
            keys = [key for key, quoted in self._quoted.items() if quoted in raw]
            if keys != self._by.get(space, {}).get(full, []):
                touched.add(space)
                if keys:
                    self._by[space][full] = keys
                else:
                    del self._by[space][full]
        return touched


def _says_no(snapshot: Snapshot, name: str) -> bool:
    namespace = snapshot.namespaces.get(name)
    return namespace is not None and terms.readable_labels(namespace.metadata.labels).get(SWITCH) == "false"
