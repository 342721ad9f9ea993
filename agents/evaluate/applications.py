"""Replicas in one place, kept up to date application by application.

In: pods with the node they are bound to, as they change. Out: findings in the store. The words are `colocated.py`'s.
"""

from collections import defaultdict
from collections.abc import Sequence

from underhost.agents.compiled.classes import PodClass
from underhost.agents.evaluate import colocated as c
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.site.owners import Application, application_under, controller_of, ready
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Pod

Owner = tuple[str, str, str]  # namespace, kind, name
_BY_WORKLOAD = ("ReplicaSet", "VirtualMachineInstance")  # kinds whose application the workloads tell


class Applications:
    """The ready replicas of each application and where they are."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._replicas: defaultdict[Application, dict[str, tuple[int, str]]] = defaultdict(dict)  # class, node
        self._of_pod: dict[str, tuple[Application, Owner]] = {}
        self._by_owner: defaultdict[Owner, set[str]] = defaultdict(set)
        self._applications: dict[Owner, Application] = {}
        self._told: defaultdict[str, set[Owner]] = defaultdict(set)  # by namespace, owners of `_BY_WORKLOAD`
        self._dirty: set[Application] = set()

    def change_pod(self, snapshot: Snapshot, key: str, pod: Pod | None, cls: int) -> None:
        """A pod is bound (to a node that is there or not) with this class, or is not (None), or its node moved."""
        held = self._of_pod.pop(key, None)
        if held is not None:
            application, owner = held
            del self._replicas[application][key]
            self._by_owner[owner].discard(key)
            self._dirty.add(application)
        if pod is None or pod.metadata.deletion_timestamp is not None or not ready(pod):
            return
        reference = controller_of(pod.metadata.owner_references)
        if reference is None or reference.kind in c.NO_REPLICAS:
            return
        owner = (pod.metadata.namespace, reference.kind, reference.name)
        known = self._applications.get(owner)
        if known is None:
            known = self._applications[owner] = application_under(snapshot, reference, pod.metadata.namespace)
            if reference.kind in _BY_WORKLOAD:
                self._told[pod.metadata.namespace].add(owner)
        self._replicas[known][key] = (cls, pod.spec.node_name)
        self._of_pod[key] = known, owner
        self._by_owner[owner].add(key)
        self._dirty.add(known)

    def change_workloads(self, namespace: str) -> set[str]:
        """The pods whose application may be another now; the caller changes each of them."""
        found: set[str] = set()
        for owner in self._told.pop(namespace, ()):
            del self._applications[owner]
            found |= self._by_owner[owner]
        return found

    def judge(self, snapshot: Snapshot, classes: list[PodClass]) -> None:
        """Look at the applications that changed, and at those whose pods' groups did."""
        for key in self._store.take_regrouped():
            if key in self._of_pod:
                self._dirty.add(self._of_pod[key][0])
        for application in self._dirty:
            replicas = self._replicas[application]
            found = NOTHING
            place = _common(snapshot, [node for _, node in replicas.values()]) if len(replicas) > 1 else None
            if place is not None and self._is_worth_telling(replicas, classes):
                found = [c.colocated_finding(snapshot, application, sorted(replicas), place)]
            elif not replicas:
                del self._replicas[application]
            self._store.put(("colocated", application), found)
        self._dirty.clear()

    def _is_worth_telling(self, replicas: dict[str, tuple[int, str]], classes: list[PodClass]) -> bool:
        shared = [at for key in replicas for at in self._store.of_pod.get(key, ())]
        return len(shared) == len(set(shared)) and not any(c.is_gathered(classes[cls]) for cls, _ in replicas.values())


def _common(snapshot: Snapshot, nodes: Sequence[str]) -> c.Place | None:
    """The place that the nodes share; most applications are spread after their second pod."""
    first = _place(snapshot, nodes[0])
    return first if all(node == nodes[0] or _place(snapshot, node) == first for node in nodes) else None


def _place(snapshot: Snapshot, node: str) -> c.Place:
    return c.place_of(snapshot, node) if node in snapshot.nodes else c.Place(c.NODE, node, node)
