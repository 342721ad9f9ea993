"""A compiled site: classes of equal pods × nodes, as arrays. Every decision and every judgement starts here.

In: a `Snapshot` and `Options`. Out: a `Model`, compiled in one pass over the pods. What changes while pods are placed
(free resources, counters) is `state.State(model)`; what changes from one snapshot to the next, `site.CompiledSite`
changes in the model.
"""

from dataclasses import replace

import numpy as np

from underhost.agents.compiled.classes import Parser
from underhost.agents.compiled.classifier import Classifier
from underhost.agents.compiled.domains import IndexArray, Topology
from underhost.agents.compiled.nodes import Nodes
from underhost.agents.compiled.reader import PendingPod, PodReader
from underhost.agents.compiled.running import Running
from underhost.agents.compiled.selected_labels import SelectedLabels
from underhost.agents.compiled.volumes.claims import volumes_of
from underhost.agents.site.snapshot import Options, Snapshot

__all__ = ["Model", "PendingPod", "Running", "compile"]


class Model:
    """A site compiled. N nodes, P running pods, C classes, Q requests.

    Attributes:
        nodes: N nodes sorted by name, with labels, taints, int64[R, N] allocatable resources.
        topology: domains per topology key; a host key means the live ESXi host where hosts are known.
        classifier: numbers the classes of pods. selectors: every selector once, with the classes it matches.
        classes: C classes; a class's `selectors` are those that match it.
        reader: reads pods. requests: Q resource vectors.
        running: the pods on nodes. pending: the pods without one, in input order, whoever schedules them.
        unbound: pods bound to a node that the input lacks: they count nowhere.
        owners: grows when workloads come, go or have other owners: pods may be of other applications.
        volumes: the claims and what is behind them; None where the snapshot holds no claim.
    """

    def __init__(self, snapshot: Snapshot, options: Options) -> None:
        """Raises BadObjectError that names the first object that breaks the API's rules, and its field."""
        self.options, self.nodes, self.volumes = options, Nodes(snapshot), volumes_of(snapshot)
        self.owners = 0
        self.reader = PodReader(claims=self.volumes is not None)
        parser = Parser(options.shares.terms)
        labels = SelectedLabels(snapshot, parser)
        reading = self.reader.read(snapshot.pods, self.nodes.index, labels)
        self.classifier = Classifier(snapshot, self.nodes.images, parser)
        class_of = np.array(self.classifier.number_all(snapshot, reading), np.intp)
        self.selectors, self.classes = self.classifier.table, self.classifier.classes
        self.requests = self.reader.requests
        self.running = Running(
            reading.keys,
            class_of[np.array(reading.pod_class, np.intp)],
            np.array(reading.pod_request, np.intp),
            np.array(reading.pod_node, np.intp),
            len(self.nodes),
        )
        self.pending = [replace(pod, cls=int(class_of[pod.cls])) for pod in reading.pending]
        self.unbound = [replace(pod, cls=int(class_of[pod.cls])) for pod in reading.unbound]
        self.chart()

    def chart(self, label_values: dict[str, list[str | None]] | None = None) -> None:
        """Make the topology anew; `label_values` are still right."""
        nodes = self.nodes
        hosts = nodes.hosts if nodes.has_hosts else None
        self.topology = Topology(nodes.labels, self.options.host_keys, hosts, nodes.host_names, label_values)

    @property
    def has_hosts(self) -> bool:
        """Whether any node's ESXi host is known: only then pods can share one."""
        return self.topology.hosts is not None and bool(self.topology.hosts.present.any())

    def sizes(self) -> list[int]:
        """The number of running pods of each class."""
        return self.running.sizes(len(self.classes))

    def pods_of(self, cls: int) -> IndexArray:
        """The running pods of a class."""
        return self.running.of_class(cls)


def compile(snapshot: Snapshot, options: Options) -> Model:
    """The model of a snapshot. Raises BadObjectError."""
    return Model(snapshot, options)
