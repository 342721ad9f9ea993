"""Brings a compiled site from one snapshot to the next. No other code does.

In: two snapshots, or single objects that have changed. Out: the site as it is now; its `Observer` is told of each step.
What cannot be changed in place raises `Outdated`: the caller compiles the site anew.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from msgspec import json

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.site.changes import Outdated, changed_keys, host_of, owners_of, reads_alike, selects_alike
from underhost.agents.site.owners import FINISHED, controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Namespace, Node, Pod
from underhost.schemas.records import NodeHost

MANY = 1000
"""Pods, beside a tenth of all, that are classed again one by one; of more the site is compiled anew."""
LEARNT = 50_000
"""Distinct terms that are known to read no new label; more are read again."""


class Observer:
    """Is told what changes in a followed site, while it changes. This one ignores everything; override what matters."""

    def begin(self, before: Snapshot, snapshot: Snapshot) -> None:
        """The site is about to be brought from one snapshot to the next."""

    def add_class(self, cls: PodClass) -> None:
        """A class is new; no pod is of it yet."""

    def change_pod(self, snapshot: Snapshot, key: str, before: Pod | None, now: Pod | None) -> None:
        """A pod came (before is None), changed or went (now is None); it is still where it was."""

    def stay(self, snapshot: Snapshot, key: str, before: Pod | None, now: Pod, place: Place) -> None:
        """A pod that changed is in the same class and place."""

    def leave(self, snapshot: Snapshot, key: str, place: Place) -> None:
        """A pod is about to leave its place."""

    def arrive(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        """A pod has come to its place."""

    def change_nodes(self, snapshot: Snapshot, changed: Collection[str], moved: Collection[str]) -> None:
        """Nodes are about to come, go, or change in what a rule reads of them; of those `moved`, only VM or host.

        Raises BadObjectError.
        """

    def nodes_changed(
        self, snapshot: Snapshot, changed: Collection[str], moved: Collection[str], pods: Mapping[str, Pod]
    ) -> None:
        """They have. `pods` are on nodes that came, went or have another VM or host."""

    def end(self, before: Snapshot, snapshot: Snapshot) -> None:
        """The site is as the snapshot says."""


class Follower:
    """Follows one site. `observer` is told of each step; it can be set later."""

    def __init__(self, site: CompiledSite, snapshot: Snapshot, observer: Observer | None = None) -> None:
        """`snapshot` is what the site was compiled from."""
        self._site = site
        self._nodes: dict[str, Node] = dict(snapshot.nodes)
        self._node_hosts: Mapping[str, NodeHost] = snapshot.node_hosts
        self._learnt = set[int]()
        self.observer = observer or Observer()

    def follow(self, before: Snapshot, snapshot: Snapshot) -> None:
        """Take in everything that is different. Raises Outdated, BadObjectError: the site is then of no use."""
        self.observer.begin(before, snapshot)
        for name in changed_keys(before.namespaces, snapshot.namespaces):
            self.follow_namespace(name, snapshot.namespaces.get(name))
        classifier = self._site.model.classifier
        for key in changed_keys(before.services, snapshot.services):
            namespace, service = key.partition("/")[0], snapshot.services.get(key)
            self._use(snapshot, before.pods, classifier.keys_of_service(key, namespace, service), namespace)
            classifier.change_service(key, namespace, service)
        self._follow_workloads(before, snapshot)
        self.follow_nodes(snapshot, changed_keys(before.nodes, snapshot.nodes), before.pods)
        changed = changed_keys(before.pods, snapshot.pods)
        for key in changed:
            pod, was = snapshot.pods.get(key), before.pods.get(key)
            if pod is not None and (was is None or not selects_alike(was, pod)):  # else its labels count since it came
                self.learn_labels(snapshot, pod, before.pods)
        for key in changed:
            self.follow_pod(snapshot, key, snapshot.pods.get(key), before.pods.get(key))
        if before.hosts is not snapshot.hosts:
            self._site.model.nodes.place(snapshot, ())
        self._site.settle()
        self.observer.end(before, snapshot)

    def follow_namespace(self, name: str, namespace: Namespace | None) -> None:
        """A namespace came, changed or (None) went. Raises Outdated, BadObjectError."""
        self._site.model.classifier.change_namespace(name, namespace)

    # ------------------------------------------------------------------------------------------------------- pods
    def follow_pod(self, snapshot: Snapshot, key: str, pod: Pod | None, before: Pod | None = None) -> None:
        """A pod came, changed or (None) went; `before` is the pod as it was, where the caller knows it.

        Raises Outdated, BadObjectError.
        """
        site = self._site
        self.observer.change_pod(snapshot, key, before, pod)
        place = None if pod is None or pod.status.phase in FINISHED else self._place(key, pod, before)
        was = site.places.get(key)
        if pod is not None and place is not None and place == was:
            site.refresh(key, pod, before)
            self.observer.stay(snapshot, key, before, pod, place)
            return
        if was is not None:
            self.observer.leave(snapshot, key, was)
            site.remove(key)
        if pod is not None and place is not None:
            site.add(key, pod, place)
            self.observer.arrive(snapshot, key, pod, place)

    def learn_labels(self, snapshot: Snapshot, pod: Pod | None, pods: Mapping[str, Pod]) -> None:
        """Let the labels count that a pod's terms read; to be called before the pod is followed or asked for.

        `pods` are those that the site has now, or newer ones: the ones that carry such a label get other classes, and
        nobody else does. Raises Outdated, BadObjectError.
        """
        if pod is None or (pod.spec.affinity is EMPTY_OBJECT and pod.spec.topology_spread_constraints is EMPTY_LIST):
            return
        parts = pod.metadata.namespace, bytes(pod.spec.affinity), bytes(pod.spec.topology_spread_constraints)
        at = hash(parts)  # whatever else has this hash is compiled anew
        if at in self._learnt:
            return
        if len(self._learnt) >= LEARNT:
            self._learnt.clear()
        self._learnt.add(at)
        for namespace, keys in self._site.model.classifier.new_keys(*parts).items():
            self._use(snapshot, pods, keys, namespace)

    def _use(self, snapshot: Snapshot, pods: Mapping[str, Pod], keys: Collection[str], namespace: str | None) -> None:
        """These labels count from now on, in one namespace or (None) in all."""
        if not keys:
            return
        classifier, site = self._site.model.classifier, self._site
        within = pods if namespace is None else site.pods_in(classifier.classes_in(namespace))
        carried = [json.encode(key) for key in keys]
        there = [
            key
            for key in within
            if key in site.places and key in pods and _names(bytes(pods[key].metadata.labels), carried)
        ]
        if len(there) > MANY + len(site.places) // 10:
            raise Outdated
        classifier.use(keys, namespace)
        for key in there:
            self._classify(snapshot, key, pods[key])

    def class_of(self, key: str, pod: Pod) -> Place:
        """The class and the request of a pod that need not be in the site. Raises Outdated, BadObjectError."""
        return self._place(key, pod, None)

    def _place(self, key: str, pod: Pod, before: Pod | None) -> Place:
        place, new = self._site.place_of(key, pod, before)
        if new:
            self.observer.add_class(self._site.model.classes[place.cls])
        return place

    def _follow_workloads(self, before: Snapshot, snapshot: Snapshot) -> None:
        """A workload that comes or goes may change the classes of its pods: the scheduler spreads them by itself."""
        classifier, owners = self._site.model.classifier, defaultdict[str, set[tuple[str, str]]](set)
        for name in changed_keys(before.workloads, snapshot.workloads):
            old, new = before.workloads.get(name), snapshot.workloads.get(name)
            if new is not None:
                self._use(snapshot, before.pods, classifier.keys_of_workload(new), new.metadata.namespace)
            if old is None or new is None or owners_of(old) != owners_of(new):
                self._site.model.owners += 1
            if classifier.change_workload(old, new):
                either = new or old
                assert either is not None
                owners[either.metadata.namespace].add((either.kind, either.metadata.name))
        for namespace, changed in owners.items():  # its pods are looked at once, however many workloads came
            for key in self._site.pods_in(classifier.classes_under(namespace, changed)):
                controller = controller_of(before.pods[key].metadata.owner_references)
                if controller is not None and (controller.kind, controller.name) in changed:
                    self._classify(snapshot, key, before.pods[key])

    def _classify(self, snapshot: Snapshot, key: str, pod: Pod) -> None:
        """A pod that did not change may be of another class now."""
        was = self._site.places[key]
        if (place := self._place(key, pod, None)) != was:
            self.observer.leave(snapshot, key, was)
            self._site.remove(key)
            self._site.add(key, pod, place)
            self.observer.arrive(snapshot, key, pod, place)

    # ------------------------------------------------------------------------------------------------------ nodes
    def follow_nodes(self, snapshot: Snapshot, names: Iterable[str], pods: Mapping[str, Pod]) -> None:
        """These nodes came, changed or went, and nodes are on the hosts that the snapshot says.

        `pods` are those that the site has now, or newer ones. Raises Outdated, BadObjectError.
        """
        touched: set[str] = set()
        for name in names:
            old, new = self._nodes.get(name), snapshot.nodes.get(name)
            self._site.change_images(name, old, new)
            if old is None or new is None or not reads_alike(old, new):
                touched.add(name)
            if new is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = new
        before, now = self._node_hosts, snapshot.node_hosts
        replaced = {name for name in changed_keys(before, now) if host_of(before.get(name)) != host_of(now.get(name))}
        self._node_hosts = now
        if touched or replaced:
            self._change_nodes(snapshot, touched, replaced, pods)

    def _change_nodes(
        self, snapshot: Snapshot, touched: Collection[str], replaced: Collection[str], pods: Mapping[str, Pod]
    ) -> None:
        site = self._site
        moved = {name for name in replaced if name not in touched}
        self.observer.change_nodes(snapshot, touched, moved)
        index = site.model.nodes.index
        exchanged = [name for name in touched if (name in index) != (name in snapshot.nodes)]
        rebound = {key: site.remove(key) for name in exchanged for key in site.pods_on(name)}
        site.change_nodes(snapshot, touched, replaced)
        for key, was in rebound.items():
            if key in pods:
                site.add(key, pods[key], site.placed(pods[key], was.cls, was.request))
        concerned = {*rebound, *(key for name in replaced for key in site.pods_on(name))}
        self.observer.nodes_changed(snapshot, touched, moved, {key: pods[key] for key in concerned if key in pods})


def _names(labels: bytes, keys: Iterable[bytes]) -> bool:
    """Whether any of these keys may be in the JSON."""
    return b"\\" in labels or any(key in labels for key in keys)
