"""Budgets that one host's failure overdraws: which pods are named, and where nothing is said."""

import random
from dataclasses import replace

import pytest
from support.build import HOST, ZONE, Built, a_budget, a_node, a_pod, a_site, a_workload, app, term
from support.sites.budgeted import BudgetedSite, said_of
from support.sites.changing import ChangingSite

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.vsphere import Host

HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3", "n5": ""}
SET = a_workload("StatefulSet", "db")


def told(site: Snapshot) -> list[Finding]:
    return [one for one in check(site, Options()).findings if one.severity == "co-located"]


def pods(*nodes: str, name: str = "db", owner: str = "StatefulSet/db"):
    made = [a_pod(f"{name}-{at}").labels(app="db").on(node) for at, node in enumerate(nodes)]
    return [pod.owned_by(owner) for pod in made] if owner else made


def budget(**bounds):
    return a_budget("db", app("db"), **(bounds or {"max_unavailable": 1}))


def test_a_host_with_two_of_three_pods_of_which_one_may_be_away_is_named_with_them() -> None:
    site = a_site(*map(a_node, HOSTS), SET, budget(), *pods("n2", "n3", "n1"), on=HOSTS)
    [one] = told(site)
    assert (one.rule, one.pod, one.peers, one.node) == ("PodDisruptionBudget", "shop/db-0", ["shop/db-2"], "n2")
    assert one.object == "PodDisruptionBudget/shop/db"
    assert one.domain is not None
    assert (one.domain.key, one.domain.value) == ("host", "esx-h1")
    assert one.message == (
        "2 of the 3 healthy pods of budget shop/db (shop/db-0 and shop/db-2) run on ESXi host esx-h1: its failure "
        "takes more than the 1 that may be away (maxUnavailable is 1 of 3 replicas)."
    )


TWO_HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2"}
STATUS = {"observedGeneration": 1, "expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1}
FOUR = a_workload("StatefulSet", "db", 4)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([SET, budget(), *pods("n1", "n3", "n4")], [], id="one on each host"),
        pytest.param([SET, budget(max_unavailable=2), *pods("n1", "n2", "n3")], [], id="two may be away"),
        pytest.param([SET, budget(min_available=2), *pods("n1", "n2", "n3")], ["esx-h1"], id="two of three must stay"),
        pytest.param([SET, budget(min_available="34%"), *pods("n1", "n2", "n3")], ["esx-h1"], id="34 % of 3 are 2"),
        pytest.param([budget(min_available=2), *pods("n1", "n2", "n3", owner="")], ["esx-h1"], id="nobody's pods"),
        pytest.param([SET, budget(), *pods("n5", "n5", "n3")], ["n5"], id="a node whose host is unknown"),
        pytest.param(
            [FOUR, budget(), *pods("n1", "n2", "n5", "n5")], ["esx-h1", "n5"], id="a host, and a node of no known host"
        ),
        pytest.param(
            [FOUR, budget(max_unavailable=2), *pods("n1", "n2", "n3"), a_pod("db-3").labels(app="db")],
            [],
            id="one that waits counts as one that is elsewhere",
        ),
        pytest.param(
            [SET, budget(), *pods("n1", "n3", "n4")[1:], *pods("n1")[:1], *pods("n2", name="new")],
            [],
            id="a surge gives room for one more",
        ),
        pytest.param(
            [SET, budget(), *pods("n1", "n3"), *(pod.ready(False) for pod in pods("n2", name="ill"))],
            [],
            id="one that is not ready is lost already",
        ),
        pytest.param([SET, *pods("n1", "n2", "n3")], [], id="no budget"),
        pytest.param(
            [budget(), *pods("n1", "n2", "n3", owner="PodSet/db")], [], id="nobody knows how many its owner wants"
        ),
        pytest.param(
            [budget().put("status", value=STATUS), *pods("n1", "n2", "n3", owner="PodSet/db")],
            ["esx-h1"],
            id="the cluster's controller knows",
        ),
        pytest.param(
            [SET, budget(), a_budget("all", {}, min_available=2), *pods("n1", "n2", "n3")],
            ["esx-h1", "esx-h1"],
            id="each budget",
        ),
    ],
)
def test_which_places_hold_too_much_of_a_budget(objects: list[Built], expected: list[str]) -> None:
    found = told(a_site(*map(a_node, HOSTS), *objects, on=HOSTS))
    assert [one.domain.value for one in found if one.domain is not None] == expected


FULL = [SET, budget(), *map(a_node, TWO_HOSTS), *pods("n1", "n2", "n3")]


