"""Quorums: who is a member, how many of them one host may hold, and what is said where it holds more."""

from dataclasses import replace

import pytest
from support.build import a_node, a_pod, a_site, a_workload
from support.sites.quorate import ANNOTATION, ROLE, QuorateSite, said_of

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.severities import QUORUM

HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3", "n5": ""}


def found(site: Snapshot) -> list[Finding]:
    return [one for one in check(site, Options()).findings if one.severity == QUORUM]


def static(component: str, node: str):
    pod = a_pod(f"{component}-{node}", "kube-system").labels(component=component).owned_by(f"Node/{node}").on(node)
    return pod.metadata(annotations={"kubernetes.io/config.mirror": "x"})


def asking(text: str) -> dict[str, dict[str, str]]:
    return {"annotations": {ANNOTATION: text}}


def masters(*names: str):
    return [a_node(name).labels({f"{ROLE}control-plane": ""}) for name in names]


def replicas(*nodes: str, owner: str = "StatefulSet/db", **metadata):
    return [a_pod(f"db-{at}").owned_by(owner).on(node).metadata(**metadata) for at, node in enumerate(nodes)]


def test_of_three_etcd_members_two_share_a_host() -> None:
    nodes = masters("n1", "n2", "n3")
    site = a_site(*nodes, *(static("etcd", one) for one in ("n1", "n2", "n3")), on=HOSTS)
    [one] = found(site)
    assert (one.rule, one.pod, one.peers, one.node) == ("Quorum", "kube-system/etcd-n1", ["kube-system/etcd-n2"], "n1")
    assert one.domain is not None
    assert (one.domain.key, one.domain.value) == ("host", "esx-h1")
    assert one.message == (
        "2 of the 3 members of etcd (kube-system/etcd-n1 (node n1) and kube-system/etcd-n2 (node n2)) run on "
        "ESXi host esx-h1: its failure leaves 1, and 2 must stay."
    )


def test_control_plane_nodes_count_where_no_pod_is_seen() -> None:
    [one] = found(a_site(*masters("n1", "n2", "n3"), on=HOSTS))
    assert (one.pod, one.node, one.peers) == (None, "n1", [])
    assert one.message == (
        "2 of the 3 members of the control plane (node n1 and node n2) run on ESXi host esx-h1: its failure leaves 1, "
        "and 2 must stay."
    )


def test_a_workload_that_asks_is_named() -> None:
    site = a_site(
        *map(a_node, HOSTS),
        a_workload("StatefulSet", "db").metadata(**asking("true")),
        *replicas("n1", "n2", "n4"),
        on=HOSTS,
    )
    [one] = found(site)
    assert (one.pod, one.peers, one.object) == ("shop/db-0", ["shop/db-1"], "StatefulSet/shop/db")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([*masters("n1", "n3", "n4")], [], id="three hosts"),
        pytest.param([*masters("n1", "n2")], [], id="two members are never right"),
        pytest.param([*masters("n1", "n2", "n3", "n4", "n5")], [], id="two of five may go"),
        pytest.param([*masters("n1", "n2", "n3", "n4")], ["n1"], id="two of four may not"),
        pytest.param(
            [*(a_node(one).metadata(**asking("true")) for one in ("n1", "n2", "n3"))], ["n1"], id="an etcd of its own"
        ),
        pytest.param(
            [*masters("n1"), *(one.metadata(**asking("false")) for one in masters("n2", "n3"))], [], id="nodes say no"
        ),
        pytest.param(
            [*masters("n1", "n2"), *(a_node(one).labels({f"{ROLE}etcd": "true"}) for one in ("n3", "n4", "n5"))],
            ["n1"],
            id="all API servers on one host and etcd elsewhere",
        ),
        pytest.param(
            [
                *masters("n1", "n2", "n4"),
                *(a_node(one).labels({f"{ROLE}etcd": "true"}) for one in ("n3", "n5")),
            ],
            [],
            id="one API server is enough where etcd is elsewhere",
        ),
        pytest.param(
            [*map(a_node, HOSTS), *(static("etcd", one).metadata(namespace="shop") for one in ("n1", "n2", "n3"))],
            [],
            id="a tenant's pods that look like etcd",
        ),
    ],
)
def test_which_nodes_hold_too_many(objects: list[object], expected: list[str]) -> None:
    assert [one.node for one in found(a_site(*objects, on=HOSTS))] == expected


