"""Replicas of one application that share one ESXi host, or one node, and nothing asks for it: `co-located` findings.

In: pods with the node they are bound to, all at once or as they change. Out: findings in the store. Replicas that a
rule keeps apart are in a violation or a physical finding; those that a required affinity gathers are where they were
told to be.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import Place
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.owners import PINNED, Application, application_under, controller_of, ready, running
from underhost.agents.site.places import HOST, NODE, SamePlace, only_kind, place_of, share
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import OwnerReference, Pod
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import CO_LOCATED

REASON_HOST = "all ready replicas share a host"
REASON_NODE = "all ready replicas share a node"
NO_REPLICAS = (*PINNED, "Job")  # a Job's pods share the work; they do not stand in for one another
_BY_WORKLOAD = ("ReplicaSet", "VirtualMachineInstance")  # kinds whose application the workloads tell
_Owner = tuple[str, str, str]  # namespace, kind, name
_NOWHERE = SamePlace("", "", "", "")


class CoLocated:
    """The ready replicas of each application and where they are; indexed only where a site is followed."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._replicas: defaultdict[Application, dict[str, Place]] = defaultdict(dict)
        self._of_pod: dict[str, tuple[Application, _Owner]] = {}
        self._applications: dict[_Owner, tuple[Application, _Owner]] = {}  # shared by the owner's pods
        self._told: defaultdict[str, set[_Owner]] = defaultdict(set)  # by namespace, owners of `_BY_WORKLOAD`
        self._dirty: set[Application] = set()
        self._told_of: dict[str, Application] = {}  # by pod, the application whose finding names it
        self._pods_told: dict[Application, list[str]] = {}
        self._only = ""  # of what there was just one, which the messages say

    def judge_all(self, case: Case) -> None:
        """Look at every application; violations and physical findings are in the store already."""
        self._only = only_kind(case.snapshot)
        together = _in_one_place(case.snapshot)
        classes = case.classes_of({key for one in together for key in one.pods}) if together else {}
        for one in together:
            self._put(case, one.application, {key: classes[key] for key in one.pods}, one.place)
        self._store.take_regrouped()

    def index(self, snapshot: Snapshot, places: Mapping[str, Place]) -> None:
        """From now on changes are told: `places` are the pods of the snapshot that have not finished."""
        for key, place in places.items():
            self.change_pod(snapshot, key, snapshot.pods[key], place)
        self._dirty.clear()

    def change_pod(self, snapshot: Snapshot, key: str, pod: Pod | None, place: Place) -> None:
        """A pod has this place (its node may be absent, or it waits for one), or is gone (None)."""
        held = self._of_pod.pop(key, None)
        if held is not None:
            application, _ = held
            del self._replicas[application][key]
            self._dirty.add(application)
        is_bound = bool(place.node or place.absent)
        if pod is None or not is_bound or pod.metadata.deletion_timestamp is not None or not ready(pod):
            return
        reference = controller_of(pod.metadata.owner_references)
        if reference is None or reference.kind in NO_REPLICAS:
            return
        owner = (pod.metadata.namespace, reference.kind, reference.name)
        known = self._applications.get(owner)
        if known is None:
            application = application_under(snapshot, reference, pod.metadata.namespace)
            known = self._applications[owner] = application, owner
            if reference.kind in _BY_WORKLOAD:
                self._told[pod.metadata.namespace].add(owner)
        self._replicas[known[0]][key] = place
        self._of_pod[key] = known
        self._dirty.add(known[0])

    def move(self, key: str) -> None:
        """The host below a pod is another one."""
        if (held := self._of_pod.get(key)) is not None:
            self._dirty.add(held[0])

    def change_workloads(self, namespace: str) -> set[str]:
        """The pods whose application may be another now; the caller changes each of them."""
        found: set[str] = set()
        for owner in self._told.pop(namespace, ()):
            known = self._applications.pop(owner)
            found.update(key for key in self._replicas.get(known[0], ()) if self._of_pod[key][1] == owner)
        return found

    def told_of(self, key: str) -> Application | None:
        """The application of a pod that a finding names."""
        return self._told_of.get(key)

    def judge(self, case: Case) -> set[str]:
        """Look at the applications that changed, and at those whose pods' groups did.

        Returns the pods that other groups or findings name now than before, and maybe some more.
        """
        regrouped = self._store.take_regrouped()
        for key in regrouped:
            if key in self._of_pod:
                self._dirty.add(self._of_pod[key][0])
        if (only := only_kind(case.snapshot)) != self._only:
            self._only = only
            self._dirty.update(self._replicas)
        for application in self._dirty:
            replicas = self._replicas[application]
            if not replicas:
                del self._replicas[application]
            place = _common(case.snapshot, replicas.values()) if len(replicas) > 1 else None
            if place is None and application not in self._pods_told:
                continue  # as most are: they were told nothing of, and are not now
            regrouped.update(self._pods_told.get(application, ()))
            self._put(case, application, {key: one.cls for key, one in replicas.items()} if place else {}, place)
            regrouped.update(self._pods_told.get(application, ()))
        self._dirty.clear()
        return regrouped

    def _put(self, case: Case, application: Application, replicas: Mapping[str, int], place: SamePlace | None) -> None:
        """The finding of an application, whose ready replicas are these, by class, all in one place or (None) not."""
        found = NOTHING
        if place is not None and len(replicas) > 1:
            shared = [at for key in replicas for at in self._store.of_pod.get(key, ())]
            classes = [case.model.classes[cls] for cls in set(replicas.values())]
            if len(shared) == len(set(shared)) and not any(map(_is_gathered, classes)):
                why = _why(self._only, place, any(map(_prefers_apart, classes)))
                found = [_finding(case.snapshot, application, sorted(replicas), place, why)]
        self._store.put((CO_LOCATED, application), found)
        for key in self._pods_told.pop(application, ()):
            if self._told_of.get(key) == application:  # else it is another application's by now, which told it first
                del self._told_of[key]
        if found:
            self._pods_told[application] = list(replicas)
            self._told_of.update(dict.fromkeys(replicas, application))


