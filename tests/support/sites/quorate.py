"""Random sites with quorums, and what the loss of each host takes, by brute force.

The site knows by itself who is a member of what: only `said_of` asks. `breaches` loses every host (and every
node whose host is unknown), one after another, and counts who is left.
"""

import random
from typing import NamedTuple

from support.build import Built, a_node, a_pod, a_site, a_workload

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.severities import QUORUM

ROLE = "node-role.kubernetes.io/"
ANNOTATION = "underhost.io/quorum"


class Known(NamedTuple):
    """A quorum: its name in a message, how many members it should have, how many must stay, and the members' nodes."""

    name: str
    size: int
    stay: int
    on: list[str]


def said_of(site: "QuorateSite") -> set[tuple[str, str, str]]:
    """What a check says of it, in the form of `QuorateSite.breaches`."""
    told = set()
    for one in check(site.snapshot, Options()).findings:
        if one.severity == QUORUM and one.domain is not None:
            name = one.message.partition(" members of ")[2].partition(" (")[0]
            told.add((name, one.domain.key, one.domain.value))
    return told


class QuorateSite:
    """One random site, the same for the same seed: `snapshot`, and the quorums that are in it."""

    def __init__(self, seed: int) -> None:
        self._pick = pick = random.Random(seed)
        names = [f"h{at}" for at in range(pick.randrange(1, 7))]
        self.nodes = [f"n{at}" for at in range(pick.randrange(1, 13))]
        crowded = pick.sample(names, pick.randrange(1, len(names) + 1))
        self.host = {node: "" if pick.random() < 0.1 else pick.choice(crowded) for node in self.nodes}
        self.known: list[Known] = []
        self._objects: list[Built] = []
        self._labels: dict[str, dict[str, str]] = {node: {} for node in self.nodes}
        self._notes: dict[str, str] = {}
        self._control_plane()
        for at in range(pick.randrange(4)):
            self._workload(f"w{at}")
        for name in self.nodes:
            node = a_node(name).labels(self._labels[name])
            asked = {"annotations": {ANNOTATION: self._notes[name]}} if name in self._notes else {}
            self._objects.append(node.metadata(**asked))
        pick.shuffle(self._objects)
        self.snapshot: Snapshot = a_site(*self._objects, on=self.host)

    def breaches(self) -> set[tuple[str, str, str]]:
        """(quorum, host or node, its name): its loss leaves too few, though another placement would not."""
        places = {("node", node, node) for node in self.nodes if not self.host[node]}
        places |= {("host", host, f"esx-{host}") for host in self.host.values() if host}
        found = set()
        for one in self.known:
            if one.size - 1 < one.stay:
                continue  # whoever is lost, too few are left: no placement is right
            for kind, place, name in places:
                lost = sum((self.host[node] or node) == place for node in one.on)
                if one.size - lost < one.stay:
                    found.add((one.name, kind, name))
        return found

    # -------------------------------------------------------------------------------------------------------- members
    def _control_plane(self) -> None:
        pick, form = self._pick, self._pick.choice(["none", "stacked", "labels", "roles", "outside", "annotated"])
        control = pick.sample(self.nodes, min(len(self.nodes), pick.choice([1, 3, 3, 3, 4, 5, 7])))
        if form in ("stacked", "labels", "roles"):
            for node in control:
                self._labels[node] |= {f"{ROLE}{pick.choice(['control-plane', 'master'])}": ""}
        if form == "stacked":
            for node in control:
                self._static("etcd", node)
                self._static("kube-apiserver", node)
            self._know("etcd", control)
        elif form == "labels":
            self._know("the control plane", control)
        elif form == "roles":  # every control-plane node is etcd's, and some more are
            etcd = [*control, *(node for node in self.nodes if node not in control and pick.random() < 0.3)]
            for node in etcd:
                self._labels[node] |= {f"{ROLE}etcd": "true"}
            self._know("etcd", etcd)
            if etcd != control:
                self._know("the control plane", control)
        elif form in ("outside", "annotated"):
            others = [node for node in self.nodes if node not in control]
            etcd = pick.sample(others, min(len(others), 3))
            for node in control:
                self._static("kube-apiserver", node)
            for node in etcd:
                if form == "outside":
                    self._static("etcd", node)
                else:
                    self._notes[node] = "true"
            if etcd:
                self._know("etcd", etcd)
                self.known.append(Known("the control plane", len(control), 1, control))
            else:
                self._know("the control plane", control)

    def _know(self, name: str, nodes: list[str]) -> None:
        self.known.append(Known(name, len(nodes), len(nodes) // 2 + 1, nodes))

    def _static(self, component: str, node: str) -> None:
        pod = a_pod(f"{component}-{node}", "kube-system").labels(component=component).owned_by(f"Node/{node}").on(node)
        self._objects.append(pod.metadata(annotations={"kubernetes.io/config.mirror": "x"}))

    def _workload(self, name: str) -> None:
        pick = self._pick
        kind = pick.choice(["StatefulSet", "Deployment", "Outsider"])
        replicas, asked = pick.randrange(0, 8), pick.choice(["true", "true", "1", "2", "3", "false", "most", None])
        surge = pick.choice([0, 0, 0, 1])
        waiting = sum(pick.random() < 0.15 for _ in range(replicas))
        owner = kind
        if kind == "Deployment":
            owner = "ReplicaSet"
            set_ = a_workload("ReplicaSet", f"{name}-1", replicas).owned_by(f"Deployment/{name}")
            self._objects.append(set_)
        own = f"{owner}/{name}-1" if owner == "ReplicaSet" else f"{owner}/{name}"
        notes = {"annotations": {ANNOTATION: asked}} if asked is not None else {}
        by_pods = kind == "Outsider" or pick.random() < 0.3
        if kind != "Outsider":
            workload = a_workload(kind, name, replicas)
            self._objects.append(workload if by_pods else workload.metadata(**notes))
        on = []
        for at in range(replicas + surge):
            pod = a_pod(f"{name}-{at}").owned_by(own)
            pod = pod.metadata(**notes) if by_pods else pod
            if at >= waiting:
                node = pick.choice(self.nodes)
                on.append(node)
                pod = pod.on(node).ready(pick.random() < 0.8)
            self._objects.append(pod)
        self._objects.append(a_pod(f"{name}-old").owned_by(own).on(pick.choice(self.nodes)).deleted())
        self._objects.append(a_pod(f"{name}-done").owned_by(own).on(pick.choice(self.nodes)).finished())
        if asked not in ("false", "most", None) and replicas + surge:
            size = replicas + surge
            wanted = replicas if kind != "Outsider" and replicas else size
            stay = wanted // 2 + 1 if asked == "true" else int(asked)
            self.known.append(Known(f"{kind} shop/{name}", size, stay, on))