DB = a_workload("StatefulSet", "db")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([DB, *replicas("n1", "n2", "n3")], [], id="nobody asks"),
        pytest.param([DB, *replicas("n1", "n2", "n3", **asking("true"))], ["esx-h1"], id="the pods ask"),
        pytest.param([DB.metadata(**asking("1")), *replicas("n1", "n2", "n3")], [], id="one is enough"),
        pytest.param([DB.metadata(**asking("1")), *replicas("n1", "n2", "n1")], ["esx-h1"], id="not even one stays"),
        pytest.param([DB.metadata(**asking("3")), *replicas("n1", "n1", "n1")], [], id="all must stay: never right"),
        pytest.param(
            [DB.metadata(**asking("false")), *replicas("n1", "n2", "n3", **asking("true"))], [], id="the workload's no"
        ),
        pytest.param([DB.metadata(**asking("most")), *replicas("n1", "n2", "n3")], [], id="unreadable"),
        pytest.param(
            [DB.metadata(**asking("true")), *replicas("n5", "n5", "n3")], ["n5"], id="a node, its host unknown"
        ),
        pytest.param(
            [a_workload("StatefulSet", "db", 5).metadata(**asking("true")), *replicas("n1", "n2", "n1")],
            ["esx-h1"],
            id="those that are not there yet come elsewhere",
        ),
        pytest.param(
            [
                a_workload("Deployment", "db").metadata(**asking("true")),
                a_workload("ReplicaSet", "db-1").owned_by("Deployment/db"),
                *replicas("n1", "n2", "n3", owner="ReplicaSet/db-1"),
            ],
            ["esx-h1"],
            id="a Deployment over its ReplicaSet",
        ),
        pytest.param(
            [
                a_workload("ReplicaSet", "db-1").owned_by("Deployment/db").metadata(**asking("true")),
                *replicas("n1", "n2", "n3", owner="ReplicaSet/db-1"),
            ],
            ["esx-h1"],
            id="a ReplicaSet whose Deployment is not in the input",
        ),
        pytest.param(
            replicas("n1", "n2", "n3", owner="StrimziPodSet/db", **asking("true")), ["esx-h1"], id="an unknown owner"
        ),
        pytest.param(
            [a_pod(f"db-{node}").on(node).metadata(**asking("true")) for node in ("n1", "n2", "n3")],
            [],
            id="pods of nobody",
        ),
    ],
)
def test_which_hosts_hold_too_many_of_a_workload(objects: list[object], expected: list[str]) -> None:
    site = a_site(*map(a_node, HOSTS), *objects, on=HOSTS)
    assert [one.domain.value for one in found(site) if one.domain is not None] == expected


def test_members_that_a_quorum_finding_names_are_not_co_located_as_well() -> None:
    pods = replicas("n1", "n2", "n1")
    site = a_site(*map(a_node, HOSTS), DB.metadata(**asking("true")), *pods, on=HOSTS)
    assert [one.severity for one in check(site, Options()).findings if one.pod == "shop/db-0"] == ["quorum"]


def test_a_deployment_and_its_replica_set_that_both_ask_may_go_at_once() -> None:
    site = a_site(
        *map(a_node, HOSTS),
        a_workload("Deployment", "db").metadata(**asking("true")),
        a_workload("ReplicaSet", "db-1").owned_by("Deployment/db").metadata(**asking("true")),
        *replicas("n1", "n2", "n3", owner="ReplicaSet/db-1"),
        on=HOSTS,
    )
    resident, gone = Evaluator(Options()), replace(site, workloads={})
    said = [[one.severity for one in resident.update(now).findings] for now in (site, gone, site)]
    assert said == [["quorum", "unknown-host"], ["unknown-host"], ["quorum", "unknown-host"]]


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_breach_of_random_sites_is_found_and_no_other(first: int) -> None:
    for seed in range(first, first + 100):
        assert said_of(site := QuorateSite(seed)) == site.breaches(), f"seed {seed}"
