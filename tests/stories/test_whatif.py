"""The stories' steps, tried before they are done: drain, uncordon, delete, a stand-by node, a taint, a failure."""

import io
import json

import pytest
from stories.cluster import ROOM, Cluster
from stories.test_kubevirt import (
    ANTI_AFFINITY,
    APPLIANCE,
    CACHE,
    CORDONED,
    DATABASE,
    DATABASE_WITH_NODE_SELECTOR,
    NODE_AFFINITY,
    REGION,
    TAINTED,
    VIRT_HANDLER,
    ZONE,
)
from stories.test_kubevirt import cluster as cluster
from stories.test_kubevirt import running as running
from stories.test_racks import NGINX, racks
from stories.test_restaurant import REDIS_CACHE, three_workers
from support.build import a_node

from underhost.agents.snapshots.load import added_of
from underhost.agents.whatif.steps import Drain
from underhost.schemas.documents import WhatIf
from underhost.streams.files.reader import load_files

__all__ = ["APPLIANCE", "CACHE", "cluster", "running"]


def moved(document: WhatIf) -> list[tuple[int, str, str | None, str]]:
    """(step, pod, from, to), in their order."""
    return [(one.step, one.pod.partition("/")[2], one.from_, one.to) for one in document.moves]


def on(cluster: Cluster, node: str, prefix: str) -> str:
    """The pod of an application on a node."""
    (name,) = (pod for pod, place in cluster.where(prefix).items() if place == node)
    return name


# ----------------------------------------------------------------------------------------------- KubeVirt's application
def test_a_regular_nodes_pods_go_to_the_high_performing_node_of_its_zone(running: Cluster) -> None:
    document = running.tried("drain kni-worker")
    cache, appliance = on(running, "kni-worker", "varnish"), on(running, "kni-worker", "virt-launcher-blackbox")
    assert sorted(moved(document)) == [
        (1, cache, "kni-worker", "kni-worker2"),
        (1, appliance, "kni-worker", "kni-worker2"),
    ]
    assert (document.pending, document.blocked, document.new_findings) == ({}, [], [])


def test_uncordoning_brings_nothing_back_and_deleting_both_does(running: Cluster) -> None:
    cache, appliance = on(running, "kni-worker", "varnish"), on(running, "kni-worker", "virt-launcher-blackbox")
    document = running.tried(
        "drain kni-worker", "uncordon kni-worker", f"delete default/{cache}", f"delete default/{appliance}"
    )
    assert [one for one in moved(document) if one[0] > 1] == [
        (3, cache, "kni-worker2", "kni-worker"),
        (4, appliance, "kni-worker2", "kni-worker"),
    ]


def test_a_regular_node_that_fails_is_the_same_as_one_that_is_drained(running: Cluster) -> None:
    drained, failed = running.tried("drain kni-worker"), running.tried("fail node/kni-worker")
    assert sorted(moved(failed)) == sorted(moved(drained))
    assert (failed.pending, failed.new_findings) == ({}, [])


def test_the_database_of_a_drained_node_waits_for_a_stand_by_node_in_its_zone(running: Cluster) -> None:
    database = on(running, "kni-worker2", "virt-launcher-mssql")
    alone = running.tried("drain kni-worker2")
    assert alone.pending == {f"default/{database}": {CORDONED: 1, TAINTED: 1, NODE_AFFINITY: 3, ANTI_AFFINITY: 2}}
    labels = {REGION: "iberia", ZONE: "scu", "performance": "high"}
    stand_by = a_node("kni-standby").has(cpu="16", memory="64Gi").labels(labels).sent()
    items = io.BytesIO(json.dumps({"kind": "List", "items": [stand_by]}).encode())
    with_node = running.tried("drain kni-worker2", added_of(load_files(["-"], stdin=items)))
    assert moved(with_node) == [(2, database, "kni-worker2", "kni-standby")]
    assert with_node.pending == {}


def test_with_a_node_selector_only_a_drain_would_put_two_databases_on_one_server(cluster: Cluster) -> None:
    cluster.apply(DATABASE_WITH_NODE_SELECTOR)
    cluster.settle()
    database = on(cluster, "kni-worker2", "virt-launcher-mssql")
    document = cluster.tried("drain kni-worker2")
    ((step, pod, source, target),) = moved(document)
    assert (step, pod, source) == (1, database, "kni-worker2")
    assert target in ("kni-worker4", "kni-worker6")


