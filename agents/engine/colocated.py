"""Replicas of one application that share one ESXi host, or one node, although nothing asks for it.

In: a snapshot, its model and what is found already. Out: `co-located` findings. Called by `check.py`. Replicas that a
rule keeps apart are in a violation or a physical finding; those that a required affinity gathers are where they were
told to be.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from underhost.agents.engine import findings as f
from underhost.agents.engine.model import Model
from underhost.agents.engine.owners import Application, application_of, pinned, ready
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
    grouped = [{finding.pod, *finding.peers} for finding in known if finding.peers]
    of_pod: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, pods in enumerate(grouped):
        for pod in pods:
            of_pod[pod].append(at)
    found = []
    for application, members in sorted(_replicas(snapshot, model).items()):
        if len(members) < 2 or any(cls in told for _, cls, _ in members):
            continue
        places = {place for _, _, place in members}
        shared = [at for key, _, _ in members for at in of_pod.get(key, ())]
        if len(places) == 1 and len(shared) == len(set(shared)):
            found.append(_finding(snapshot, application, sorted(key for key, _, _ in members), places.pop()))
    return f.in_order(found)


def _replicas(snapshot: Snapshot, model: Model) -> dict[Application, list[tuple[str, int, _Place]]]:
    """The ready replicas of each application: (pod, class, place)."""
    places = [_place(snapshot, name) for name in model.nodes.names]
    members: defaultdict[Application, list[tuple[str, int, _Place]]] = defaultdict(list)
    running = model.running
    for key, cls, node in zip(running.keys, running.classes.tolist(), running.nodes.tolist(), strict=True):
        pod = snapshot.pods[key]
        if not pod.metadata.owner_references or pinned(pod):
            continue
        application = application_of(snapshot, pod)
        if application is None or application.kind in _NO_REPLICAS:
            continue
        if pod.metadata.deletion_timestamp is None and ready(pod):
            members[application].append((key, cls, places[node]))
    for elsewhere in model.unbound:
        pod = snapshot.pods[elsewhere.key]
        application = application_of(snapshot, pod)
        if (
            application is not None
            and application in members
            and pod.metadata.deletion_timestamp is None
            and ready(pod)
        ):
            absent = pod.spec.node_name
            members[application].append((elsewhere.key, elsewhere.cls, _Place(NODE, absent, absent)))
    return members


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
