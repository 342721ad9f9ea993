"""Takes what is different between two snapshots into what is compiled of a site, and has judged what it can affect.

In: the snapshot before and the one now. Out: a live model that is the one now, its findings in the store. The pods of a
changed node are marked under what was and under what is; in between the model follows.
"""

from underhost.agents.compiled.live import Live, Place
from underhost.agents.compiled.reader import FINISHED
from underhost.agents.evaluate.applications import Owner
from underhost.agents.evaluate.judges import Judges
from underhost.agents.evaluate.marks import Marks
from underhost.agents.site.changes import changed_keys, host_of, is_named_alike, owners_of, reads_alike
from underhost.agents.site.owners import controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Pod


class Following:
    """Follows one site."""

    def __init__(self, live: Live, judges: Judges) -> None:
        self._live, self._judges = live, judges

    def follow(self, before: Snapshot, snapshot: Snapshot) -> None:
        """Take in what is different, and judge what it concerns. Raises Outdated, BadObjectError."""
        marks = Marks()
        if before.namespaces is not snapshot.namespaces:
            for name in changed_keys(before.namespaces, snapshot.namespaces):
                self._live.classifier.change_namespace(name, snapshot.namespaces.get(name))
        self._follow_selectors(before, snapshot, marks)
        self._follow_nodes(before, snapshot, marks)
        if before.pods is not snapshot.pods:
            for key in changed_keys(before.pods, snapshot.pods):
                self._follow_pod(snapshot, marks, key, before.pods.get(key), snapshot.pods.get(key))
        if before.budgets is not snapshot.budgets:
            for key in changed_keys(before.budgets, snapshot.budgets):
                self._judges.budgets.change_budget(key, snapshot.budgets.get(key), before.budgets.get(key))
        if before.hosts is not snapshot.hosts:
            self._live.model.nodes.place(snapshot, ())
            self._live.settle()
            self._judges.hosts.use(snapshot)
        self._judges.judge(snapshot, marks)

    def _follow_selectors(self, before: Snapshot, snapshot: Snapshot, marks: Marks) -> None:
        """Services and workloads: their selectors make the scheduler's own spreading; owners tell applications."""
        classifier, judges = self._live.classifier, self._judges
        for key in changed_keys(before.services, snapshot.services):
            service = snapshot.services.get(key)
            classifier.change_service(key, key.partition("/")[0], service)
        regrouped = set[Owner]()
        for name in changed_keys(before.workloads, snapshot.workloads):
            old, new = before.workloads.get(name), snapshot.workloads.get(name)
            either = new or old
            assert either is not None
            namespace = either.metadata.namespace
            judges.budgets.change_workloads(namespace)
            if classifier.change_workload(old, new):
                regrouped.add((namespace, either.kind, either.metadata.name))
            if old is None or new is None or owners_of(old) != owners_of(new):
                for key in judges.applications.change_workloads(namespace):
                    if key in snapshot.pods:
                        judges.applications.change_pod(snapshot, key, snapshot.pods[key], self._live.places[key].cls)
        for namespace in {owner[0] for owner in regrouped}:
            for key, pod in list(judges.budgets.pods_of(namespace).items()):
                controller = controller_of(pod.metadata.owner_references)
                if controller is not None and (namespace, controller.kind, controller.name) in regrouped:
                    self._classify(snapshot, marks, key, pod)

    def _classify(self, snapshot: Snapshot, marks: Marks, key: str, pod: Pod) -> None:
        """A pod that was there may be of another class now."""
        was = self._live.places.get(key)
        if was is not None and (place := self._place(key, pod)) != was:
            self._leave(marks, key)
            self._live.add(key, pod, place)
            self._arrive(snapshot, marks, key, pod)

    def _follow_pod(self, snapshot: Snapshot, marks: Marks, key: str, old: Pod | None, new: Pod | None) -> None:
        live, judges = self._live, self._judges
        judges.budgets.change_pod(key, new, old)
        alive = new is not None and new.status.phase not in FINISHED
        place = self._place(key, new, old) if new is not None and alive else None
        was = live.places.get(key)
        if was is not None and was == place and old is not None and new is not None and is_named_alike(old, new):
            live.refresh(key, new)
            judges.bound(snapshot, key, new, was)
            if owners_of(old) != owners_of(new) or old.metadata.annotations != new.metadata.annotations:
                marks.nodes.add(was.node)
                judges.hosts.touch()
            return
        if was is not None:
            self._leave(marks, key)
            judges.applications.change_pod(snapshot, key, None, was.cls)
            judges.unbound(snapshot, key, False)
        if new is not None and place is not None:
            live.add(key, new, place)
            self._arrive(snapshot, marks, key, new)

    def _place(self, key: str, pod: Pod, before: Pod | None = None) -> Place:
        place, new = self._live.place_of(key, pod, before)
        if new:
            self._judges.add_class(self._live.model.classes[place.cls])
        return place

    def _leave(self, marks: Marks, key: str) -> None:
        place = self._live.places[key]
        marks.pod(self._live, self._judges.relations, key, place)
        self._live.remove(key)
        self._judges.count(place, -1)

    def _arrive(self, snapshot: Snapshot, marks: Marks, key: str, pod: Pod) -> None:
        place = self._live.places[key]
        marks.pod(self._live, self._judges.relations, key, place)
        self._judges.count(place, 1)
        self._show(snapshot, key, pod, place)

    def _show(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        """Where a pod is; the pod itself may have gone or changed since, and is followed afterwards."""
        self._judges.unbound(snapshot, key, bool(place.absent) and key in snapshot.pods)
        self._judges.bound(snapshot, key, pod, place)

    # ------------------------------------------------------------------------------------------------------ nodes
    def _follow_nodes(self, before: Snapshot, snapshot: Snapshot, marks: Marks) -> None:
        live = self._live
        if before.vsphere is not snapshot.vsphere:
            marks.hosts.update(snapshot.nodes)
        touched, moved = set[str](), set[str]()
        for name in changed_keys(before.nodes, snapshot.nodes):
            old, new = before.nodes.get(name), snapshot.nodes.get(name)
            marks.hosts.add(name)
            if old is None or new is None or old.metadata.uid != new.metadata.uid:
                marks.nodes.add(name)
            live.change_images(name, old, new)
            if old is None or new is None or not reads_alike(old, new):
                touched.add(name)
        replaced = set[str]()
        if before.node_hosts is not snapshot.node_hosts:
            for name in changed_keys(before.node_hosts, snapshot.node_hosts):
                one, other = before.node_hosts.get(name), snapshot.node_hosts.get(name)
                if host_of(one) != host_of(other):
                    replaced.add(name)
                    marks.hosts.add(name)
                    if one is None or other is None or one.host != other.host:
                        moved.add(name)
        if touched or replaced:
            self._change_nodes(before, snapshot, marks, touched, moved, replaced)

    def _change_nodes(
        self,
        before: Snapshot,
        snapshot: Snapshot,
        marks: Marks,
        touched: set[str],
        moved: set[str],
        replaced: set[str],
    ) -> None:
        """Mark the pods of these nodes under what was and what is; in between the model follows."""
        live, judges = self._live, self._judges
        every = touched | moved
        judges.eligible.know(live)
        for name in every:
            self._mark_node(marks, name, -1)
        others = [name for name in touched if (name in before.nodes) != (name in snapshot.nodes)]
        rebound = {key: live.remove(key) for name in others for key in self._on(name)}
        live.change_nodes(snapshot, touched, moved | replaced)
        judges.forget()
        for key, was in rebound.items():
            pod = before.pods[key]
            live.add(key, pod, live.placed(pod, was.cls, was.request))
            self._show(snapshot, key, pod, live.places[key])
        for name in every:
            self._mark_node(marks, name, 1)
        marks.spread |= judges.eligible.differing(live)
        judges.hosts.touch()
        for name in replaced:
            for key in self._on(name):
                judges.bound(snapshot, key, before.pods[key], live.places[key])

    def _on(self, name: str) -> list[str]:
        """The pods bound to a node, there or not."""
        node, model = self._live.model.nodes.index.get(name), self._live.model
        if node is not None:
            return [model.running.keys[at] for at in model.on_node[node]]
        return list(self._live.unbound.get(name, ()))

    def _mark_node(self, marks: Marks, name: str, sign: int) -> None:
        """The pods of a node that is about to change (sign -1) or has changed."""
        marks.nodes.add(name)
        for key in self._on(name):
            place = self._live.places[key]
            marks.pod(self._live, self._judges.relations, key, place)
            self._judges.count(place, sign)
