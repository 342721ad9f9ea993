"""The whole check: violations and their groups, the report, its order and its summary."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import HOST, REQUIRED, ZONE, a_budget, a_node, a_pod, a_site, spread, term

from underhost.agents.evaluate.check import check
from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import to_json
from underhost.schemas.severities import SEVERITIES

HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
DB, WEB = {"app": "db"}, {"app": "web"}


def zoned(name, zone):
    return a_node(name).zone(zone)


def three_nodes():
    return [zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b")]


def violations(*objects, on=None):
    report = check(a_site(*objects, on=on), Options())
    return [
        (one.rule, one.reason, one.pod, one.peers, (one.domain.key, one.domain.value) if one.domain else None)
        for one in report.findings
        if one.severity == "violation"
    ]


ZONE_AND_NODE = {
    "topologySpreadConstraints": [spread(ZONE, DB), spread(HOST, DB, 3)],
}
PORT_80 = {"containers": [{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]}
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


@pytest.mark.parametrize(
    ("objects", "on", "expected"),
    [
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
                a_pod("db-1").on("n1").labels(DB).apart(term(HOST, DB)),
            ],
            None,
            [("InterPodAffinity", ANTI, "shop/db-0", ["shop/db-1"], (HOST, "n1"))],
            id="two replicas on one node are one finding, not two",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(ZONE, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(ZONE, DB)),
                a_pod("db-2").on("n3").labels(DB).apart(term(ZONE, DB)),
            ],
            None,
            [("InterPodAffinity", ANTI, "shop/db-0", ["shop/db-1"], (ZONE, "a"))],
            id="two replicas in one zone",
        ),
        pytest.param(
            [a_pod("web-0").on("n1").labels(WEB).apart(term(HOST, DB)), a_pod("db-0").on("n1").labels(DB)],
            None,
            [("InterPodAffinity", EXISTING, "shop/db-0", ["shop/web-0"], (HOST, "n1"))],
            id="the smallest pod is refused by the other one's term",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)),
            ],
            None,
            [],
            id="replicas on two nodes",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term("absent", DB)),
                a_pod("db-1").on("n1").labels(DB).apart(term("absent", DB)),
            ],
            None,
            [],
            id="a key that the node lacks keeps nothing apart",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST_KEY, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(HOST_KEY, DB)),
            ],
            {"n1": "h1", "n2": "h1", "n3": "h2"},
            [("InterPodAffinity", ANTI, "shop/db-0", ["shop/db-1"], (HOST_KEY, "esx-h1"))],
            id="the host key means the live host, whatever the labels say",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST_KEY, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(HOST_KEY, DB)),
            ],
            {"n1": "", "n2": "", "n3": "h2"},
            [],
            id="two unknown hosts are not one host",
        ),
        pytest.param(
            [a_pod("web-0").on("n1").labels(WEB).near(term(HOST, DB)), a_pod("db-0").on("n2").labels(DB)],
            None,
            [("InterPodAffinity", "node(s) didn't match pod affinity rules", "shop/web-0", [], None)],
            id="the pod that affinity wants near is on another node",
        ),
        pytest.param(
            [a_pod("db-0").on("n1").labels(DB).near(term(HOST, DB))],
            None,
            [],
            id="the first pod of its kind may be anywhere",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spreads(spread(ZONE, DB)),
                a_pod("db-1").on("n2").labels(DB).spreads(spread(ZONE, DB)),
            ],
            None,
            [
                (
                    "PodTopologySpread",
                    "node(s) didn't match pod topology spread constraints",
                    "shop/db-0",
                    ["shop/db-1"],
                    (ZONE, "a"),
                )
            ],
            id="both pods of a spread in one zone, the other one empty",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spreads(spread(ZONE, DB)),
                a_pod("db-1").on("n2").labels(DB).spreads(spread(ZONE, DB)),
                a_pod("db-2").on("n3").labels(DB).spreads(spread(ZONE, DB)),
            ],
            None,
            [],
            id="two and one differ by one",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spec(**ZONE_AND_NODE),
                a_pod("db-1").on("n2").labels(DB).spec(**ZONE_AND_NODE),
            ],
            None,
            [
                (
                    "PodTopologySpread",
                    "node(s) didn't match pod topology spread constraints",
                    "shop/db-0",
                    ["shop/db-1"],
                    (ZONE, "a"),
                )
            ],
            id="of two constraints only the one that is broken is named",
        ),
        pytest.param(
            [a_pod("db-0").on("n1").labels(DB).spreads(spread("rack", DB))],
            None,
            [
                (
                    "PodTopologySpread",
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                    "shop/db-0",
                    [],
                    None,
                )
            ],
            id="a node that lacks the key",
        ),
        pytest.param(
            [a_pod("db-0").on("n1").spec(nodeSelector={ZONE: "b"})],
            None,
            [("NodeAffinity", "node(s) didn't match Pod's node affinity/selector", "shop/db-0", [], None)],
            id="a nodeSelector that the node no longer meets",
        ),
        pytest.param(
            [
                a_pod(f"db-{at}").on("n1").spec(containers=[{"name": "c", "resources": {"requests": {"cpu": "5"}}}])
                for at in range(2)
            ],
            None,
            [
                ("NodeResourcesFit", "Insufficient cpu", "shop/db-0", [], None),
                ("NodeResourcesFit", "Insufficient cpu", "shop/db-1", [], None),
            ],
            id="two pods of five cores on a node of eight: each would be refused",
        ),
        pytest.param(
            [a_pod(f"db-{at}").on("n1").spec(**PORT_80) for at in range(2)],
            None,
            [
                ("NodePorts", "node(s) didn't have free ports for the requested pod ports", "shop/db-0", [], None),
                ("NodePorts", "node(s) didn't have free ports for the requested pod ports", "shop/db-1", [], None),
            ],
            id="two pods with one host port on one node",
        ),
    ],
)
def test_a_violation_is_what_the_scheduler_would_refuse_today(objects, on, expected):
    assert violations(*three_nodes(), *objects, on=on) == expected


EXECUTE = {"taints": [{"key": "broken", "effect": "NoExecute"}]}


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], ["shop/a"], id="untolerated: it is to be evicted"),
        pytest.param([{"key": "broken", "operator": "Exists"}], [], id="tolerated for ever"),
        pytest.param(
            [{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            [],
            id="tolerated for a time",
        ),
    ],
)
def test_an_untolerated_noexecute_taint_is_a_violation(tolerations, expected):
    report = check(a_site(a_node("n1").spec(**EXECUTE), a_pod("a").on("n1").spec(tolerations=tolerations)), Options())
    assert [one.pod for one in report.findings if one.severity == "violation"] == expected
    assert [one for one in report.findings if one.severity == "drift"] == []


def test_a_violation_names_pods_nodes_and_domain():
    pods = [a_pod(f"db-{at}").on("n1").labels(DB).apart(term(HOST_KEY, DB)) for at in range(2)]
    (finding,) = check(a_site(a_node("n1"), *pods, on={"n1": "h1"}), Options()).findings
    assert finding.message == (
        "shop/db-0 (node n1) and shop/db-1 (node n1) are both on ESXi host esx-h1, "
        "where required anti-affinity keeps them apart."
    )


def test_the_report_of_a_small_site():
    """Every severity but the running pipeline's own, worst first."""
    site = a_site(
        *three_nodes(),
        a_node("n4").cordoned(),
        a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
        a_pod("db-1").on("n1").labels(DB).apart(term(HOST, DB)),
        a_pod("db-2").on("n2").labels(DB).apart(term(HOST, DB)),
        a_pod("web-0").on("n4").owned_by("StatefulSet/web"),
        a_pod("web-1").on("n4").owned_by("StatefulSet/web"),
        a_pod("lost").on("gone"),
        a_pod("later"),
        a_pod("done").on("n1").finished(),
        a_budget("db", {"matchLabels": DB}, min_available=3),
        on={"n1": "h1", "n2": "h1", "n3": "h2"},
    )
    report = check(site, Options())
    assert [(one.severity, one.rule, one.pod or one.node) for one in report.findings] == [
        ("violation", "InterPodAffinity", "shop/db-0"),
        ("physical", "PhysicalHost", "shop/db-0"),
        ("budget", "PodDisruptionBudget", "shop/db-0"),
        ("unknown-node", "NodeName", "shop/lost"),
        ("co-located", "PhysicalHost", "shop/web-0"),
        ("drift", "NodeUnschedulable", "n4"),
        ("unknown-host", "PhysicalHost", "n4"),
    ]
    assert report.summary == {
        "pods": 7,
        "nodes": 4,
        "hosts": 2,
        "violation": 1,
        "physical": 1,
        "quorum": 0,
        "unsatisfiable": 0,
        "budget": 1,
        "unknown-node": 1,
        "co-located": 1,
        "drift": 1,
        "label-stale": 0,
        "unknown-host": 1,
    }
    assert len({one.id for one in report.findings}) == len(report.findings)
    assert set(SEVERITIES) <= set(report.summary)
    document = json.loads(to_json(report))
    assert (document["apiVersion"], document["kind"]) == ("underhost/v1", "Report")
    assert document["budgets"] == {"shop/db": {"allowed": 0, "current": 3, "desired": 3, "expected": 3}}


