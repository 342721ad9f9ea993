"""The labels that a binding hands over to its pod: the host's name, and what is derived from the host.

In: snapshots with where nodes run, and which pod goes to which node. Out: the labels of the Binding. Since Kubernetes
1.35 the API server copies them onto the pod in the same write, over what the pod has under the same key; a container
reads them through the downward API, as Kafka's and Cassandra's rack. Source: setPodNodeAndMetadata,
pkg/registry/core/pod/storage/storage.go (feature PodTopologyLabelsAdmission).

A label that an owner, a Service or a budget of the namespace selects by is never handed over: the pod would leave or
join what selects it. A namespace labelled `underhost.io/host-label: "false"` is left alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from underhost.agents.sinks.labels.values import LabelValues
from underhost.agents.site import terms
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.fault import Fault
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Budget, Namespace, Service, Workload
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

SWITCH = "underhost.io/host-label"
"""The label of a namespace whose pods get no label of ours, where it is "false"."""
_Selecting = Service | Workload | Budget


class BindingLabels:
    """What bindings of one site carry; asked for one snapshot after another, it looks at what has changed."""

    def __init__(self, settings: HostLabelSettings) -> None:
        self._settings = settings
        self._quoted = {key: msgspec.json.encode(key) for key in (settings.key, *(one.key for one in settings.derived))}
        self._before = Snapshot()
        self._hosts: Mapping[str, Host] = {}
        self._values = LabelValues(settings, {})
        self._selected: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)

    def of(self, snapshot: Snapshot, pod: str, node: str) -> dict[str, str]:
        """The labels for a pod (`namespace/name`) that goes to the node; none where the node's host is not known."""
        self._follow(snapshot)
        namespace, joined = pod.partition("/")[0], snapshot.node_hosts.get(node)
        if joined is None or joined.host not in self._hosts or _is_off(snapshot.namespaces.get(namespace)):
            return {}
        kept = frozenset[str]().union(*self._selected.get(namespace, {}).values())
        return {key: value for key, value in self._values.on_pods(joined.host).items() if key not in kept}

    def _follow(self, snapshot: Snapshot) -> None:
        before, self._before = self._before, snapshot
        if before is snapshot:
            return
        if snapshot.hosts is not self._hosts:
            self._hosts, self._values = snapshot.hosts, LabelValues(self._settings, snapshot.hosts)
        self._read("Service/", changed_keys(before.services, snapshot.services), snapshot.services)
        self._read("", changed_keys(before.workloads, snapshot.workloads), snapshot.workloads)
        self._read("Budget/", changed_keys(before.budgets, snapshot.budgets), snapshot.budgets)

    def _read(self, kind: str, names: Iterable[str], now: Mapping[str, _Selecting]) -> None:
        """Which of our keys the selectors name; as text, which may find a value that is called like a key."""
        for name in names:
            full = f"{kind}{name}"
            space, one = full.split("/", 2)[1], now.get(name)
            raw = b"" if one is None else bytes(one.spec.selector)
            keys = frozenset(key for key, quoted in self._quoted.items() if quoted in raw)
            if keys:
                self._selected[space][full] = keys
            elif space in self._selected:
                self._selected[space].pop(full, None)


def _is_off(namespace: Namespace | None) -> bool:
    try:
        return namespace is not None and terms.labels(bytes(namespace.metadata.labels)).get(SWITCH) == "false"
    except Fault:
        return False  # said elsewhere