def _is_gathered(cls: PodClass) -> bool:
    """Whether a required affinity gathers the pods of the class with their own."""
    return any(term.selector is not None and cls.id in term.selector.classes for term in cls.required_affinity)


def _prefers_apart(cls: PodClass) -> bool:
    """Whether a preference of the class, not one of the scheduler's own, keeps its pods apart."""
    own = any(one.weight < 0 and one.selector is not None and cls.id in one.selector.classes for one in cls.preferred)
    return own or (not cls.system_default and any(one.self_match for one in cls.soft))


def _common(snapshot: Snapshot, replicas: Iterable[Place]) -> SamePlace | None:
    """The place that the replicas share; most applications are spread after their second pod."""
    first = ""
    for one in replicas:
        node = one.node or one.absent
        first = first or node
        if node != first and not share(snapshot, first, node):
            return None
    return place_of(snapshot, first)


def _why(only: str, place: SamePlace, preferred: bool) -> str:
    """What lets the replicas be together; where there is no other place, no rule could keep them apart."""
    if only in (NODE, place.kind):
        return f"there is no other {only}."
    return f"{'only a preference keeps' if preferred else 'no rule keeps'} them apart."


def _finding(snapshot: Snapshot, application: Application, pods: list[str], place: SamePlace, why: str) -> Finding:
    """All ready replicas of an application in one place."""
    first = snapshot.pods[pods[0]]
    nodes = sorted({snapshot.pods[pod].spec.node_name for pod in pods})
    on = f" (nodes {f.listing(nodes)})" if place.kind == HOST and len(nodes) > 1 else ""
    message = (
        f"All {len(pods)} ready replicas of {application.kind} {application.namespace}/{application.name} "
        f"({f.listing(pods)}) run on {place}{on}, and {why}"
    )
    return Finding(
        id=f.finding_id(snapshot.site, CO_LOCATED, PHYSICAL_HOST, place.kind, place.id, f.uid_of(pods[0], first)),
        severity=CO_LOCATED,
        rule=PHYSICAL_HOST,
        reason=REASON_HOST if place.kind == HOST else REASON_NODE,
        message=message,
        pod=pods[0],
        node=first.spec.node_name,
        peers=pods[1:],
        domain=Domain(key=place.kind, value=place.name),
    )


class _Together:
    """The ready replicas of an application, as long as they are in one place."""

    __slots__ = ("application", "place", "pods", "spread")

    def __init__(self, application: Application) -> None:
        self.application, self.place, self.spread = application, _NOWHERE, False
        self.pods: list[str] = []


def _in_one_place(snapshot: Snapshot) -> list[_Together]:
    """The applications of two or more ready replicas that are all in one place.

    Most applications are spread after their second pod, and replicas are mostly listed one after another, with what was
    read of their owner shared: of most pods nothing more is looked at.
    """
    of_owner: dict[_Owner, _Together] = {}
    of_application: dict[Application, _Together] = {}
    owners: list[OwnerReference] | None = None
    namespace, seen = "", None
    places: dict[str, SamePlace] = {}
    for key, pod in snapshot.pods.items():
        meta = pod.metadata
        if meta.owner_references is not owners or meta.namespace != namespace:
            owners, namespace = meta.owner_references, meta.namespace
            owner, seen = controller_of(owners), None
            if owner is not None and owner.kind not in NO_REPLICAS:
                identity = (namespace, owner.kind, owner.name)
                seen = of_owner.get(identity)
                if seen is None:
                    application = application_under(snapshot, owner, namespace)
                    seen = of_owner[identity] = of_application.setdefault(application, _Together(application))
        if seen is None or seen.spread or meta.deletion_timestamp is not None or not running(pod) or not ready(pod):
            continue
        node = pod.spec.node_name
        place = places.get(node) or places.setdefault(node, place_of(snapshot, node))
        if not seen.pods:
            seen.place = place
        seen.spread = seen.place != place
        seen.pods.append(key)
    return [seen for seen in of_application.values() if not seen.spread and len(seen.pods) > 1]