@pytest.mark.parametrize(
    ("objects", "hosts", "expected"),
    [
        pytest.param(FULL, [], [], id="three pods and two hosts"),
        pytest.param(
            FULL,
            [Host(id="h3", name="esx-h3", cluster="C0")],
            ["esx-h1"],
            id="a VM can go to a host that has none",
        ),
        pytest.param(
            FULL,
            [Host(id="h3", name="esx-h3", cluster="C0", state="maintenance")],
            [],
            id="but not to one in maintenance",
        ),
        pytest.param(
            FULL,
            [Host(id="h3", name="esx-h3", cluster="C1")],
            [],
            id="nor to one of another vSphere cluster",
        ),
        pytest.param(
            [a_workload("StatefulSet", "db", 1), budget(), *map(a_node, TWO_HOSTS), *pods("n1")], [], [], id="one pod"
        ),
        pytest.param(
            [SET, budget(max_unavailable=0), *map(a_node, TWO_HOSTS), *pods("n1", "n2", "n3")],
            [Host(id="h3", name="esx-h3", cluster="C0")],
            [],
            id="none may be away",
        ),
    ],
)
def test_of_a_budget_that_no_placement_keeps_nothing_is_said(
    objects: list[Built], hosts: list[Host], expected: list[str]
) -> None:
    found = told(a_site(*objects, on=TWO_HOSTS, hosts=hosts))
    assert [one.domain.value for one in found if one.domain is not None] == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node("n4"), ["esx-h1"], id="any pod"),
        pytest.param(a_node("n4").tainted("only=gpu:NoSchedule"), [], id="none of them"),
        pytest.param(a_node("n4").tainted("node.kubernetes.io/not-ready=:NoExecute"), ["esx-h1"], id="none for now"),
        pytest.param(a_node("n4").cordoned(), ["esx-h1"], id="no new pod"),
    ],
)
def test_the_only_node_of_the_third_host_takes(node: Built, expected: list[str]) -> None:
    there = [*map(a_node, ("n1", "n3")), SET, budget(), *pods("n1", "n1", "n3")]
    found = told(a_site(*there, node, on={"n1": "h1", "n3": "h2", "n4": "h3"}))
    assert [one.domain.value for one in found if one.domain is not None] == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(lambda pod: pod.near(term(HOST, app("db"))), [], id="on one node"),
        pytest.param(lambda pod: pod.near(term(ZONE, app("db"))), ["esx-h1"], id="in a zone of three hosts"),
        pytest.param(lambda pod: pod.spec(nodeSelector={ZONE: "z"}), ["esx-h1"], id="chosen by label"),
        pytest.param(lambda pod: pod.spec(nodeSelector={HOST: "n1"}), [], id="chosen by name"),
    ],
)
def test_pods_that_were_told_to_be_together_are_left_alone(pod, expected: list[str]) -> None:
    nodes = [a_node(name).zone("z") for name in HOSTS]
    site = a_site(*nodes, SET, budget(), *map(pod, pods("n1", "n1", "n3")), on=HOSTS)
    assert [one.domain.value for one in told(site) if one.domain is not None] == expected


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [SET, *pods("n1", "n2", "n1")],
            [("co-located", "PhysicalHost")],
            id="all replicas of one application on the host",
        ),
        pytest.param(
            [SET, *(pod.apart(term(HOST, app("db"))) for pod in pods("n1", "n2", "n3"))],
            [("physical", "PhysicalHost")],
            id="a rule that keeps the two apart",
        ),
        pytest.param(
            [SET.metadata(annotations={"underhost.io/quorum": "true"}), *pods("n1", "n2", "n3")],
            [("quorum", "Quorum")],
            id="a quorum",
        ),
        pytest.param(
            [
                FOUR,
                *(pod.labels(tier="x").apart(term(HOST, {"tier": "x"})) for pod in pods("n1", "n2")),
                *pods("n2", "n3", name="more"),
            ],
            [("physical", "PhysicalHost"), ("co-located", "PodDisruptionBudget")],
            id="a rule that concerns two of three",
        ),
    ],
)
def test_what_another_finding_says_already_is_not_said_again(
    objects: list[Built], expected: list[tuple[str, str]]
) -> None:
    site = a_site(*map(a_node, HOSTS), budget(), *objects, on=HOSTS)
    wanted = {"physical", "quorum", "co-located"}
    findings = [one for one in check(site, Options()).findings if one.severity in wanted]
    assert [(one.severity, one.rule) for one in findings] == expected


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_overdrawn_budget_of_random_sites_is_found_and_no_other(first: int) -> None:
    for seed in range(first, first + 100):
        assert said_of(site := BudgetedSite(seed)) == site.overdrawn(), f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_after_each_change_the_resident_evaluator_says_what_a_full_check_says(first: int) -> None:
    for seed in range(first, first + 20):
        site, resident = ChangingSite(random.Random(seed)), Evaluator(Options())
        site.snapshot, said = BudgetedSite(seed).snapshot, list[str]()
        for _ in range(25):
            report = resident.update(site.snapshot)
            assert report == check(replace(site.snapshot), Options()), (seed, said[-3:])
            said.append(site.change())


def test_hosts_and_nodes_far_from_the_pods_open_and_end_it() -> None:
    site = a_site(*map(a_node, TWO_HOSTS), SET, budget(), *pods("n1", "n2", "n3"), on=TWO_HOSTS)
    far, fourth = Host(id="h3", name="esx-h3", cluster="C0"), a_node("n4").build()
    resident = Evaluator(Options())
    steps = [
        site,
        replace(site, hosts={**site.hosts, "h3": far}),
        replace(site, hosts={**site.hosts, "h3": Host(id="h3", name="esx-h3", cluster="C0", state="maintenance")}),
        replace(site, nodes={**site.nodes, "n4": fourth}),
    ]
    said = [[one.severity for one in resident.update(step).findings if one.object] for step in steps]
    assert said == [[], ["co-located"], [], ["co-located"]]
    assert resident.rebuilt == 1
