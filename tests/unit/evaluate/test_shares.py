"""Of a pod's terms so many count, and who has more is named; a foreign term joins nobody else's finding."""

from dataclasses import replace

import pytest
from support.build import HOST, ZONE, PodBuilder, a_node, a_pod, a_site, app, spread, term

from underhost.agents.compiled.model import compile
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.shares import Shares

THREE = Options(shares=Shares(terms=3))
TOLD = (
    "Namespace evil has its share (shares.terms): "
    "of a pod's terms between pods and spread constraints the first 3 count."
)
NODES = [a_node("n1").zone("a"), a_node("n2").zone("b")]
X = a_pod("x", "evil").labels(app="x").on("n1")


def many(count: int) -> PodBuilder:
    return X.apart(*(term(HOST, {f"key-{at}": "1"}) for at in range(count)))


def keys(pod: PodBuilder) -> dict[str, list[str]]:
    """The topologyKeys of the terms that count, by kind."""
    [cls] = compile(a_site(*NODES, pod), THREE).classes
    return {
        "apart": [one.key for one in cls.required_anti],
        "near": [one.key for one in cls.required_affinity],
        "spread": [one.key for one in cls.hard],
        "preferred": [one.key for one in cls.preferred],
    }


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            X.apart(*(term(f"k{at}", app("x")) for at in range(5))),
            {"apart": ["k0", "k1", "k2"], "near": [], "spread": [], "preferred": []},
            id="the first three",
        ),
        pytest.param(
            X.prefers_apart(1, term("p", app("x")))
            .spreads(spread("s", app("x")))
            .near(term("n", app("x")))
            .apart(term("a", app("x"))),
            {"apart": ["a"], "near": ["n"], "spread": ["s"], "preferred": []},
            id="what is required before what is preferred",
        ),
        pytest.param(
            X.prefers_near(1, term("p", app("x"))).apart(term("a", app("x"))).spreads(spread("s", app("x"))),
            {"apart": ["a"], "near": [], "spread": ["s"], "preferred": ["p"]},
            id="as many as the share all count",
        ),
    ],
)
def test_so_many_terms_of_a_pod_count(pod: PodBuilder, expected: dict[str, list[str]]) -> None:
    assert keys(pod) == expected


def tenants(found: list[Finding]) -> list[tuple[str | None, str]]:
    return [(one.object, one.message) for one in found if one.rule == "Tenant"]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(many(4), [("Namespace/evil", TOLD)], id="a pod with more"),
        pytest.param(many(3), [], id="a pod with as many"),
        pytest.param(many(4).finished(), [], id="a pod that has finished"),
        pytest.param(
            a_pod("y", "evil").apart(*(term(HOST, app(str(at))) for at in range(9))),
            [("Namespace/evil", TOLD)],
            id="a pod that waits",
        ),
    ],
)
def test_who_has_more_terms_is_named(pod: PodBuilder, expected: list[tuple[str, str]]) -> None:
    assert tenants(check(a_site(*NODES, pod), THREE).findings) == expected


def test_a_followed_site_names_him_until_his_pod_goes() -> None:
    resident, before = Evaluator(THREE), a_site(*NODES, a_pod("db"))
    after = replace(before, pods={**before.pods, X.key: many(4).build()})
    found = [tenants(resident.update(snapshot).findings) for snapshot in (before, after, before)]
    assert found == [[], [("Namespace/evil", TOLD)], []]


def groups(site: Snapshot) -> list[tuple[str | None, list[str], str | None]]:
    """(pod, peers, whose rule) of the violations, as a resident evaluator and one check say them."""
    found = check(site, Options()).findings
    assert len({one.id for one in found}) == len(found)
    return [(one.pod, one.peers, one.object) for one in found if one.rule == "InterPodAffinity"]


VICTIM = [a_pod(f"db-{at}").labels(app="db").on("n1").apart(term(ZONE, app("db"))) for at in range(2)]


@pytest.mark.parametrize(
    ("evil", "expected"),
    [
        pytest.param([], [("shop/db-0", ["shop/db-1"], None)], id="alone"),
        pytest.param(
            [X.apart(term(ZONE, {}, namespaceSelector={}))],
            [
                ("evil/x", ["shop/db-0", "shop/db-1"], "Namespace/evil"),
                ("shop/db-0", ["shop/db-1"], None),
            ],
            id="beside a term that selects everything",
        ),
        pytest.param(
            [X.apart(term(ZONE, app("db"), namespaces=["shop"]))],
            [
                ("evil/x", ["shop/db-0", "shop/db-1"], "Namespace/evil"),
                ("shop/db-0", ["shop/db-1"], None),
            ],
            id="beside the very same selector",
        ),
        pytest.param(
            [a_pod("x", "zoo").on("n1").apart(term(ZONE, app("db"), namespaces=["shop"]))],
            [
                ("shop/db-0", ["shop/db-1", "zoo/x"], "Namespace/zoo"),
                ("shop/db-0", ["shop/db-1"], None),
            ],
            id="beside one whose name comes after",
        ),
    ],
)
def test_a_foreign_term_joins_nobody_elses_finding(
    evil: list[PodBuilder], expected: list[tuple[str, list[str], str | None]]
) -> None:
    assert sorted(groups(a_site(*NODES, *VICTIM, *evil)), key=str) == sorted(expected, key=str)
