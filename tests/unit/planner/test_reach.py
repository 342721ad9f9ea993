"""Whose rule a repair follows: what a tenant asks of pods of others moves no VM and closes no host, unless it may."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.build import HOST, Built, a_node, a_pod, a_site, term
from support.processes.kwok import HOST_LABEL

from underhost.agents.affinity.reach import ACT
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.plan import planned
from underhost.agents.planner.recheck import Recheck
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.repair.refusers import REACHES
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import RepairPlan
from underhost.schemas.vsphere import Cluster
from underhost.schemas.vsphere import Host as EsxiHost

DB = {"app": "db"}
THEIRS = {"namespaces": ["shop"]}


def a_cluster(on: dict[str, str], *objects: Built) -> Snapshot:
    """Three hosts; nodes by theirs."""
    hosts = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0", memory_mib=65536) for at in (1, 2, 3)]
    site = a_site(*map(a_node, on), *objects, on=on, hosts=hosts, clusters=[Cluster("C0")])
    return replace(site, vms={ref: structs.replace(vm, memory_mib=8192) for ref, vm in site.vms.items()})


def replica(at: int) -> Built:
    """Of the victim: no host may hold two."""
    return a_pod(f"db-{at}", "shop").labels(app="db", at=str(at)).apart(term(HOST, DB)).on(f"n{at}")


def stranger(node: str, key: str) -> Built:
    """Of the tenant: it wants nobody of the victim on its host."""
    return a_pod(f"x-{node}", "evil").apart(term(key, DB, **THEIRS)).on(node)


def moved(plan: RepairPlan) -> list[tuple[str | None, str]]:
    return [(step.vm, step.from_) for step in plan.steps]


@pytest.mark.parametrize("key", [HOST, HOST_LABEL])
@pytest.mark.parametrize(
    ("cross_namespace", "moves"), [("report", []), (ACT, [("n2", "esx-1")])], ids=["reported", "acted upon"]
)
def test_no_vm_moves_for_what_a_pod_asks_of_another_namespace(
    key: str, cross_namespace: str, moves: list[tuple[str, str]]
) -> None:
    site = a_cluster({"n1": "h1", "n2": "h1"}, replica(1), stranger("n2", key))
    plan = planned(site, Options(cross_namespace=cross_namespace), RepairTerms(evictions=None)).document
    assert moved(plan) == moves
    assert [one.conflict for one in plan.unrepairable] == ([] if moves else [[REACHES]])


@pytest.mark.parametrize("key", [HOST, HOST_LABEL])
@pytest.mark.parametrize(
    ("cross_namespace", "moves", "new"),
    [
        pytest.param("report", [("n2", "esx-1")], ["Namespace/evil"], id="reported"),
        pytest.param(ACT, [("n3", "esx-2"), ("n1", "esx-1")], [], id="acted upon: others make way"),
    ],
)
def test_a_pod_closes_no_host_to_pods_of_another_namespace(
    key: str, cross_namespace: str, moves: list[tuple[str, str]], new: list[str]
) -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"}
    site = a_cluster(on, replica(1), replica(2), stranger("n3", key), stranger("n4", key))
    options = Options(cross_namespace=cross_namespace)
    plan = planned(site, options, RepairTerms(evictions=None))
    assert moved(plan.document) == moves
    assert [one.object for one in plan.document.new_findings] == new
    recheck = Recheck(site, Evaluator(options), RepairTerms().room)
    assert recheck.why_not(plan.moves[0]) == ""


@pytest.mark.parametrize("key", [HOST, HOST_LABEL])
def test_a_host_that_breaks_nothing_at_all_is_taken_rather(key: str) -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"}
    site = a_cluster(on, replica(1), replica(2), stranger("n3", key))
    plan = planned(site, Options(), RepairTerms(evictions=None)).document
    assert [(step.vm, step.to) for step in plan.steps] == [("n1", "esx-3")]
    assert plan.new_findings == []


@pytest.mark.parametrize(("cross_namespace", "ended"), [("report", True), (ACT, False)], ids=["reported", "acted upon"])
def test_a_pod_holds_no_pod_of_another_namespace_on_its_host(cross_namespace: str, ended: bool) -> None:
    holders = [a_pod(f"x-{at}", "evil").near(term(HOST_LABEL, {"at": str(at)}, **THEIRS)).on("n3") for at in (1, 2)]
    site = a_cluster({"n1": "h1", "n2": "h1", "n3": "h1"}, replica(1), replica(2), *holders)
    plan = planned(site, Options(cross_namespace=cross_namespace), RepairTerms(evictions=None)).document
    assert moved(plan) == ([("n2", "esx-1")] if ended else [])


def test_what_the_tenants_own_pods_ask_of_each_other_closes_a_host_as_before() -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"}
    own = term(HOST, {"of": "evil"})
    theirs = [a_pod(f"x-{node}", "evil").labels(of="evil").apart(own).on(node) for node in ("n1", "n2", "n3", "n4")]
    site = a_cluster(on, replica(1), replica(2), *theirs)
    assert moved(planned(site, Options(), RepairTerms(evictions=None)).document) == []
