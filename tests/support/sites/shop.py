"""A small shop for the page: two hosts, a database whose replicas share one of them, and what is found there."""

from support.check_builders import a_node, a_pod, a_site, a_workload, apart
from support.page_builders import a_finding

from underhost.agents.site.snapshot import Snapshot

ZONE = "topology.kubernetes.io/zone"
DB = {"app": "db"}


def a_shop() -> Snapshot:
    """Two hosts; the database's replicas share one of them, though their rule keeps them apart by zone."""
    rule = apart(DB, ZONE)
    return a_site(
        a_node("n1", labels={ZONE: "a"}),
        a_node("n2", labels={ZONE: "b"}),
        a_node("n3", labels={ZONE: "c"}, spec={"unschedulable": True}),
        a_pod("db-0", "n1", labels=DB, spec=rule, owner="StatefulSet/db"),
        a_pod("db-1", "n2", labels=DB, spec=rule, owner="StatefulSet/db"),
        a_pod("web-5d9c7b8f6d-x7f2p", "n3", owner="ReplicaSet/web-5d9c7b8f6d"),
        a_pod("web-5d9c7b8f6d-q2w3e", "", owner="ReplicaSet/web-5d9c7b8f6d"),
        a_pod("logs-1", "n1", owner="DaemonSet/logs"),
        a_pod("bare", "n3", namespace="lab", ready=False),
        a_workload("ReplicaSet", "web-5d9c7b8f6d", owner="Deployment/web"),
        on={"n1": "h1", "n2": "h1", "n3": "h2"},
        site="prod",
    )


SHARED = a_finding("f1", "shop/db-0", "shop/db-1")
DRIFTED = a_finding("f2", "lab/bare", severity="drift")
