"""A small shop for the page: two hosts, a database whose replicas share one of them, and what is found there; and its
database alone."""

from support.build import HOST, ZONE, a_node, a_pod, a_site, a_workload, term
from support.published import a_finding

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import Host

DB = {"app": "db"}


def a_shop() -> Snapshot:
    """Two hosts; the database's replicas share one of them, though their rule keeps them apart by zone."""
    return a_site(
        a_node("n1").zone("a"),
        a_node("n2").zone("b"),
        a_node("n3").zone("c").cordoned(),
        a_pod("db-0").on("n1").labels(DB).apart(term(ZONE, DB)).owned_by("StatefulSet/db"),
        a_pod("db-1").on("n2").labels(DB).apart(term(ZONE, DB)).owned_by("StatefulSet/db"),
        a_pod("web-5d9c7b8f6d-x7f2p").on("n3").owned_by("ReplicaSet/web-5d9c7b8f6d"),
        a_pod("web-5d9c7b8f6d-q2w3e").owned_by("ReplicaSet/web-5d9c7b8f6d"),
        a_pod("logs-1").on("n1").owned_by("DaemonSet/logs"),
        a_pod("bare", "lab").on("n3").ready(False),
        a_workload("ReplicaSet", "web-5d9c7b8f6d").owned_by("Deployment/web"),
        on={"n1": "h1", "n2": "h1", "n3": "h2"},
        site="prod",
    )


def two_pods(n1: str, n2: str) -> Snapshot:
    """Two pods that must not share a host, on nodes on these hosts, of which there are no others."""
    return a_site(
        a_node("n1"),
        a_node("n2"),
        a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
        a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)),
        on={"n1": n1, "n2": n2},
        site="prod",
    )


def a_pair(second: str = "h2", **more: str) -> Snapshot:
    """Two replicas that must not share a host, in a vSphere cluster of h1, where the first one is, and h2; the second
    one's VM is on this host. `more` nodes, and their hosts."""
    return a_site(
        *(a_node(name) for name in ("n1", "n2", *more)),
        a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)).owned_by("StatefulSet/db"),
        a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)).owned_by("StatefulSet/db"),
        a_workload("StatefulSet", "db", replicas=2),
        on={"n1": "h1", "n2": second, **more},
        hosts=[Host(id=name, name=f"esx-{name}", cluster="C0") for name in ("h1", "h2")],
        site="prod",
    )


SHARED = a_finding("f1", "shop/db-0", "shop/db-1")
DRIFTED = a_finding("f2", "lab/bare", severity="drift")
