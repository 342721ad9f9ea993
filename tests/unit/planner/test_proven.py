"""What `underhost repair` says of its own plan: that no plan is cheaper only where it is so, and a safe order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from msgspec import structs
from support.build import HOST, ZONE, Built, a_node, a_pod, a_site, a_workload, nodes, spread, term
from support.processes.kwok import HOST_LABEL

from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import RepairPlan
from underhost.schemas.vsphere import Cluster
from underhost.schemas.vsphere import Host as EsxiHost

APART = term(HOST, {"app": "db"})
WEB = {"app": "web"}


def web(*asking: Built) -> RepairPlan:
    """A plan without evictions for these pods of `web`, with `db` on another host."""
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)]
    db = a_pod("db-0").labels(app="db").on("n3")
    site = a_site(*nodes("n1", "n2", "n3"), db, *asking, on={"n1": "h1", "n2": "h1", "n3": "h3"}, hosts=esxi)
    return repair(site, Options(), RepairTerms(evictions=None))


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(
            [a_pod(f"web-{at}").labels(WEB).spreads(spread(HOST_LABEL, WEB)).on(f"n{at}") for at in (1, 2)],
            id="a spread over hosts",
        ),
        pytest.param(
            [a_pod("web-1").labels(WEB).near(term(HOST_LABEL, {"app": "db"})).on("n1")], id="an affinity for a host"
        ),
    ],
)
def test_that_no_plan_is_cheaper_is_not_said_of_what_a_vmotion_might_end(asking: Sequence[Built]) -> None:
    plan = web(*asking)
    assert (plan.steps, plan.objective.findings_left) == ([], 1)
    assert (plan.optimal, plan.lower_bound.findings_left) == (False, 0)


def owned(name: str, node: str, priority: int = 0) -> Built:
    """A pod of the workload web or db, as its name says, that needs one CPU; Underhost places it."""
    app, _, _ = name.partition("-")
    pod = a_pod(name).labels(app=app).owned_by(f"ReplicaSet/{app}").needs(cpu="1")
    return pod.spec(schedulerName="underhost", priority=priority).on(node)


def an_eviction_spares_the_vmotion() -> Snapshot:
    """web-1 must leave n1, and web-2 the host of it: one eviction ends both."""
    pods = [owned(f"web-{at}", f"n{at}").apart(term(HOST, WEB)) for at in (1, 2)]
    lost = pods[0].spec(nodeSelector={"disk": "ssd"})
    return placed({"n1": "h1", "n2": "h1", "n3": "h3"}, lost, pods[1], ssd="n3")


def one_pod_too_many() -> Snapshot:
    """On n1 one of three is too many, and the two of web must part."""
    pods = [owned(f"web-{at}", "n1").apart(term(HOST, WEB)) for at in (1, 2)]
    return placed({"n1": "h1", "n2": "h2", "n3": "h3"}, *pods, owned("db-1", "n1"), cpus="2")


def one_in_the_way_of_two() -> Snapshot:
    """web-2 leaves its zone too full for web-1, which nobody makes anew, and shares its node with db-1."""
    even = spread(ZONE, WEB)
    bare = a_pod("web-1").labels(WEB).spreads(even).on("n2")
    pods = [bare, owned("web-2", "n1", 10).apart(term(HOST, {"app": "db"})), owned("db-1", "n1").apart(term(HOST, WEB))]
    return placed({"n1": "h1", "n2": "h2", "n3": "h3"}, *pods)


def an_eviction_opens_a_host() -> Snapshot:
    """n1 or n2 could leave h1 for h2 once web-1 has gone from there; h3 is in maintenance."""
    pods = [a_pod(f"db-{at}").labels(app="db").apart(APART).on(f"n{at}") for at in (1, 2)]
    lost = owned("web-1", "n3").apart(APART).spec(nodeSelector={"disk": "ssd"})
    site = placed({"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"}, *pods, lost, ssd="n4")
    return replace(site, hosts={**site.hosts, "h3": structs.replace(site.hosts["h3"], state="maintenance")})


def placed(on: Mapping[str, str], *pods: Built, ssd: str = "", cpus: str = "4") -> Snapshot:
    """n1 and n2 are in zone a, n3 in zone b."""
    made = [
        a_node(node).zone("b" if node == "n3" else "a").labels(disk="ssd" if node == ssd else None).has(cpu=cpus)
        for node in on
    ]
    owners = [a_workload("ReplicaSet", name, 2) for name in ("web", "db")]
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)]
    return a_site(*made, *owners, *pods, on=on, hosts=esxi, clusters=[Cluster("C0")])


@pytest.mark.parametrize(
    ("site", "costs", "least"),
    [
        pytest.param(an_eviction_spares_the_vmotion(), (0, 1, 1), (0, 1, 0), id="the eviction spares the vMotion"),
        pytest.param(one_pod_too_many(), (0, 2, 0), (0, 1, 0), id="one pod less makes room, and parts two"),
        pytest.param(an_eviction_opens_a_host(), (1, 1, 0), (0, 1, 0), id="an eviction opens a host to VMs"),
        pytest.param(one_in_the_way_of_two(), (1, 1, 0), (0, 1, 0), id="another pod's eviction ends a spread"),
    ],
)
def test_that_no_plan_is_cheaper_is_not_said_where_one_eviction_may_end_more(
    site: Snapshot, costs: tuple[int, int, int], least: tuple[int, int, int]
) -> None:
    plan = repair(site, Options())
    cost, bound = plan.objective, plan.lower_bound
    assert (cost.findings_left, cost.evictions, cost.vmotions) == costs
    assert (plan.optimal, (bound.findings_left, bound.evictions, bound.vmotions)) == (False, least)


def test_an_eviction_that_another_makes_room_for_waits_for_it() -> None:
    labels = {"n2": {"for": "web"}, "n4": {"for": "db"}, "n5": {"for": "db"}}
    room = {"n2": "1"}  # of web-1 or db-2
    made = [
        a_node(node).labels(labels.get(node)).has(cpu=room.get(node, "4")) for node in ("n1", "n2", "n3", "n4", "n5")
    ]
    owners = [a_workload("ReplicaSet", name, 2) for name in ("web", "db")]
    pods = [owned("db-1", "n1"), owned("db-2", "n2"), owned("web-1", "n3")]
    lost = [pod.spec(nodeSelector={"for": pod.name.partition("-")[0]}) for pod in pods]
    plan = repair(a_site(*made, *owners, *lost), Options())
    assert [(step.wave, step.pod, step.to) for step in plan.steps] == [
        (1, "shop/db-1", "n4"),
        (2, "shop/db-2", "n5"),  # one of an application at a time
        (3, "shop/web-1", "n2"),
    ]


def test_that_no_plan_is_cheaper_is_said_of_pods_that_share_their_node() -> None:
    plan = web(*(a_pod(f"web-{at}").labels(WEB).apart(term(HOST_LABEL, WEB)).on("n1") for at in (1, 2)))
    assert (plan.steps, plan.objective.findings_left) == ([], 1)
    assert (plan.optimal, plan.lower_bound.findings_left) == (True, 1)


def test_that_no_plan_is_cheaper_is_said_where_no_vm_is_of_a_cluster() -> None:
    web = [a_pod(f"web-{at}").labels(WEB).spreads(spread(HOST_LABEL, WEB)).on(f"n{at}") for at in (1, 2)]
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}") for at in (1, 3)]
    site = a_site(*nodes("n1", "n2", "n3"), *web, on={"n1": "h1", "n2": "h1", "n3": "h3"}, hosts=esxi)
    plan = repair(site, Options(), RepairTerms(evictions=None))
    assert (plan.optimal, plan.objective.findings_left, plan.lower_bound.findings_left) == (True, 1, 1)
