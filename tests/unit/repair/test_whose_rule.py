"""Nobody's pods are ended for a rule that is not their own, nor for one that reaches in from another namespace."""

from collections.abc import Mapping

import pytest
from support.build import HOST, ZONE, Built, NodeBuilder, PodBuilder, a_node, a_pod, a_site, a_workload, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.repair.evictable import EvictionTerms
from underhost.agents.repair.evictions import Left, Repair, Repairs
from underhost.agents.repair.refusers import CAME_FIRST, NOT_ITS_RULE, REACHES
from underhost.agents.site.snapshot import Options, Snapshot

ANY = {"matchLabels": {}}
NO_OWNER = "it has no owner that would make another"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
PORT_80 = {"containerPort": 80, "hostPort": 80}


def zoned(*zones: str) -> list[NodeBuilder]:
    return [a_node(f"n{at}").zone(zone).has(cpu="8") for at, zone in enumerate(zones, 1)]


def victim(name: str, node: str) -> PodBuilder:
    """A pod of namespace `shop` that could be evicted."""
    return a_pod(name, "shop").on(node).labels(app="db").owned_by("ReplicaSet/db").created(LATE)


def owned(name: str, node: str) -> PodBuilder:
    """A pod of namespace `evil` that could be evicted."""
    return a_pod(name, "evil").on(node).labels(app="x").owned_by("ReplicaSet/x").created(EARLY)


def bare(name: str, node: str) -> PodBuilder:
    """A pod that a tenant bound by hand: there is nobody who would make another."""
    return a_pod(name, "evil").on(node).labels(app="x").created(LATE)


def on(*objects: Built, hosts: Mapping[str, str] | None = None) -> Snapshot:
    owners = a_workload("ReplicaSet", "db", 3), a_workload("ReplicaSet", "x", 3, "evil")
    return a_site(*owners, *objects, on=dict(hosts or {}))


def plan(site: Snapshot, cross_namespace: str = "report") -> tuple[list[str], Mapping[str, str]]:
    """The evictions, and the reasons of the pods that stay."""
    evaluator = Evaluator(Options(cross_namespace=cross_namespace))
    report = evaluator.update(site)
    found = list(Repairs(site, report, evaluator, EvictionTerms()).of(report.findings))
    why: dict[str, str] = {}
    for each in found:
        why |= each.reasons if isinstance(each, Left) else {}
    return [each.candidate.pod for each in found if isinstance(each, Repair)], why


ALL_NAMESPACES = {"namespaceSelector": {}}
SHOP = {"namespaces": ["shop"]}


@pytest.mark.parametrize(
    ("site", "moves", "reasons"),
    [
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").apart(term(ZONE, ANY, **SHOP)), victim("db-0", "n1")),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": NOT_ITS_RULE},
            id="a bare pod that names the namespace",
        ),
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").apart(term(ZONE, ANY, **ALL_NAMESPACES)), victim("db-0", "n1")),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": NOT_ITS_RULE},
            id="a bare pod that names every namespace",
        ),
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").apart(term(ZONE, ANY, **SHOP)), victim("db-0", "n1")),
            [],
            {"evil/x": REACHES, "shop/db-0": NOT_ITS_RULE},
            id="a pod with an owner: its own term reaches too far for anything to be done",
        ),
        pytest.param(
            on(
                *zoned("a", "b", "c"),
                bare("x", "n1").apart(term(ZONE, ANY, **SHOP)),
                victim("db-0", "n2"),
                hosts={"n1": "h1", "n2": "h1", "n3": "h2"},
            ),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": NOT_ITS_RULE},
            id="on another node of its ESXi host",
        ),
        pytest.param(
            on(
                *zoned("a", "b", "c"),
                bare("x", "n1").apart(term(HOST, ANY, **SHOP)),
                victim("db-0", "n1"),
            ),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": NOT_ITS_RULE},
            id="on its node",
        ),
        pytest.param(
            on(
                *zoned("a", "b"),
                victim("loner", "n1").apart(term(ZONE, {"app": "web"})),
                a_pod("web", "shop").on("n1").labels(app="web").owned_by("ReplicaSet/db"),
            ),
            ["shop/loner"],
            {},
            id="of two pods of one namespace the one that carries the term goes",
        ),
        pytest.param(
            on(
                *zoned("a", "b"),
                a_pod("loner", "shop").on("n1").apart(term(ZONE, {"app": "web"})),
                a_pod("web", "shop").on("n1").labels(app="web").owned_by("ReplicaSet/db"),
            ),
            [],
            {"shop/loner": NO_OWNER, "shop/web": NOT_ITS_RULE},
            id="and the other stays though nobody else can go",
        ),
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").near(term(ZONE, {"app": "db"}, **SHOP)), victim("db-0", "n2")),
            [],
            {"evil/x": REACHES},
            id="a pod that would follow another namespace's",
        ),
    ],
)
def test_a_term_evicts_only_who_carries_it_and_within_its_namespace(
    site: Snapshot, moves: list[str], reasons: Mapping[str, str]
) -> None:
    assert plan(site) == (moves, reasons)


