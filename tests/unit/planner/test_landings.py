"""A plan evicts a pod only where the next one breaks nobody's rule on any node that its scheduler may choose."""

import pytest
from support.build import HOST, ZONE, a_node, a_pod, a_site, a_workload, nodes, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.plan import repair
from underhost.agents.repair.evictions import MAYBE_WORSE
from underhost.agents.schedule.places import Places
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import RepairPlan

CACHE = {"app": "cache"}
QUORUM = {"underhost.io/quorum": "true"}


def evicted(plan: RepairPlan) -> list[str | None]:
    return [step.pod for step in plan.steps]


def reasons(plan: RepairPlan) -> list[str]:
    return [said for one in plan.unrepairable for said in one.conflict]


def wanted_near(*zones: str | None) -> Snapshot:
    """A cache on n1 that must leave it, and `web` on n2, which wants one in its zone; n3, n4, ... are in these."""
    on = {"n1": "h1", "n2": "h2", **{f"n{at}": "h3" for at in range(3, 3 + len(zones))}}
    more = [a_node(f"n{at}").labels({ZONE: zone}) for at, zone in enumerate(zones, 3)]
    cache = a_pod("cache-0").labels(CACHE).owned_by("ReplicaSet/cache").apart(term(HOST, {"app": "db"}))
    return a_site(
        *(a_node(name).zone("a") for name in ("n1", "n2")),
        *more,
        a_workload("ReplicaSet", "cache", 1),
        cache.spec(schedulerName="default-scheduler").on("n1"),
        a_pod("db-0").labels(app="db").on("n1"),
        a_pod("web-0").near(term(ZONE, CACHE)).on("n2"),
        on=on,
    )


def test_a_pod_goes_where_every_node_keeps_it_near_those_who_want_it() -> None:
    assert evicted(repair(wanted_near("a", "a"), Options())) == ["shop/cache-0"]


@pytest.mark.parametrize("zone", [pytest.param(None, id="no zone"), pytest.param("b", id="another zone")])
def test_a_pod_stays_that_may_land_far_from_one_who_wants_it_near(zone: str | None) -> None:
    plan = repair(wanted_near("a", zone), Options())
    assert evicted(plan) == []
    assert f"shop/cache-0 cannot be evicted: {MAYBE_WORSE}" in reasons(plan)


def members(*on: str, size: int = 4) -> Snapshot:
    """A quorum of three, the first member on n1, which its selector excludes, the others on these; no host is known."""
    db = a_workload("StatefulSet", "db", 3).metadata(annotations=QUORUM)
    pods = [
        a_pod(f"db-{at}")
        .labels(app="db")
        .owned_by("StatefulSet/db")
        .spec(nodeSelector={"disk": "ssd"}, schedulerName="default-scheduler")
        .on(node)
        for at, node in enumerate(("n1", *on))
    ]
    ssd = [a_node(f"n{at}").labels(disk="ssd") for at in range(2, size + 1)]
    return a_site(*nodes("n1"), *ssd, db, *pods)


def test_a_member_stays_that_may_join_another_on_a_node_whose_host_is_unknown() -> None:
    plan = repair(members("n2", "n4"), Options())
    assert (evicted(plan), reasons(plan)) == ([], [f"shop/db-0 cannot be evicted: {MAYBE_WORSE}"])


def test_of_many_nodes_whose_host_is_unknown_few_are_thought_through() -> None:
    places = Places(Evaluator(Options()).state(members("n2", "n4", size=40)), {"default-scheduler"})
    found = places.landings("shop/db-0", ["shop/db-0", "shop/db-1", "shop/db-2"])
    assert len(found.best) == 39
    assert {places.model.nodes.names[node] in ("n2", "n4") for node in found.kinds} == {True, False}
    assert len(found.kinds) == 2
