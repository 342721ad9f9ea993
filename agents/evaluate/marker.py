"""Marks what a change of the site can affect, while the compiled site follows the change.

In: the follower's steps. Out: marks for the judges, and judges that know of pods, budgets and owners. The pods of a
changed node are marked twice: under what was and under what is.
"""

from collections.abc import Collection, Mapping

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.follower import Observer
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.evaluate.judges import Judges
from underhost.agents.evaluate.marks import Marks
from underhost.agents.site.changes import changed_keys, host_of, is_named_alike, is_owned_alike, owners_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Pod


class Marker(Observer):
    """Collects marks until they are taken; several changes may be followed before they are judged."""

    def __init__(self, site: CompiledSite, judges: Judges) -> None:
        self._site, self._judges, self._marks = site, judges, Marks()
        self._relabelled: dict[str, set[str]] = {}
        self._crossing: set[str] = set()

    def take(self) -> Marks:
        """What has to be judged."""
        taken, self._marks = self._marks, Marks()
        return taken

    def begin(self, before: Snapshot, snapshot: Snapshot) -> None:
        """Owners tell applications, and workloads what budgets expect."""
        judges, pods = self._judges, snapshot.pods
        for name in changed_keys(before.workloads, snapshot.workloads):
            old, new = before.workloads.get(name), snapshot.workloads.get(name)
            either = new or old
            assert either is not None
            namespace = either.metadata.namespace
            judges.budgets.change_workloads(namespace)
            judges.quorums.members.change_workload(snapshot, name, old, self._pods_in)
            if old is None or new is None or owners_of(old) != owners_of(new):
                for key in judges.colocated.change_workloads(namespace) & pods.keys():
                    judges.colocated.change_pod(snapshot, key, pods[key], self._site.places[key])
        for name in changed_keys(before.nodes, snapshot.nodes):
            one, other = before.nodes.get(name), snapshot.nodes.get(name)
            self._marks.hosts.add(name)
            judges.quorums.members.change_node(name, other)
            if one is None or other is None or one.metadata.uid != other.metadata.uid:
                self._marks.nodes.add(name)
        self._marks.hosts.update(changed_keys(before.rivals, snapshot.rivals))
        for name in changed_keys(before.node_hosts, snapshot.node_hosts):
            if host_of(before.node_hosts.get(name)) != host_of(snapshot.node_hosts.get(name)):
                self._marks.hosts.add(name)
                judges.quorums.members.move(name)

    def end(self, before: Snapshot, snapshot: Snapshot) -> None:
        """Budgets cover the pods that are there now, and hosts have their nodes."""
        if changed := changed_keys(before.budgets, snapshot.budgets):
            self._judges.budgets.change_budgets({key: snapshot.budgets.get(key) for key in changed}, snapshot.pods)
        if before.hosts is not snapshot.hosts:
            self._judges.unsatisfiable.use(snapshot, self._site.model)
            self._judges.overdrawn.change_nodes()
        if changed_keys(before.namespaces, snapshot.namespaces):
            self._judges.overdrawn.change_names()

    def add_class(self, cls: PodClass) -> None:
        """All judges learn of it."""
        self._judges.add_class(cls)

    # ------------------------------------------------------------------------------------------------------- pods
    def change_pod(self, snapshot: Snapshot, key: str, before: Pod | None, now: Pod | None) -> None:
        """Budgets cover finished pods, too."""
        self._judges.budgets.change_pod(key, now)
        self._judges.quorums.members.change_pod(snapshot, key, now)

    def stay(self, snapshot: Snapshot, key: str, before: Pod | None, now: Pod, place: Place) -> None:
        """Another pod of the same name is told of anew; of the same pod, only what else findings read."""
        if before is None or not is_named_alike(before, now):
            self._marks.pod(self._site, self._judges.relations, key, place)
            self._judges.unsatisfiable.touch()
            self._judges.tell(snapshot, key, now, place)
            return
        self._judges.colocated.change_pod(snapshot, key, now, place)
        if not is_owned_alike(before, now):
            self._marks.nodes.add(place.node)
            self._judges.unsatisfiable.touch()

    def leave(self, snapshot: Snapshot, key: str, place: Place) -> None:
        """The others at the place are judged without it."""
        self._marks.pod(self._site, self._judges.relations, key, place)
        self._judges.count(self._site, place, -1)
        self._judges.nodes.judge_pod(snapshot, key, False)
        self._judges.colocated.change_pod(snapshot, key, None, place)

    def arrive(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        """It is judged, and the others at the place with it."""
        self._marks.pod(self._site, self._judges.relations, key, place)
        self._judges.count(self._site, place, 1)
        self._judges.tell(snapshot, key, pod, place)

    # ------------------------------------------------------------------------------------------------------ nodes
    def change_nodes(self, snapshot: Snapshot, changed: Collection[str], moved: Collection[str]) -> None:
        """Mark under what was."""
        self._relabelled = self._site.relabelled(snapshot, changed)
        self._crossing = {name for name in moved if self._crosses(snapshot, name)}
        if changed or self._judges.ask_for_hosts:
            self._judges.eligible.know(self._site)
        self._mark_nodes(changed, moved, -1)

    def nodes_changed(
        self, snapshot: Snapshot, changed: Collection[str], moved: Collection[str], pods: Mapping[str, Pod]
    ) -> None:
        """Mark under what is."""
        self._mark_nodes(changed, moved, 1)
        if changed or self._judges.ask_for_hosts:
            self._marks.spread |= self._judges.eligible.differing(self._site)
        self._judges.unsatisfiable.touch()
        self._judges.change_nodes(pods)
        for key, pod in pods.items():
            place = self._site.places[key]
            if place.node in moved:
                self._judges.move(key)
            else:
                self._judges.tell(snapshot, key, pod, place)

    def _mark_nodes(self, changed: Collection[str], moved: Collection[str], sign: int) -> None:
        """Where no rule but of hosts themselves asks for a node's host, a vMotion concerns these alone.

        Nobody meets others on a node that stays on its host, but by labels that it has got or lost.
        """
        site, judges = self._site, self._judges
        if judges.ask_for_hosts:
            changed, moved = {*changed, *moved}, ()
        for name in changed:
            self._marks.nodes.add(name)
            keys = self._relabelled.get(name)
            for key in site.pods_on(name):
                place = site.places[key]
                self._marks.pod(site, judges.relations, key, place, keys)
                if keys is None:
                    judges.count(site, place, sign)
        for name in moved:
            node = site.model.nodes.index.get(name)
            if node is None:
                continue
            if sign < 0:  # where nothing was found, nothing is when pods have left
                host, is_host_key = site.host_of(node), site.model.topology.is_host_key
                self._marks.undone.update(judges.physical.held(host))
                self._marks.broken.update(one for one in judges.anti_affinity.held(host) if is_host_key(one[0].key))
            else:
                self._marks.came_to_host(site, judges.relations, node)
            for key in site.pods_on(name) if name in self._crossing else ():
                judges.unsatisfiable.count(site, site.places[key], sign)

    def _crosses(self, snapshot: Snapshot, name: str) -> bool:
        """Whether the host that a node comes to is in another vSphere cluster than the one that it leaves."""
        node, joined = self._site.model.nodes.index.get(name), snapshot.node_hosts.get(name)
        before = "" if node is None else self._site.host_of(node)
        return self._judges.unsatisfiable.crosses(before, joined.host if joined is not None else "")

    def _pods_in(self, namespace: str) -> list[str]:
        return self._site.pods_in(self._site.model.classifier.classes_in(namespace))