def test_a_clean_site_has_no_finding():
    report = check(a_site(*three_nodes(), a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB))), Options())
    assert report.findings == []


APPS = ("a", "b", "c")
SCOPE = ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit", "InterPodAffinity", "PodTopologySpread")


@st.composite
def sites(draw):
    """Up to nine pods of three applications with every kind of required rule, on four nodes, crowded on purpose."""
    nodes = []
    for at in range(1, 5):
        labels = {ZONE: draw(st.sampled_from(["x", "y"]))} if draw(st.booleans()) else {}
        spec = {"taints": [{"key": "t", "effect": draw(st.sampled_from(["NoSchedule", "NoExecute"]))}]}
        nodes.append(a_node(f"n{at}").labels(labels).spec(**spec if draw(st.integers(0, 4)) == 0 else {}))
    specs = {app: draw(_specs()) for app in APPS}
    pods = [
        a_pod(f"p{at}").on(draw(st.sampled_from(["n1", "n2", "n3", "n4"]))).labels(app=app).spec(**specs[app])
        for at, app in enumerate(draw(st.lists(st.sampled_from(APPS), max_size=9)))
    ]
    pods = [pod.deleted() if draw(st.integers(0, 5)) == 0 else pod for pod in pods]
    on = draw(st.none() | st.fixed_dictionaries({f"n{at}": st.sampled_from(["h1", "h2", ""]) for at in range(1, 5)}))
    return [*nodes, *pods], on