@pytest.mark.parametrize(
    ("site", "moves"),
    [
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").apart(term(ZONE, ANY, **SHOP)), victim("db-0", "n1")),
            ["evil/x"],
            id="a pod goes for its own term",
        ),
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").apart(term(ZONE, ANY, **SHOP)), victim("db-0", "n1")),
            [],
            id="and no other for it",
        ),
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").near(term(ZONE, {"app": "db"}, **SHOP)), victim("db-0", "n2")),
            ["evil/x"],
            id="a pod follows another namespace's",
        ),
    ],
)
def test_where_terms_act_across_namespaces_the_one_that_carries_it_goes(site: Snapshot, moves: list[str]) -> None:
    assert plan(site, "act")[0] == moves


@pytest.mark.parametrize(
    ("site", "moves", "stays"),
    [
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").needs(cpu="7"), victim("db-0", "n1").needs(cpu="4").created(EARLY)),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": CAME_FIRST},
            id="room: who was there stays",
        ),
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").needs(cpu="5"), victim("db-0", "n1").needs(cpu="4")),
            ["shop/db-0"],
            {},
            id="room: who came later goes, whoever it is",
        ),
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").needs(cpu="7"), victim("db-0", "n1").needs(cpu="4")),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": CAME_FIRST},
            id="room: who came in the same second stays",
        ),
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").ports(PORT_80), victim("db-0", "n1").ports(PORT_80).created(EARLY)),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": CAME_FIRST},
            id="a port: who held it stays",
        ),
        pytest.param(
            on(*zoned("a", "b"), owned("x", "n1").ports(PORT_80), victim("db-0", "n1").ports(PORT_80)),
            ["shop/db-0"],
            {},
            id="a port: who came later goes",
        ),
        pytest.param(
            on(*zoned("a", "b"), bare("x", "n1").ports(PORT_80), victim("db-0", "n1").ports(PORT_80)),
            [],
            {"evil/x": NO_OWNER, "shop/db-0": CAME_FIRST},
            id="a port: of one second nobody goes",
        ),
    ],
)
def test_of_pods_that_share_a_node_the_later_ones_go(
    site: Snapshot, moves: list[str], stays: Mapping[str, str]
) -> None:
    assert plan(site) == (moves, stays)


@pytest.mark.parametrize(("cross_namespace", "moves"), [("report", ["shop/db-0"]), ("act", [])])
def test_what_a_pod_asks_of_others_keeps_none_of_them_where_its_own_rule_is_broken(
    cross_namespace: str, moves: list[str]
) -> None:
    """n3 is the only way out, on the host of a pod that wants nobody of `shop` there."""
    apart = term(HOST, {"app": "db"})
    site = on(
        *(a_node(f"n{at}").has(cpu="8") for at in range(1, 5)),
        *(victim(f"db-{at}", f"n{at + 1}").apart(apart) for at in range(2)),
        bare("x", "n4").apart(term(HOST, ANY, **SHOP)),
        hosts={"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2"},
    )
    assert plan(site, cross_namespace)[0] == moves