def test_a_deleted_instance_returns_by_the_rules_that_its_set_has_now(cluster: Cluster) -> None:
    cluster.apply(DATABASE_WITH_NODE_SELECTOR)
    cluster.settle()
    cluster.drain("kni-worker2")
    cluster.settle()
    cluster.apply(DATABASE)  # the set is edited: from now on one database a zone
    nodes = list(cluster.where("virt-launcher-mssql").values())
    doubled = max(set(nodes), key=nodes.count)
    one = next(pod for pod, node in cluster.where("virt-launcher-mssql").items() if node == doubled)
    before = cluster.tried(f"delete default/{one}")
    assert before.pending == {f"default/{one}": {CORDONED: 1, TAINTED: 1, NODE_AFFINITY: 3, ANTI_AFFINITY: 2}}
    after = cluster.tried("uncordon kni-worker2", f"delete default/{one}")
    assert moved(after) == [(2, one, doubled, "kni-worker2")]


def test_a_new_node_gets_the_daemon_that_every_node_runs(cluster: Cluster) -> None:
    cluster.apply(VIRT_HANDLER)
    cluster.settle()
    items = io.BytesIO(json.dumps({"kind": "List", "items": [a_node("kni-worker7").has(**ROOM).sent()]}).encode())
    document = cluster.tried(added_of(load_files(["-"], stdin=items)))
    assert moved(document) == [(1, "virt-handler-kni-worker7", None, "kni-worker7")]


# ------------------------------------------------------------------------------------------------ the social restaurant
def test_a_no_execute_taint_clears_the_table_but_for_who_tolerates_peanuts() -> None:
    cluster = three_workers()
    tolerant = (
        REDIS_CACHE.replace("name: redis-cache}", "name: tolerant}")
        .replace("redis-cache", "tolerant")
        .replace(
            "containers:", "tolerations: [{key: mytaintkey, value: mytaintvalue, effect: NoExecute}]\n      containers:"
        )
    )
    for manifest in (REDIS_CACHE.replace("replicas: 3", "replicas: 2"), tolerant):
        cluster.apply(manifest)
        cluster.settle()
    table = next(iter(cluster.where("redis-cache").values()))
    free = ({"worker-1", "worker-2", "worker-3"} - set(cluster.where("redis-cache").values())).pop()
    document = cluster.tried(f"taint {table}=mytaintkey=mytaintvalue:NoExecute")
    assert [(pod.rpartition("-")[0], source, to) for _, pod, source, to in moved(document)] == [
        ("redis-cache", table, free)
    ]
    kept = cluster.tried(f"taint {table}=mytaintkey=mytaintvalue:NoSchedule")
    assert moved(kept) == []


# -------------------------------------------------------------------------------------------------- OpenShift's budgets
@pytest.mark.parametrize(
    ("rule", "replicas", "moves", "blocked"),
    [
        pytest.param("minAvailable: 1", 2, 2, 0, id="one must stay: one after the other"),
        pytest.param("minAvailable: 2", 2, 0, 2, id="both must stay: the drain waits for ever"),
        pytest.param("maxUnavailable: 1", 3, 3, 0, id="one may go: one after the other"),
    ],
)
def test_a_drain_of_two_nodes_goes_as_far_as_the_budget_lets_it(
    rule: str, replicas: int, moves: int, blocked: int
) -> None:
    cluster = racks()
    for name in ("node02", "node03"):
        cluster.cordon(name)
    cluster.apply(NGINX.replace("REPLICAS", str(replicas)).replace("RULE", rule))
    cluster.settle()
    assert set(cluster.where("nginx").values()) == {"node01"}
    cluster.uncordon("node02")
    document = cluster.tried(Drain(("node01", "node03")))
    assert (len(document.moves), len(document.blocked)) == (moves, blocked)
    assert {one.to for one in document.moves} <= {"node02"}
    assert {name for one in document.blocked for name in one.budgets} <= {"default/nginx"}