@st.composite
def _specs(draw):
    key = st.sampled_from([HOST, ZONE, HOST_KEY, "absent"])
    spec = {}
    affinity = {}
    if draw(st.booleans()):
        affinity["podAntiAffinity"] = {REQUIRED: [term(draw(key), {"app": draw(st.sampled_from(APPS))})]}
    if draw(st.integers(0, 3)) == 0:
        affinity["podAffinity"] = {REQUIRED: [term(draw(key), {"app": draw(st.sampled_from(APPS))})]}
    if affinity:
        spec["affinity"] = affinity
    constraints = [
        spread(draw(key), {"app": draw(st.sampled_from(APPS))}, draw(st.integers(1, 2)))
        for _ in range(draw(st.integers(0, 2)))
    ]
    if constraints:
        spec["topologySpreadConstraints"] = constraints
    if draw(st.integers(0, 4)) == 0:
        spec["nodeSelector"] = {ZONE: "x"}
    cpu, port = draw(st.sampled_from(["1", "3"])), draw(st.sampled_from([0, 0, 80]))
    spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": [{"hostPort": port}]}]
    return spec


@given(sites())
@settings(max_examples=200)
def test_the_violations_are_what_explain_says_of_each_pod_on_its_own_node(site):
    objects, on = site
    snapshot = a_site(*objects, on=on)
    report = check(snapshot, Options())
    found = {
        (pod, one.rule)
        for one in report.findings
        if one.severity == "violation" and one.rule in SCOPE
        for pod in (one.pod, *one.peers)
    }
    expected = set()
    for key, verdict in explain(snapshot, Options(), sorted(snapshot.pods)).pods.items():
        failing = verdict.nodes[snapshot.pods[key].spec.node_name].failing
        expected |= {(key, rule) for rule in failing if rule in SCOPE}
    assert found == expected


@given(sites(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_input_does_not_matter(site, rng: random.Random):
    objects, on = site
    before = to_json(check(a_site(*objects, on=on), Options()))
    rng.shuffle(objects)
    pairs = list((on or {}).items())
    rng.shuffle(pairs)
    assert to_json(check(a_site(*objects, on=None if on is None else dict(pairs)), Options())) == before


@given(sites())
@settings(max_examples=60)
def test_ids_are_unique_in_a_report(site):
    objects, on = site
    ids = [one.id for one in check(a_site(*objects, on=on), Options()).findings]
    assert len(ids) == len(set(ids))


def kept_apart(snapshot):
    """The pods in findings of anti-affinity, with each group's domain."""
    return {
        (pod, one.domain.key, one.domain.value)
        for one in check(snapshot, Options()).findings
        if one.rule == "InterPodAffinity" and one.domain is not None
        for pod in (one.pod, *one.peers)
    }


@given(sites(), st.integers(0, 8))
@settings(max_examples=80)
def test_removing_a_pod_never_makes_another_refused_by_anti_affinity(site, which):
    objects, on = site
    pods = [one for one in objects if type(one).__name__ == "Pod"]
    before = kept_apart(a_site(*objects, on=on))
    rest = [one for one in objects if not pods or one is not pods[which % len(pods)]]
    assert kept_apart(a_site(*rest, on=on)) <= before
