"""Replicas of one owner are compared, not read again: whatever makes one of them differ must still be seen."""

import pytest
from support.build import HOST, ZONE, PodBuilder, a_pod, app, spread, term

from underhost.agents.compiled.classes import Parser
from underhost.agents.compiled.reader import PodReader
from underhost.agents.compiled.selected_labels import SelectedLabels
from underhost.agents.site.snapshot import Snapshot

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u1", "controller": True}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "p1"}}
TOKEN = {"name": "kube-api-access-x7f2p", "projected": {}}


def replica(name: str, *owners: object) -> PodBuilder:
    base = a_pod(name).needs(cpu="1").labels(app="db", pod=name).on("n1").apart(term(HOST, app("db")))
    return base.metadata(ownerReferences=list(owners) or [OWNER])


def status(pod: PodBuilder, **fields: object) -> PodBuilder:
    for name, value in fields.items():
        pod = pod.put("status", name, value=value)
    return pod


OTHER = replica("db-1")
RESIZED = {"name": "c0", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
VARIANTS = {
    "nothing": OTHER,
    "a label that a selector names": OTHER.labels(app="web"),
    "a label that none names": OTHER.labels(app="db", pod="x", more="y"),
    "its namespace": replica("db-1").metadata(namespace="other"),
    "what it requests": OTHER.needs(cpu="2"),
    "its image": OTHER.containers({"image": "app:2", "resources": {"requests": {"cpu": "1"}}}),
    "a host port": OTHER.ports({"hostPort": 80}),
    "an init container": OTHER.spec(initContainers=[{"name": "i", "resources": {"requests": {"cpu": "4"}}}]),
    "overhead": OTHER.spec(overhead={"cpu": "1"}),
    "what it requests as a whole": OTHER.spec(resources={"requests": {"cpu": "3"}}),
    "what it was resized to": status(OTHER, containerStatuses=[RESIZED]),
    "affinity": OTHER.apart(term(ZONE, app("db"))),
    "node selector": OTHER.spec(nodeSelector={"disk": "ssd"}),
    "tolerations": OTHER.tolerates({"operator": "Exists"}),
    "spread": OTHER.spreads(spread(ZONE, app("db"))),
    "a volume that no rule reads": OTHER.spec(volumes=[TOKEN]),
    "a disk": OTHER.spec(volumes=[TOKEN, DISK]),
    "a claim": OTHER.spec(volumes=[CLAIM]),
    "being deleted": OTHER.deleted(),
    "who controls it": replica("db-1", {**OWNER, "controller": False}, {**OWNER, "name": "db2", "uid": "u2"}),
    "no owner": a_pod("db-1").needs(cpu="1").labels(app="db").on("n1").apart(term(HOST, app("db"))),
    "a node that is not there": OTHER.on("gone"),
    "no node yet": OTHER.put("spec", "nodeName", value=""),
}


def read(pods: list[PodBuilder], claims: bool) -> tuple[object, object]:
    """The fields and the request of the last pod, as the reader numbered them."""
    built = {pod.key: pod.build() for pod in pods}
    reader = PodReader(claims=claims)
    found = reader.read(built, {"n1": 0}, SelectedLabels(Snapshot(pods=built), Parser(64)))
    last = [*found.unbound, *found.pending][-1:]
    cls = last[0].cls if last else found.pod_class[-1]
    request = last[0].request if last else found.pod_request[-1]
    return list(found.classes)[cls], reader.requests[request].key()


@pytest.mark.parametrize("claims", [False, True], ids=["claims not judged", "claims judged"])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_replica_is_numbered_as_if_it_were_alone(variant: PodBuilder, claims: bool) -> None:
    assert read([replica("db-0"), replica("db-2"), variant], claims) == read([variant], claims)


def test_a_replica_that_differs_does_not_change_what_the_next_one_is() -> None:
    alone = read([replica("db-3")], False)
    assert read([replica("db-0"), replica("db-1").needs(cpu="2").labels(app="x"), replica("db-3")], False) == alone
