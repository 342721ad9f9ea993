"""Preferences that another node would meet better: reported with `--drift` only."""

import pytest
from support.build import a_node, a_pod, a_site, term

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DB = {"app": "db"}


def prefers_zone(zone):
    preference = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": preference}]}}}


def prefers(kind, labels):
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {PREFERRED: [{"weight": 10, "podAffinityTerm": term}]}}}


def spreads(key=ZONE):
    constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": DB}}]}


def nodes():
    return [a_node("n1").zone("a"), a_node("n2").zone("b")]


def drift(*objects, asked=True):
    report = check(a_site(*objects), Options(drift=asked))
    return [(one.rule, one.pod, one.node) for one in report.findings if one.severity == "drift"]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [*nodes(), a_pod("db-0").on("n1").spec(**prefers_zone("b"))],
            [("NodeAffinity", "shop/db-0", "n1")],
            id="a node of the preferred zone is free",
        ),
        pytest.param(
            [*nodes(), a_pod("db-0").on("n2").spec(**prefers_zone("b"))], [], id="it is where it would rather be"
        ),
        pytest.param(
            [
                a_node("n1").zone("a"),
                a_node("n2").zone("b").cordoned(),
                a_pod("db-0").on("n1").spec(**prefers_zone("b")),
            ],
            [],
            id="the better node is cordoned",
        ),
        pytest.param(
            [
                *nodes(),
                a_pod("db-0").on("n1").labels(DB).spec(**prefers("podAntiAffinity", DB)),
                a_pod("db-1").on("n1").labels(DB).spec(**prefers("podAntiAffinity", DB)),
            ],
            [("InterPodAffinity", "shop/db-0", "n1"), ("InterPodAffinity", "shop/db-1", "n1")],
            id="two that would rather be apart share a node, and another is free",
        ),
        pytest.param(
            [
                a_node("n1"),
                a_pod("db-0").on("n1").labels(DB).spec(**prefers("podAntiAffinity", DB)),
                a_pod("db-1").on("n1").labels(DB),
            ],
            [],
            id="there is no other node",
        ),
        pytest.param(
            [
                *nodes(),
                a_pod("db-0").on("n1").labels(DB).spec(**spreads()),
                a_pod("db-1").on("n1").labels(DB).spec(**spreads()),
            ],
            [("PodTopologySpread", "shop/db-0", "n1"), ("PodTopologySpread", "shop/db-1", "n1")],
            id="both pods of a soft spread are in one zone",
        ),
        pytest.param(
            [
                *nodes(),
                a_pod("db-0").on("n1").labels(DB).spec(**spreads()),
                a_pod("db-1").on("n2").labels(DB).spec(**spreads()),
            ],
            [],
            id="a soft spread that is met",
        ),
        pytest.param(
            [*nodes(), a_pod("db-0").on("n1").spec(**prefers_zone("b")).deleted()], [], id="a pod that is going anyway"
        ),
    ],
)
def test_a_preference_that_a_feasible_node_meets_better_is_drift(objects, expected):
    assert drift(*objects) == expected


HOSTNAME = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [
                a_pod("a").on("n1").labels({"app": "a"}).prefers_apart(1, term(HOSTNAME, {"app": "b"})),
                a_pod("b").on("n2").labels({"app": "b"}).prefers_near(100, term(HOSTNAME, {"app": "a"})),
            ],
            [("InterPodAffinity", "shop/b", "n2")],
            id="another pod would rather have it near",
        ),
        pytest.param(
            [
                a_pod("a").on("n1").labels({"app": "a"}).prefers_near(1, term(HOSTNAME, {"app": "c"})),
                a_pod("c").on("n1").labels({"app": "c"}),
                a_pod("b").on("n2").labels({"app": "b"}).near(term(ZONE, {"app": "a"})),
                a_pod("d").on("n2").labels({"app": "b"}).near(term(ZONE, {"app": "a"})),
            ],
            [],
            id="others need it near",
        ),
        pytest.param(
            [
                a_pod("a").on("n1").labels({"app": "a"}).prefers_apart(1, term(HOSTNAME, {"app": "b"})),
                a_pod("b").on("n1").labels({"app": "b"}).prefers_near(100, term(HOSTNAME, {"app": "a"})),
            ],
            [("InterPodAffinity", "shop/a", "n1")],
            id="it would rather be away from one that would rather have it near",
        ),
        pytest.param(
            [
                a_pod("a").on("n1").labels({"app": "a"}).prefers_near(1, term(HOSTNAME, {"app": "b"})),
                a_pod("b").on("n1").labels({"app": "b"}).prefers_apart(100, term(HOSTNAME, {"app": "a"})),
            ],
            [("InterPodAffinity", "shop/b", "n1")],
            id="another would rather be away from it",
        ),
    ],
)
def test_of_pods_near_each_other_the_own_preference_counts_and_no_others(objects, expected):
    assert drift(*nodes(), *objects) == expected


def test_preferences_are_not_looked_at_unless_asked():
    assert drift(*nodes(), a_pod("db-0").on("n1").spec(**prefers_zone("b")), asked=False) == []


def test_the_better_node_is_named():
    report = check(a_site(*nodes(), a_pod("db-0").on("n1").spec(**prefers_zone("b"))), Options(drift=True))
    assert [one.message for one in report.findings] == [
        "Pod shop/db-0 runs on node n1; node n2 would meet its preferred node affinity better."
    ]


def test_asking_leaves_the_judge_as_it_was():
    objects = [*nodes(), *(a_pod(f"db-{at}").on("n1").labels(DB).spec(**spreads()) for at in range(3))]
    assert drift(*objects) == drift(*reversed(objects))
