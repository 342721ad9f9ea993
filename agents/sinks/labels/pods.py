"""The labels that a binding hands over to its pod: the host's name, and what is derived from the host.

In: snapshots with where nodes run, and which pod goes to which node. Out: the labels of the Binding. Since Kubernetes
1.35 the API server copies them onto the pod in the same write, over what the pod has under the same key; a container
reads them through the downward API, as Kafka's and Cassandra's rack. Source: setPodNodeAndMetadata,
pkg/registry/core/pod/storage/storage.go (feature PodTopologyLabelsAdmission).

A label that an owner, a Service or a budget of the namespace selects by is never handed over (`selected.py`). A
namespace labelled `underhost.io/host-label: "false"` is left alone.
"""

from collections.abc import Mapping

from underhost.agents.sinks.labels.selected import SelectedHostLabels
from underhost.agents.sinks.labels.sink import needed_by
from underhost.agents.sinks.labels.values import LabelValues
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings


class BindingLabels:
    """What bindings of one site carry; asked for one snapshot after another, it looks at what has changed."""

    def __init__(self, settings: HostLabelSettings) -> None:
        self._settings = settings
        self._selected = SelectedHostLabels(needed_by(settings))
        self._hosts: Mapping[str, Host] = {}
        self._values = LabelValues(settings, {})
        self._of: dict[tuple[str, str], dict[str, str]] = {}  # by namespace and host

    def of(self, snapshot: Snapshot, pod: str, node: str) -> dict[str, str]:
        """The labels for a pod (`namespace/name`) that goes to the node; none where the node's host is not known.

        Pods of one namespace that go to one host are given the very same mapping.
        """
        self._follow(snapshot)
        namespace, joined = pod.partition("/")[0], snapshot.node_hosts.get(node)
        if joined is None or joined.host not in self._hosts:
            return {}
        place = namespace, joined.host
        found = self._of.get(place)
        if found is None:
            found = self._of[place] = self._look(*place)
        return found

    def _look(self, namespace: str, host: str) -> dict[str, str]:
        if self._selected.is_off(namespace):
            return {}
        selected = self._selected.of(namespace)
        wanted = self._values.of_pods(host)
        return {key: value for key, value in wanted.items() if value is not None and key not in selected}

    def _follow(self, snapshot: Snapshot) -> None:
        if self._selected.follow(snapshot):
            self._of.clear()
        if snapshot.hosts is not self._hosts:
            self._hosts, self._values = snapshot.hosts, LabelValues(self._settings, snapshot.hosts)
            self._of.clear()
