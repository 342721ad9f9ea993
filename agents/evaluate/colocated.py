"""Replicas of one application that share one ESXi host, or one node, although nothing asks for it.

In: a snapshot, its model and what is found already. Out: `co-located` findings. Replicas that a rule keeps apart are in
a violation or a physical finding; those that a required affinity gathers are where they were told to be.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.model import Model
from underhost.agents.evaluate import findings as f
from underhost.agents.site.owners import PINNED, Application, application_under, controller_of, ready
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding

RULE = "PhysicalHost"
REASON_HOST = "all ready replicas share an ESXi host"
REASON_NODE = "all ready replicas share a node"
HOST, NODE = "host", "node"
NO_REPLICAS = (*PINNED, "Job")  # a Job's pods share the work; they do not stand in for one another


class Place(NamedTuple):
    """A host, or a node whose host is unknown."""

    kind: str
    id: str
    name: str


def colocated_findings(snapshot: Snapshot, model: Model, known: Iterable[Finding] = ()) -> list[Finding]:
    """Two or more ready replicas of one owner, all in one place, where no rule says so.

    `known` are findings of broken or undone rules: replicas that share one of these are not found again.
    """
    told, alike = _gathered(model), sorted(_in_one_place(snapshot, model), key=lambda one: one.application)
    of_pod: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, finding in enumerate(known):
        for pod in (finding.pod, *finding.peers) if finding.peers and alike else ():
            of_pod[pod].append(at)
    found = []
    for one in alike:
        shared = [at for key, _ in one.members for at in of_pod.get(key, ())]
        if len(shared) == len(set(shared)) and not any(cls in told for _, cls in one.members):
            found.append(colocated_finding(snapshot, one.application, sorted(key for key, _ in one.members), one.place))
    return f.in_order(found)


class _Together:
    """The ready replicas of an application, (pod, class), as long as they are in one place."""

    __slots__ = ("application", "members", "place", "spread")

    def __init__(self, application: Application, place: Place) -> None:
        self.application, self.place, self.spread = application, place, False
        self.members: list[tuple[str, int]] = []


def _in_one_place(snapshot: Snapshot, model: Model) -> list[_Together]:
    """The applications of two or more ready replicas that are all in one place.

    Most applications are spread after their second pod: of their others nothing more is read than the owner.
    """
    of_owner: dict[tuple[str, str, str], _Together] = {}
    of_application: dict[Application, _Together] = {}
    pods = snapshot.pods
    for key, cls, place in _placed(snapshot, model):
        meta = pods[key].metadata
        owners = meta.owner_references
        if not owners:
            continue
        owner = owners[0] if owners[0].controller else controller_of(owners)
        if owner is None:
            continue
        identity = (owner.name, meta.namespace, owner.kind)
        seen = of_owner.get(identity)
        if seen is None:
            if owner.kind in NO_REPLICAS:
                continue
            application = application_under(snapshot, owner, meta.namespace)
            seen = of_owner[identity] = of_application.setdefault(application, _Together(application, place))
        if seen.spread or meta.deletion_timestamp is not None or not ready(pods[key]):
            continue
        if not seen.members:
            seen.place = place
        seen.spread = seen.place is not place and seen.place != place
        seen.members.append((key, cls))
    return [seen for seen in of_application.values() if not seen.spread and len(seen.members) > 1]


def _placed(snapshot: Snapshot, model: Model) -> Iterable[tuple[str, int, Place]]:
    """(pod, class, place) of every bound pod; an absent node is a place of its own."""
    places = [place_of(snapshot, name) for name in model.nodes.names]
    running = model.running
    there = zip(running.keys, running.classes.tolist(), map(places.__getitem__, running.nodes.tolist()), strict=True)
    elsewhere = []
    for pod in model.unbound:
        node = snapshot.pods[pod.key].spec.node_name
        elsewhere.append((pod.key, pod.cls, Place(NODE, node, node)))
    return chain(there, elsewhere)


def place_of(snapshot: Snapshot, node: str) -> Place:
    """Where a node of the input is: on its host where that is known."""
    joined = snapshot.node_hosts.get(node)
    if joined is not None and joined.host:
        return Place(HOST, joined.host, joined.host_name)
    return Place(NODE, node, node)


def _gathered(model: Model) -> set[int]:
    return {cls.id for cls in model.classes if cls.required_affinity and is_gathered(cls)}


def is_gathered(cls: PodClass) -> bool:
    """Whether a required affinity gathers the pods of the class with their own."""
    return any(term.selector is not None and cls.id in term.selector.classes for term in cls.required_affinity)


def colocated_finding(snapshot: Snapshot, application: Application, pods: list[str], place: Place) -> Finding:
    """All ready replicas of an application in one place."""
    first = snapshot.pods[pods[0]]
    where = f"ESXi host {place.name}" if place.kind == HOST else f"node {place.name}"
    nodes = sorted({snapshot.pods[pod].spec.node_name for pod in pods})
    on = f" (nodes {f.listing(nodes)})" if place.kind == HOST and len(nodes) > 1 else ""
    message = (
        f"All {len(pods)} ready replicas of {application.kind} {application.namespace}/{application.name} "
        f"({f.listing(pods)}) run on {where}{on}, and no rule keeps them apart."
    )
    return Finding(
        id=f.finding_id(snapshot.site, f.CO_LOCATED, RULE, place.kind, place.id, f.uid_of(pods[0], first)),
        severity=f.CO_LOCATED,
        rule=RULE,
        reason=REASON_HOST if place.kind == HOST else REASON_NODE,
        message=message,
        pod=pods[0],
        node=first.spec.node_name,
        peers=pods[1:],
        domain=Domain(key=place.kind, value=place.name),
    )
