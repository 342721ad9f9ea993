"""Lint of terms between pods and spread constraints: what they select, their weights, and whether domains suffice."""

import pytest
from support.answers.lint import ANTI, ESXI, NEAR, NODE_AFFINITY, POD_SPEC, SPREAD, Row, Written, hosts, rows, zones
from support.build import HOST, PREFERRED, REQUIRED, ZONE, Json, a_manifest, a_node, a_pod, app, labelled, spread, term

THREE = zones("a", "b", "c")
PREFERS = {"podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term(HOST, app("dbs"))}]}}
ON = [a_pod("p0").on("n0").labels(app="other")]


@pytest.mark.parametrize(
    ("objects", "inventory", "expected"),
    [
        pytest.param(
            [*zones("a", "b", "c"), a_manifest(replicas=2).apart(term(ESXI, app("db")))],
            hosts(n0="esx-1", n1="esx-1", n2="esx-1"),
            [
                Row(
                    "replicas-exceed-domains",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/db wants 2 replicas, each in a node.cluster.x-k8s.io/esxi-host of its own, and"
                        " the nodes in reach have 1 domain: 1 can never be placed; use fewer replicas, or make the rule"
                        " a preference."
                    ),
                )
            ],
            id="the host key counts live hosts: three nodes on one host are one domain",
        ),
        pytest.param(
            [a_manifest().apart({"topologyKey": HOST})],
            None,
            [
                Row(
                    "selector-null",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.labelSelector",
                    (
                        "The required anti-affinity of Deployment shop/db has no labelSelector, which matches no pod, "
                        "so it has no effect: give it the labels of the pods that are meant."
                    ),
                )
            ],
            id="required anti-affinity without a selector",
        ),
        pytest.param(
            [a_manifest().near({"topologyKey": HOST})],
            None,
            [
                Row(
                    "selector-null",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.labelSelector",
                    (
                        "The required affinity of Deployment shop/db has no labelSelector, which matches no pod, so "
                        "none of its pods can be placed: give it the labels of the pods that are meant."
                    ),
                )
            ],
            id="required affinity without a selector",
        ),
        pytest.param(
            [a_manifest().prefers_near(5, {"topologyKey": HOST})],
            None,
            [
                Row(
                    "preferred-selector-null",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector",
                    (
                        "The preferred affinity of Deployment shop/db has no labelSelector, which matches no pod, so it"
                        " has no effect: give it the labels of the pods that are meant."
                    ),
                )
            ],
            id="preferred affinity without a selector",
        ),
        pytest.param(
            [a_manifest().spreads(spread(ZONE, {}))],
            None,
            [
                Row(
                    "selector-null",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.labelSelector",
                    (
                        "The DoNotSchedule spread constraint of Deployment shop/db has an empty labelSelector, which "
                        "counts no pod, so it has no effect: give it the labels of the pods that are meant."
                    ),
                )
            ],
            id="spread with the empty selector",
        ),
        pytest.param(
            [
                a_manifest()
                .prefers_apart(100, term(HOST, app("db")))
                .prefers_apart(101, term(HOST, app("db")))
                .prefers_nodes((0, labelled("disk")))
            ],
            None,
            [
                Row(
                    "weight-out-of-range",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_AFFINITY}.{PREFERRED}[0].weight",
                    (
                        "A preference of Deployment shop/db has the weight 0, which the API server refuses: use 1 to "
                        "100."
                    ),
                ),
                Row(
                    "weight-out-of-range",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAntiAffinity.{PREFERRED}[1].weight",
                    (
                        "A preference of Deployment shop/db has the weight 101, which the API server refuses: use 1 to "
                        "100."
                    ),
                ),
            ],
            id="weights 0 and 101",
        ),
        pytest.param(
            [a_manifest().apart(term(HOST, app("dbs")))],
            None,
            [
                Row(
                    "anti-affinity-selects-nothing",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.labelSelector",
                    (
                        "The required anti-affinity of Deployment shop/db selects no pod of the input, not even its "
                        "own, so it keeps nothing apart: its pods have app=db; select the labels of the pods that are "
                        "meant."
                    ),
                )
            ],
            id="an anti-affinity that misses its own pods' labels",
        ),
        pytest.param(
            [a_manifest().spec(affinity=PREFERS)],
            None,
            [
                Row(
                    "preference-selects-nothing",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector",
                    (
                        "The preferred anti-affinity of Deployment shop/db selects no pod of the input, so it has no "
                        "effect: its pods have app=db; select the labels of the pods that are meant, or leave it out."
                    ),
                )
            ],
            id="a preference that misses its own pods' labels",
        ),
        pytest.param(
            [*THREE, *ON, a_manifest().apart(term(HOST, app("db"), namespaces=["prod"]))],
            None,
            [
                Row(
                    "anti-affinity-to-nobody",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.labelSelector",
                    (
                        "The required anti-affinity of Deployment shop/db selects no pod of the input, not even its "
                        "own, so it keeps nothing apart: its pods have app=db; select the labels of the pods that are "
                        "meant."
                    ),
                )
            ],
            id="an anti-affinity in a namespace without pods",
        ),
        pytest.param(
            [*THREE, *ON, a_manifest().prefers_near(5, term(HOST, app("cache")))],
            None,
            [
                Row(
                    "preference-selects-nothing",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector",
                    (
                        "The preferred affinity of Deployment shop/db selects no pod of the cluster, so it has no "
                        "effect: select the labels of the pods that are meant, or leave it out."
                    ),
                )
            ],
            id="a preference for pods that the cluster lacks",
        ),
        pytest.param(
            [a_manifest().spreads(spread(ZONE, app("dbs")))],
            None,
            [
                Row(
                    "spread-misses-own-pods",
                    "drift",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.labelSelector",
                    (
                        "The DoNotSchedule spread constraint of Deployment shop/db does not select its own pods, so "
                        "they are never counted and may all share a domain: select their labels (app=db)."
                    ),
                )
            ],
            id="a spread constraint that misses its own pods' labels",
        ),
        pytest.param(
            [*THREE, *ON, a_manifest().near(term(HOST, app("cache")))],
            None,
            [
                Row(
                    "affinity-unmet",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.labelSelector",
                    (
                        "The required affinity of Deployment shop/db selects no pod of the input, so none of its pods "
                        "can be placed: select the labels of pods that are there."
                    ),
                )
            ],
            id="a required affinity to pods that the cluster lacks",
        ),
        pytest.param(
            [a_manifest().near(term(HOST, app("cache")))],
            None,
            [
                Row(
                    "affinity-unmet-here",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.labelSelector",
                    (
                        "The required affinity of Deployment shop/db selects no pod of the input, so none of its pods "
                        "can be placed: select the labels of pods that are there."
                    ),
                )
            ],
            id="a required affinity to pods that no manifest makes is weaker: another file may make them",
        ),
        pytest.param(
            [
                *THREE,
                *ON,
                a_pod("c").on("n1").labels(app="cache"),
                a_manifest().near(term(HOST, app("cache")), term(HOST, app("other"))),
            ],
            None,
            [
                Row(
                    "affinity-unmet",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAffinity.{REQUIRED}",
                    (
                        "No pod of the input matches all 2 required affinity terms of Deployment shop/db at once, as "
                        "one must, so none of its pods can be placed: make the terms select the same pods."
                    ),
                )
            ],
            id="two required affinity terms that no pod meets at once",
        ),
        pytest.param(
            [*zones("a", "b", "c", "a"), a_manifest(replicas=4).apart(term(ZONE, app("db")))],
            None,
            [
                Row(
                    "replicas-exceed-domains",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/db wants 4 replicas, each in a topology.kubernetes.io/zone of its own, and the"
                        " nodes in reach have 3 domains: 1 can never be placed; use fewer replicas, or make the rule a "
                        "preference."
                    ),
                )
            ],
            id="seed 004: four replicas over three domains",
        ),
        pytest.param(
            [
                *zones("a", "b", "c"),
                a_manifest(name="a", replicas=2).apart(
                    {
                        "topologyKey": ZONE,
                        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
                    }
                ),
                a_manifest(name="b", replicas=2).apart(
                    {
                        "topologyKey": ZONE,
                        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
                    }
                ),
            ],
            None,
            [
                Row(
                    "replicas-exceed-domains",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/a",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/a and Deployment shop/b want 4 replicas, each in a topology.kubernetes.io/zone"
                        " of its own, and the nodes in reach have 3 domains: 1 can never be placed; use fewer replicas,"
                        " or make the rule a preference."
                    ),
                )
            ],
            id="two Deployments with one anti-affinity count together",
        ),
        pytest.param(
            [
                *zones("a", "b"),
                a_node("n2").labels({ZONE: "c"}).tainted("dedicated=x:NoSchedule"),
                a_manifest().apart(term(ZONE, app("db"))),
            ],
            None,
            [
                Row(
                    "replicas-exceed-domains",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/db wants 3 replicas, each in a topology.kubernetes.io/zone of its own, and the"
                        " nodes in reach have 2 domains: 1 can never be placed; use fewer replicas, or make the rule a "
                        "preference."
                    ),
                )
            ],
            id="a zone behind a taint is no domain for pods that do not tolerate it",
        ),
        pytest.param(
            [*zones("a", "b", "c"), a_manifest().apart(term(ESXI, app("db")))],
            hosts(n0="esx-1", n1="esx-1", n2="esx-2"),
            [
                Row(
                    "replicas-exceed-domains",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/db wants 3 replicas, each in a node.cluster.x-k8s.io/esxi-host of its own, and"
                        " the nodes in reach have 2 domains: 1 can never be placed; use fewer replicas, or make the "
                        "rule a preference."
                    ),
                )
            ],
            id="the host key with more replicas than live hosts",
        ),
        pytest.param(
            [*zones("a", "b"), a_manifest(replicas=3).spreads(spread(ZONE, app("db"), minDomains=3))],
            None,
            [
                Row(
                    "spread-exceeds-domains",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.minDomains",
                    (
                        "Deployment shop/db wants 3 replicas, at most 1 in each topology.kubernetes.io/zone, because "
                        "minDomains is 3 and there are 2: 1 can never be placed; lower minDomains, or raise maxSkew."
                    ),
                )
            ],
            id="minDomains above the number of zones",
        ),
        pytest.param(
            [
                *zones("a", "b"),
                a_node("n2").labels({ZONE: "c"}).tainted("dedicated=x:NoSchedule"),
                a_manifest(replicas=3).spreads(spread(ZONE, app("db"))),
            ],
            None,
            [
                Row(
                    "spread-exceeds-domains",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.maxSkew",
                    (
                        "Deployment shop/db wants 3 replicas, at most 1 in each topology.kubernetes.io/zone, because 1 "
                        "domain that they cannot use stays empty and is counted: 1 can never be placed; raise maxSkew, "
                        "or set nodeTaintsPolicy and nodeAffinityPolicy to Honor."
                    ),
                )
            ],
            id="a zone behind a taint stays empty and holds the minimum at 0",
        ),
        pytest.param(
            [a_manifest().spreads(spread(ZONE, app("db"), soft=True, minDomains=2))],
            None,
            [
                Row(
                    "min-domains-without-effect",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.minDomains",
                    (
                        "The ScheduleAnyway spread constraint of Deployment shop/db sets minDomains, which the API "
                        "server allows only with DoNotSchedule: use that, or leave minDomains out."
                    ),
                )
            ],
            id="minDomains beside ScheduleAnyway",
        ),
    ],
)
def test_a_term_that_cannot_do_what_it_says_is_reported(
    objects: list[Written], inventory: Json | None, expected: list[Row]
) -> None:
    assert rows(objects, inventory) == expected
