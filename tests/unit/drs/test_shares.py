"""What one namespace asks for is worked out for itself, and has its share: nobody else's rules change for it."""

import pytest
from support.build import HOST, ZONE, PodBuilder, a_node, a_pod, a_site, term

from underhost.agents.compiled.model import compile
from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.drs.names import rule_name
from underhost.agents.drs.shares import tenant_of
from underhost.agents.site.snapshot import Options
from underhost.schemas.shares import Capped, Shares, capped_of
from underhost.schemas.vsphere import Host

HOSTS = [Host(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in range(1, 7)]
NODES = [a_node(f"n{at}").labels({ZONE: f"z{at}"}) for at in range(1, 7)]
ANY = {"matchLabels": {}}


def star(namespace: str = "evil", owner: str | None = None) -> list[PodBuilder]:
    """A pod on n1 that wants to be apart from all of its namespace, and one on each other node: a rule for each."""
    middle = a_pod("a", namespace).on("n1").labels(app="a").apart(term(HOST, ANY))
    if owner:
        middle = middle.owned_by(owner)
    return [middle, *(a_pod(f"b{at}", namespace).on(f"n{at}").labels(app="b") for at in range(2, 7))]


def made(pods: list[PodBuilder], shares: Shares) -> tuple[list[str], list[Capped]]:
    """The labels of the rules, without their hashes; and who asked for more."""
    site = a_site(*NODES, *pods, on={f"n{at}": f"h{at}" for at in range(1, 7)}, hosts=HOSTS)
    rules = RulesByCluster(Options(shares=shares))
    found = rules.of(site, compile(site, Options()))
    return [rule.name.rpartition("-")[0] for rule in found], [one.capped for one in rules.left_out]


VICTIM = [a_pod(f"db-{at}").on(f"n{at}").labels(app="db").apart(term(HOST, {"app": "db"})) for at in (1, 2, 3)]
DB = ["underhost-default-shop.db-1"]


@pytest.mark.parametrize(
    ("pods", "shares", "labels", "left_out"),
    [
        pytest.param(
            star(),
            Shares(drs_rules=3, owner=100),
            ["underhost-default-evil.a", "underhost-default-evil.a.2", "underhost-default-evil.a.3"],
            [
                Capped(
                    "drsRules",
                    "evil",
                    "a",
                    "of the DRS rules that it asks for in vSphere cluster C0 the first 3 are made",
                )
            ],
            id="a bare pod has an owner's share by its own name",
        ),
        pytest.param(
            star(owner="StatefulSet/a"),
            Shares(drs_rules=10, owner=20),
            ["underhost-default-evil.a", "underhost-default-evil.a.2"],
            [
                Capped(
                    "drsRules",
                    "evil",
                    "a",
                    "of the DRS rules that it asks for in vSphere cluster C0 the first 2 are made",
                )
            ],
            id="one owner has its part of the share",
        ),
        pytest.param(
            [*star(), *VICTIM],
            Shares(drs_rules=1, owner=100),
            ["underhost-default-evil.a", *DB],
            [
                Capped(
                    "drsRules",
                    "evil",
                    "a",
                    "of the DRS rules that it asks for in vSphere cluster C0 the first 1 are made",
                )
            ],
            id="the others have theirs",
        ),
        pytest.param(
            star(),
            Shares(drs_rules=5, owner=100),
            [f"underhost-default-evil.a{n}" for n in ("", ".2", ".3", ".4", ".5")],
            [],
            id="within it all are made",
        ),
    ],
)
def test_what_is_beyond_a_share_is_left_out_and_said(
    pods: list[PodBuilder], shares: Shares, labels: list[str], left_out: list[Capped]
) -> None:
    assert made(pods, shares) == (labels, left_out)


def test_a_namespaces_share_counts_all_its_owners() -> None:
    pods = [
        a_pod(f"{name}-{at}", "evil")
        .on(f"n{at}")
        .labels(app=name)
        .owned_by(f"StatefulSet/{name}")
        .apart(term(HOST, {"app": name}))
        for name in ("a", "b", "c")
        for at in (1, 2)
    ]
    # three times the same pair would be one rule: each application's VMs are others
    moved = [pod.on(f"n{1 + at}") for at, pod in enumerate(pods)]
    labels, left_out = made(moved, Shares(drs_rules=2, owner=50))
    assert labels == ["underhost-default-evil.a", "underhost-default-evil.b"]
    assert left_out == [
        Capped("drsRules", "evil", "", "of the DRS rules that it asks for in vSphere cluster C0 the first 2 are made")
    ]


def test_a_larger_rule_of_another_namespace_takes_over_nobody_elses() -> None:
    larger = [
        a_pod(f"x-{at}", "evil").on(f"n{at}").labels(app="x").apart(term(HOST, {"app": "x"})) for at in range(1, 7)
    ]
    alone, _ = made(VICTIM, Shares())
    both, _ = made([*larger, *VICTIM], Shares())
    assert alone == DB
    assert both == ["underhost-default-evil.x-1", *DB]


@pytest.mark.parametrize(
    ("label", "tenant"),
    [
        pytest.param("shop.db", ("shop", "db"), id="an application"),
        pytest.param("shop.db.2", ("shop", "db"), id="its second rule"),
        pytest.param("shop.db.together", ("shop", "db"), id="its affinity"),
        pytest.param("shop.db.together.12", ("shop", "db"), id="its twelfth affinity"),
    ],
)
def test_a_rules_name_tells_whose_it_is(label: str, tenant: tuple[str, str]) -> None:
    assert tenant_of("prod-a", rule_name("prod-a", label)) == tenant


def test_a_long_name_hides_no_namespace() -> None:
    assert tenant_of("prod-a", rule_name("prod-a", f"evil.{'x' * 200}")).namespace == "evil"
    assert tenant_of("prod-a", rule_name("prod-b", "evil.x")) == ("", "")


@pytest.mark.parametrize(
    "capped",
    [
        pytest.param(Capped("drsRules", "evil", "", "it asks for 5 DRS rules, and 1 are made"), id="a namespace"),
        pytest.param(Capped("events", "evil", "Deployment/web", "3 Events are not told"), id="an owner"),
    ],
)
def test_who_asked_for_more_is_read_back_from_the_sentence(capped: Capped) -> None:
    assert capped_of(str(capped)) == capped
    assert capped_of("rule x is not one of site a's own") is None
