"""Lint of topology keys and node labels: each check with the object, field and message it gives."""

import pytest
from support.answers.lint import (
    ANTI,
    ESXI,
    NEAR,
    NODE_TERMS,
    OLD_ZONE,
    POD_SPEC,
    SPREAD,
    Row,
    Written,
    hosts,
    rows,
    zones,
)
from support.build import PREFERRED, ZONE, Json, a_manifest, a_node, a_pod, app, labelled, spread, term

THREE = zones("a", "b", "c")
ON = [a_pod("p0").on("n0").labels(app="other")]


@pytest.mark.parametrize(
    ("objects", "inventory", "expected"),
    [
        pytest.param(
            [*THREE, a_manifest().apart(term(OLD_ZONE, app("db")))],
            None,
            [
                Row(
                    "topology-key-absent",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        f"No node carries the label {OLD_ZONE}, so the required anti-affinity of Deployment shop/db "
                        "keeps nothing apart: topology.kubernetes.io/zone is meant."
                    ),
                )
            ],
            id="a deprecated key that no node carries is told once",
        ),
        pytest.param(
            [a_manifest().apart(term("", app("db")))],
            None,
            [
                Row(
                    "topology-key-empty",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "The required anti-affinity of Deployment shop/db has an empty topologyKey, which the API "
                        "server refuses: name the node label that makes a domain, for example kubernetes.io/hostname."
                    ),
                )
            ],
            id="an anti-affinity with an empty topologyKey",
        ),
        pytest.param(
            [a_manifest().spreads(spread("", app("db")))],
            None,
            [
                Row(
                    "topology-key-empty",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.topologyKey",
                    (
                        "The DoNotSchedule spread constraint of Deployment shop/db has an empty topologyKey, which the "
                        "API server refuses: name the node label that makes a domain, for example "
                        "kubernetes.io/hostname."
                    ),
                )
            ],
            id="a spread constraint on an empty topologyKey",
        ),
        pytest.param(
            [
                *THREE,
                a_manifest("Deployment", "cache", 1),
                a_manifest().near(term("topology.kubernetes.io/hostname", app("cache"))),
            ],
            None,
            [
                Row(
                    "topology-key-absent",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.topologyKey",
                    (
                        "No node carries the label topology.kubernetes.io/hostname, so the required affinity of "
                        "Deployment shop/db can never be met and none of its pods can be placed: kubernetes.io/hostname"
                        " is meant."
                    ),
                )
            ],
            id="seed 000: affinity on topology.kubernetes.io/hostname, which no node carries",
        ),
        pytest.param(
            [
                a_manifest("Deployment", "cache", 1),
                a_manifest().near(term("topology.kubernetes.io/hostname", app("cache"))),
            ],
            None,
            [
                Row(
                    "topology-key-mistaken",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.topologyKey",
                    (
                        "The required affinity of Deployment shop/db uses topology.kubernetes.io/hostname, a label that"
                        " Kubernetes gives to no node: kubernetes.io/hostname is meant."
                    ),
                )
            ],
            id="seed 000 without its nodes",
        ),
        pytest.param(
            [*zones("", "", ""), a_manifest().apart(term(ZONE, app("db")))],
            None,
            [
                Row(
                    "topology-key-absent",
                    "unsatisfiable",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "No node carries the label topology.kubernetes.io/zone, so the required anti-affinity of "
                        "Deployment shop/db keeps nothing apart: label the nodes, or use a key that they carry "
                        "(kubernetes.io/hostname)."
                    ),
                )
            ],
            id="anti-affinity on zones that nodes lack",
        ),
        pytest.param(
            [*zones("", "", ""), a_manifest().spreads(spread(ZONE, app("db")))],
            None,
            [
                Row(
                    "topology-key-absent",
                    "unsatisfiable",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.topologyKey",
                    (
                        "No node carries the label topology.kubernetes.io/zone, so the DoNotSchedule spread constraint "
                        "of Deployment shop/db can never be met and none of its pods can be placed: label the nodes, or"
                        " use a key that they carry (kubernetes.io/hostname)."
                    ),
                )
            ],
            id="spread over zones that nodes lack",
        ),
        pytest.param(
            [
                *zones("", "", ""),
                a_manifest().prefers_apart(1, term(ZONE, app("db"))).spreads(spread(ZONE, app("db"), soft=True)),
            ],
            None,
            [
                Row(
                    "preferred-topology-key-absent",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey",
                    (
                        "No node carries the label topology.kubernetes.io/zone, so the preferred anti-affinity of "
                        "Deployment shop/db keeps nothing apart: label the nodes, or use a key that they carry "
                        "(kubernetes.io/hostname)."
                    ),
                ),
                Row(
                    "preferred-topology-key-absent",
                    "drift",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.topologyKey",
                    (
                        "No node carries the label topology.kubernetes.io/zone, so the ScheduleAnyway spread constraint"
                        " of Deployment shop/db has no effect: label the nodes, or use a key that they carry "
                        "(kubernetes.io/hostname)."
                    ),
                ),
            ],
            id="preferences over zones that nodes lack",
        ),
        pytest.param(
            [*zones("a", "b", "c", ""), a_manifest().apart(term(ZONE, app("db")))],
            None,
            [
                Row(
                    "topology-key-partial",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "1 of 4 nodes that the pods of Deployment shop/db may use (n3) has no label "
                        "topology.kubernetes.io/zone: the required anti-affinity keeps nothing apart there; label them."
                    ),
                )
            ],
            id="anti-affinity on a key that one node lacks",
        ),
        pytest.param(
            [*zones("a", "b", "c", ""), a_manifest(replicas=1).near(term(ZONE, app("db")))],
            None,
            [
                Row(
                    "topology-key-partial",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{NEAR}.topologyKey",
                    (
                        "1 of 4 nodes that the pods of Deployment shop/db may use (n3) has no label "
                        "topology.kubernetes.io/zone: the required affinity never lets a pod go there; label them."
                    ),
                )
            ],
            id="affinity on a key that one node lacks",
        ),
        pytest.param(
            [
                *zones("a", "b", "c", ""),
                a_manifest().spreads(spread(ZONE, app("db"))),
            ],
            None,
            [
                Row(
                    "topology-key-partial",
                    "drift",
                    "PodTopologySpread",
                    "Deployment/shop/db",
                    f"{SPREAD}.topologyKey",
                    (
                        "1 of 4 nodes that the pods of Deployment shop/db may use (n3) has no label "
                        "topology.kubernetes.io/zone: the DoNotSchedule spread constraint never lets a pod go there; "
                        "label them."
                    ),
                )
            ],
            id="spread over a key that one node lacks",
        ),
        pytest.param(
            [*zones("a", "b", "c"), a_manifest(replicas=2).apart(term(ESXI, app("db")))],
            hosts(n0="esx-1", n1="esx-2"),
            [
                Row(
                    "topology-key-partial",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "1 of 3 nodes that the pods of Deployment shop/db may use (n2) has no known ESXi host for "
                        "node.cluster.x-k8s.io/esxi-host: the required anti-affinity keeps nothing apart there; add "
                        "their VMs."
                    ),
                )
            ],
            id="the host key, where one node's host is not known",
        ),
        pytest.param(
            [
                a_node("n0").labels({OLD_ZONE: "a", ZONE: "a"}),
                a_manifest(replicas=1)
                .apart(term(OLD_ZONE, app("db")))
                .node_terms(labelled(OLD_ZONE))
                .spec(nodeSelector={OLD_ZONE: "a"}),
            ],
            None,
            [
                Row(
                    "node-label-deprecated",
                    "drift",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_TERMS}[0].matchExpressions[0].key",
                    (
                        "Deployment shop/db chooses nodes by the deprecated label "
                        "failure-domain.beta.kubernetes.io/zone: use topology.kubernetes.io/zone."
                    ),
                ),
                Row(
                    "topology-key-deprecated",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "The required anti-affinity of Deployment shop/db uses the deprecated "
                        "failure-domain.beta.kubernetes.io/zone: use topology.kubernetes.io/zone."
                    ),
                ),
                Row(
                    "node-label-deprecated",
                    "drift",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.nodeSelector[{OLD_ZONE}]",
                    (
                        "Deployment shop/db chooses nodes by the deprecated label "
                        "failure-domain.beta.kubernetes.io/zone: use topology.kubernetes.io/zone."
                    ),
                ),
            ],
            id="deprecated keys as topologyKey, in nodeSelector and in node affinity",
        ),
        pytest.param(
            [
                a_node("n0").labels({OLD_ZONE: "a"}),
                a_node("n1").labels({OLD_ZONE: "b"}),
                a_manifest(replicas=2).apart(term(OLD_ZONE, app("db"))),
            ],
            None,
            [
                Row(
                    "topology-key-deprecated",
                    "drift",
                    "InterPodAffinity",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "The required anti-affinity of Deployment shop/db uses the deprecated "
                        "failure-domain.beta.kubernetes.io/zone: label the nodes with topology.kubernetes.io/zone, "
                        "which some lack, then use that."
                    ),
                ),
                Row(
                    "node-labels-behind",
                    "drift",
                    "Node",
                    "Node/n0",
                    f"metadata.labels[{OLD_ZONE}]",
                    (
                        "n0 and n1 carry the deprecated failure-domain.beta.kubernetes.io/zone without "
                        "topology.kubernetes.io/zone: rules on topology.kubernetes.io/zone do not see them; add that "
                        "label with the same value."
                    ),
                ),
            ],
            id="nodes with only the deprecated label",
        ),
        pytest.param(
            [
                a_node("n0").labels({ESXI: "esx-1"}),
                a_node("n1").labels({ESXI: "esx-2"}),
                a_node("n2").labels({ESXI: ""}),
            ],
            None,
            [
                Row(
                    "host-label-missing",
                    "drift",
                    "PhysicalHost",
                    "Node/n2",
                    f"metadata.labels[{ESXI}]",
                    (
                        "1 of 3 nodes (n2) has no node.cluster.x-k8s.io/esxi-host, so nothing keeps pods apart by "
                        "host there: let `underhost run` label them, or give an --inventory."
                    ),
                )
            ],
            id="the host label on two of three nodes",
        ),
    ],
)
def test_a_topology_key_that_does_not_do_what_it_says_is_reported(
    objects: list[Written], inventory: Json | None, expected: list[Row]
) -> None:
    assert rows(objects, inventory) == expected


@pytest.mark.parametrize(
    "twice",
    [
        pytest.param(a_manifest().apart(term("rack", app("db")), term("rack", app("db"))), id="a term"),
        pytest.param(a_manifest().spreads(spread("rack", app("db")), spread("rack", app("db"))), id="a constraint"),
    ],
)
def test_what_is_written_twice_is_told_once(twice: Written) -> None:
    assert [row.check for row in rows([*zones("a", "b"), twice])] == ["topology-key-absent"]
