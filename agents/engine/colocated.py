"""Replicas of one application that share one ESXi host, or one node, although nothing asks for it.

In: a snapshot, its model and what is found already. Out: `co-located` findings. Called by `check.py`. Replicas that a
rule keeps apart are in a violation or a physical finding; those that a required affinity gathers are where they were
told to be.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from underhost.agents.engine import findings as f
from underhost.agents.engine.model import Model
from underhost.agents.engine.owners import PINNED, Application, application_under, controller_of, ready
from underhost.agents.engine.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding

RULE = "PhysicalHost"
REASON_HOST = "all ready replicas share an ESXi host"
REASON_NODE = "all ready replicas share a node"
HOST, NODE = "host", "node"
_NO_REPLICAS = ("Job",)  # its pods share the work; they do not stand in for one another


class _Place(NamedTuple):
    kind: str
    id: str
    name: str


def colocated_findings(snapshot: Snapshot, model: Model, known: Iterable[Finding] = ()) -> list[Finding]:
    """Two or more ready replicas of one owner, all in one place, where no rule says so.

    `known` are findings of broken or undone rules: replicas that share one of these are not found again.
    """
    told = _gathered(model)
    of_pod: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, finding in enumerate(known):
        for pod in (finding.pod, *finding.peers) if finding.peers else ():
            of_pod[pod].append(at)
    found = []
    for application, (place, members) in sorted(_in_one_place(snapshot, model).items()):
        shared = [at for key, _ in members for at in of_pod.get(key, ())]
        if len(members) > 1 and len(shared) == len(set(shared)) and not any(cls in told for _, cls in members):
            found.append(_finding(snapshot, application, sorted(key for key, _ in members), place))
    return f.in_order(found)


def _in_one_place(snapshot: Snapshot, model: Model) -> dict[Application, tuple[_Place, list[tuple[str, int]]]]:
    """The applications whose ready replicas are all in one place: the place and (pod, class) of each.

    Most applications are out after their second pod, so that little is read of the others.
    """
    apps: dict[tuple[str, str, str], Application] = {}
    members: dict[Application, tuple[_Place, list[tuple[str, int]]] | None] = {}
    for key, cls, place in _placed(snapshot, model):
        pod = snapshot.pods[key]
        owner = controller_of(pod.metadata.owner_references)
        if owner is None or owner.kind in PINNED or owner.kind in _NO_REPLICAS:
            continue
        identity = (pod.metadata.namespace, owner.kind, owner.name)
        application = apps.get(identity)
        if application is None:
            application = apps[identity] = application_under(snapshot, owner, pod.metadata.namespace)
        here = members.get(application, ())
        if here is None or pod.metadata.deletion_timestamp is not None or not ready(pod):
            continue
        if not here:
            members[application] = (place, [(key, cls)])
        elif here[0] == place:
            here[1].append((key, cls))
        else:
            members[application] = None
    return {application: here for application, here in members.items() if here is not None}


def _placed(snapshot: Snapshot, model: Model) -> Iterator[tuple[str, int, _Place]]:
    """(pod, class, place) of every bound pod; an absent node is a place of its own."""
    places = [_place(snapshot, name) for name in model.nodes.names]
    running = model.running
    for key, cls, node in zip(running.keys, running.classes.tolist(), running.nodes.tolist(), strict=True):
        yield key, cls, places[node]
    for elsewhere in model.unbound:
        absent = snapshot.pods[elsewhere.key].spec.node_name
        yield elsewhere.key, elsewhere.cls, _Place(NODE, absent, absent)


def _place(snapshot: Snapshot, node: str) -> _Place:
    joined = snapshot.node_hosts.get(node)
    if joined is not None and joined.host:
        return _Place(HOST, joined.host, joined.host_name)
    return _Place(NODE, node, node)


def _gathered(model: Model) -> set[int]:
    """Classes that a required affinity gathers with their own."""
    return {
        cls.id
        for cls in model.classes
        if any(term.selector is not None and cls.id in term.selector.classes for term in cls.required_affinity)
    }


def _finding(snapshot: Snapshot, application: Application, pods: list[str], place: _Place) -> Finding:
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
