"""The evaluator that stays: it keeps a site compiled between cycles and judges only what a change can affect.

In: one snapshot of a site after another. Out: the same `Report` as `check.check`, and the same decisions as
`schedule.decide`. Called by the evaluator agent, one for each site; not for several threads at once. What changed is
found by identity: an object that is the same Python object as before is not looked at. Every rule, every word of a
finding is that of the full check. What cannot follow a change (`Outdated`) is compiled anew.
"""

from collections.abc import Iterable, Mapping

from underhost.agents.engine import findings as f
from underhost.agents.engine.check import check
from underhost.agents.engine.defaults import DefaultSelectors
from underhost.agents.engine.model import Model, compile
from underhost.agents.engine.reader import FINISHED
from underhost.agents.engine.resident_classes import Outdated
from underhost.agents.engine.resident_differences import (
    changed_keys,
    count_hosts,
    host_of,
    is_named_alike,
    owners_of,
    reads_alike,
)
from underhost.agents.engine.resident_judges import Judges
from underhost.agents.engine.resident_live import Live, Place
from underhost.agents.engine.resident_marks import Marks
from underhost.agents.engine.resident_sweep import marks_of
from underhost.agents.engine.schedule import PodDecision, decide
from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.kubernetes import Pod


class Resident:
    """The evaluator of one site. `rebuilt` counts how often it had to compile the whole site."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._before: Snapshot | None = None
        self._live: Live
        self._judges: Judges
        self._stale = False
        self.rebuilt = 0

    def update(self, snapshot: Snapshot, changed: Mapping[str, Iterable[str]] | None = None) -> Report:
        """The report of the snapshot.

        `changed` names, by mapping of the snapshot (`pods`, ...), the keys that may differ from the last one; a mapping
        that it lacks is compared key by key. Raises BadObjectError; the next update then starts anew.
        """
        if self._is_whole(snapshot):
            self._before = None
            return check(snapshot, self._options)
        before, self._before = self._before, None
        if before is None or before.site != snapshot.site:
            self._begin(snapshot)
        else:
            try:
                self._follow(before, snapshot, changed or {})
            except Outdated:
                self._begin(snapshot)
        self._before = snapshot
        return self._report(snapshot)

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str] | None = None) -> list[PodDecision]:
        """As `schedule.decide`. Raises BadObjectError."""
        if self._is_whole(snapshot):
            return decide(snapshot, self._options, assumed)
        if self._before is not snapshot:
            self.update(snapshot)
        names = self._options.scheduler_names
        if not any(pod.scheduler in names and not pod.terminating for pod in self._live.pending.values()):
            return []
        return decide(snapshot, self._options, assumed, self.model(snapshot))

    def model(self, snapshot: Snapshot) -> Model:
        """The site compiled, good until the next call, for whoever places pods himself. Raises BadObjectError."""
        if self._is_whole(snapshot):
            return compile(snapshot, self._options)
        if self._before is not snapshot:
            self.update(snapshot)
        if self._stale:
            self._begin(snapshot)
        self._live.show_waiting(snapshot)
        return self._live.model

    def _is_whole(self, snapshot: Snapshot) -> bool:
        """Whether nothing is kept: preferences are scored over all nodes, and claims are only in dumps."""
        return self._options.drift or bool(snapshot.claims)

    def _report(self, snapshot: Snapshot) -> Report:
        store = self._judges.store
        return Report(
            findings=store.findings(),
            budgets=self._judges.budgets.figures(),
            summary={
                "pods": len(self._live.places),
                "nodes": len(snapshot.nodes),
                "hosts": len(snapshot.hosts) or count_hosts(snapshot),
                **{severity: store.counts[severity] for severity in f.SEVERITIES},
            },
        )

    # ------------------------------------------------------------------------------------------------------- anew
    def _begin(self, snapshot: Snapshot) -> None:
        """Compile the site and judge all of it."""
        self.rebuilt += 1
        self._stale = False
        live = self._live = Live(snapshot, self._options)
        judges = self._judges = Judges(live, self._options)
        for name, budget in snapshot.budgets.items():
            judges.budgets.change_budget(name, budget, None)
        for key, pod in snapshot.pods.items():
            judges.budgets.change_pod(key, pod, None)
            place = live.places.get(key)
            if place is not None:
                if place.absent:
                    judges.unbound(snapshot, key, True)
                self._bound(snapshot, key, pod, place)
        judges.hosts.use(snapshot)
        judges.judge(snapshot, marks_of(snapshot, live, judges.relations))

    # ----------------------------------------------------------------------------------------------------- follow
    def _follow(self, before: Snapshot, snapshot: Snapshot, hints: Mapping[str, Iterable[str]]) -> None:
        """Take in what is different. Raises Outdated, BadObjectError."""
        marks = Marks()
        if before.namespaces is not snapshot.namespaces:
            for name in changed_keys(before.namespaces, snapshot.namespaces, hints.get("namespaces")):
                self._live.classifier.change_namespace(name, snapshot.namespaces.get(name))
        self._follow_selectors(before, snapshot, hints)
        self._follow_nodes(before, snapshot, hints, marks)
        if before.pods is not snapshot.pods:
            for key in changed_keys(before.pods, snapshot.pods, hints.get("pods")):
                self._follow_pod(snapshot, marks, key, before.pods.get(key), snapshot.pods.get(key))
        if before.budgets is not snapshot.budgets:
            for key in changed_keys(before.budgets, snapshot.budgets, hints.get("budgets")):
                self._judges.budgets.change_budget(key, snapshot.budgets.get(key), before.budgets.get(key))
        if before.hosts is not snapshot.hosts:
            self._live.model.nodes.place(snapshot, ())
            self._live.settle()
            self._judges.hosts.use(snapshot)
        self._judges.judge(snapshot, marks)

    def _follow_selectors(self, before: Snapshot, snapshot: Snapshot, hints: Mapping[str, Iterable[str]]) -> None:
        """Services and workloads: their selectors make the scheduler's own spreading, which only placement asks for."""
        for key in changed_keys(before.services, snapshot.services, hints.get("services")):
            if key in snapshot.services:
                DefaultSelectors({key: snapshot.services[key]}, {})  # raises for a selector that is none
            self._stale = True
        for key in changed_keys(before.workloads, snapshot.workloads, hints.get("workloads")):
            old, new = before.workloads.get(key), snapshot.workloads.get(key)
            if new is not None:
                DefaultSelectors({}, {key: new})
            self._stale |= old is None or new is None or bytes(old.spec.selector) != bytes(new.spec.selector)
            either = new or old
            assert either is not None
            namespace = either.metadata.namespace
            self._judges.budgets.change_workloads(namespace)
            if old is None or new is None or owners_of(old) != owners_of(new):
                for pod in self._judges.applications.change_workloads(namespace):
                    place = self._live.places[pod]
                    if pod in snapshot.pods:
                        self._judges.applications.change_pod(snapshot, pod, snapshot.pods[pod], place.cls)

    def _follow_pod(self, snapshot: Snapshot, marks: Marks, key: str, old: Pod | None, new: Pod | None) -> None:
        live, judges = self._live, self._judges
        judges.budgets.change_pod(key, new, old)
        alive = new is not None and new.status.phase not in FINISHED
        place = self._place(key, new) if new is not None and alive else None
        was = live.places.get(key)
        if was is not None and was == place and old is not None and new is not None and is_named_alike(old, new):
            live.refresh(key, new)
            self._bound(snapshot, key, new, was)
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

    def _place(self, key: str, pod: Pod) -> Place:
        place, new = self._live.place_of(key, pod)
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
        self._judges.unbound(snapshot, key, bool(place.absent))
        self._bound(snapshot, key, pod, place)

    def _bound(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        there = bool(place.node or place.absent)
        self._judges.applications.change_pod(snapshot, key, pod if there else None, place.cls)

    # ------------------------------------------------------------------------------------------------------ nodes
    def _follow_nodes(
        self, before: Snapshot, snapshot: Snapshot, hints: Mapping[str, Iterable[str]], marks: Marks
    ) -> None:
        live = self._live
        if before.vsphere is not snapshot.vsphere:
            marks.hosts.update(snapshot.nodes)
        touched, moved = set[str](), set[str]()
        for name in changed_keys(before.nodes, snapshot.nodes, hints.get("nodes")):
            old, new = before.nodes.get(name), snapshot.nodes.get(name)
            marks.hosts.add(name)
            if old is None or new is None or old.metadata.uid != new.metadata.uid:
                marks.nodes.add(name)
            if old is None or new is None:
                touched.add(name)
            else:
                live.images_stale |= bytes(old.status.images) != bytes(new.status.images)
                if not reads_alike(old, new):
                    touched.add(name)
        replaced = set[str]()
        if before.node_hosts is not snapshot.node_hosts:
            for name in changed_keys(before.node_hosts, snapshot.node_hosts, hints.get("node_hosts")):
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
        rebound = [key for name in others for key in self._on(name)]
        for key in rebound:
            live.remove(key)
        live.change_nodes(snapshot, touched, moved | replaced)
        judges.forget()
        for key in rebound:
            pod = before.pods[key]
            live.add(key, pod, self._place(key, pod))
            self._arrive_later(snapshot, before, marks, key, pod)
        for name in every:
            self._mark_node(marks, name, 1)
        marks.spread |= judges.eligible.differing(live)
        judges.hosts.touch()
        for name in replaced:
            for key in self._on(name):
                self._bound(snapshot, key, before.pods[key], live.places[key])

    def _arrive_later(self, snapshot: Snapshot, before: Snapshot, marks: Marks, key: str, pod: Pod) -> None:
        """A pod whose node came or went; the pod itself may have changed as well, and is followed afterwards."""
        place = self._live.places[key]
        self._judges.unbound(snapshot, key, bool(place.absent) and snapshot.pods.get(key) is not None)
        self._bound(snapshot, key, pod, place)

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
