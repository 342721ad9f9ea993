"""Lint of nodeSelector, node affinity, tolerations and spelling."""

import pytest
from support.answers.lint import NODE_AFFINITY, NODE_TERMS, POD_SPEC, SPREAD, Row, Written, report_of, rows, zones
from support.build import HOST, PREFERRED, REQUIRED, ZONE, Json, a_manifest, a_node, a_pod, app, labelled

THREE = zones("a", "b", "c")
ON = [a_pod("p0").on("n0").labels(app="other")]


@pytest.mark.parametrize(
    ("objects", "inventory", "expected"),
    [
        pytest.param(
            [*THREE, a_manifest().spec(nodeSelector={ZONE: "z"})],
            None,
            [
                Row(
                    "node-affinity-unmet",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.nodeSelector[{ZONE}]",
                    (
                        "No node has topology.kubernetes.io/zone=z, which the nodeSelector of Deployment shop/db asks "
                        "for, so none of its pods can be placed: nodes have topology.kubernetes.io/zone a, b and c; "
                        "label a node, or ask for a label that is there."
                    ),
                )
            ],
            id="a nodeSelector with a value that no node has",
        ),
        pytest.param(
            [*THREE, a_manifest().spec(nodeSelector={"disk": "ssd"})],
            None,
            [
                Row(
                    "node-affinity-unmet",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.nodeSelector[disk]",
                    (
                        "No node has disk=ssd, which the nodeSelector of Deployment shop/db asks for, so none of its "
                        "pods can be placed: no node has the label disk; label a node, or ask for a label that is "
                        "there."
                    ),
                )
            ],
            id="a nodeSelector with a label that no node has",
        ),
        pytest.param(
            [*THREE, a_manifest().spec(nodeSelector={ZONE: "a", HOST: "n1"})],
            None,
            [
                Row(
                    "node-affinity-unmet",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.nodeSelector",
                    (
                        "No node meets all of the nodeSelector of Deployment shop/db at once, so none of its pods can "
                        "be placed: label a node so, or ask for less."
                    ),
                )
            ],
            id="a nodeSelector whose labels no node has together",
        ),
        pytest.param(
            [*THREE, a_manifest().node_terms(labelled("disk", "In", "ssd"), labelled("gpu"))],
            None,
            [
                Row(
                    "node-affinity-unmet",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    NODE_TERMS,
                    (
                        "No node meets any term of the required node affinity of Deployment shop/db (disk and gpu), so "
                        "none of its pods can be placed: label a node so, or ask for less."
                    ),
                )
            ],
            id="a node affinity with two terms that no node meets",
        ),
        pytest.param(
            [*THREE, a_manifest().node_terms(labelled(ZONE, "In", "b")).spec(nodeSelector={ZONE: "a"})],
            None,
            [
                Row(
                    "node-affinity-unmet",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_AFFINITY}.{REQUIRED}",
                    (
                        "No node meets all of the nodeSelector and node affinity of Deployment shop/db at once, so none"
                        " of its pods can be placed: label a node so, or ask for less."
                    ),
                )
            ],
            id="a nodeSelector and a node affinity that exclude one another",
        ),
        pytest.param(
            [a_manifest().spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}})],
            None,
            [
                Row(
                    "node-affinity-without-terms",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    NODE_TERMS,
                    (
                        "The required node affinity of Deployment shop/db has no term, which the API server refuses: "
                        "add one, or leave the affinity out."
                    ),
                )
            ],
            id="a node affinity without terms",
        ),
        pytest.param(
            [a_manifest().node_terms({})],
            None,
            [
                Row(
                    "node-affinity-without-terms",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    NODE_TERMS,
                    (
                        "The required node affinity of Deployment shop/db has only empty terms, which match no node: "
                        "say which labels the nodes must have."
                    ),
                )
            ],
            id="a node affinity with an empty term only",
        ),
        pytest.param(
            [a_manifest().node_terms({}, labelled("disk")).prefers_nodes((5, {}))],
            None,
            [
                Row(
                    "node-affinity-empty-term",
                    "drift",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_AFFINITY}.{PREFERRED}[0].preference",
                    (
                        "A node preference of Deployment shop/db is empty, so it prefers nothing: fill it in, or leave "
                        "it out."
                    ),
                ),
                Row(
                    "node-affinity-empty-term",
                    "drift",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_TERMS}[0]",
                    (
                        "A node affinity term of Deployment shop/db is empty, so it matches no node: fill it in, or "
                        "leave it out."
                    ),
                ),
            ],
            id="an empty term beside another, and an empty preference",
        ),
        pytest.param(
            [a_manifest().node_terms(labelled("cpus", "Gt", "many")).prefers_nodes((5, labelled("cpus", "Lt", "x")))],
            None,
            [
                Row(
                    "node-affinity-invalid-term",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_AFFINITY}.{PREFERRED}[0].preference",
                    (
                        'A node affinity term of Deployment shop/db cannot be used (cpus: Invalid value: "x": for '
                        "'Gt', 'Lt' operators, the value must be an integer), so scoring fails and none of its pods "
                        "can be placed: correct the value."
                    ),
                ),
                Row(
                    "node-affinity-invalid-term",
                    "unsatisfiable",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_TERMS}[0]",
                    (
                        'A node affinity term of Deployment shop/db cannot be used (cpus: Invalid value: "many": for '
                        "'Gt', 'Lt' operators, the value must be an integer), so the term matches no node: correct the "
                        "value."
                    ),
                ),
            ],
            id="node affinity terms that the scheduler cannot parse",
        ),
        pytest.param(
            [a_manifest().node_terms(labelled("cpus", "Gt", "many"), labelled("disk"))],
            None,
            [
                Row(
                    "node-affinity-ignored-term",
                    "drift",
                    "NodeAffinity",
                    "Deployment/shop/db",
                    f"{NODE_TERMS}[0]",
                    (
                        'A node affinity term of Deployment shop/db cannot be used (cpus: Invalid value: "many": for '
                        "'Gt', 'Lt' operators, the value must be an integer), so the term matches no node: correct the "
                        "value."
                    ),
                )
            ],
            id="a term that cannot be parsed beside one that can",
        ),
        pytest.param(
            [
                a_node("n0").tainted("dedicated=x:NoSchedule"),
                a_manifest().spec(tolerations=[{"key": "dedicated", "value": "y", "effect": "NoSchedule"}]),
            ],
            None,
            [
                Row(
                    "taints-untolerated",
                    "unsatisfiable",
                    "TaintToleration",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.tolerations",
                    (
                        "Deployment shop/db may use 1 node by labels (n0), and tolerates the taints of none: add a "
                        "toleration with the taint's key, value and effect."
                    ),
                )
            ],
            id="a toleration with another value than the taint (as in seed 002)",
        ),
        pytest.param(
            [a_manifest().put("spec", "Replicas", value=3)],
            None,
            [
                Row(
                    "field-miscapitalised",
                    "unsatisfiable",
                    "Manifest",
                    "Deployment/shop/db",
                    "spec.Replicas",
                    (
                        "Deployment shop/db says Replicas, which the API server refuses or ignores: the field is "
                        "replicas."
                    ),
                )
            ],
            id="Replicas for replicas",
        ),
        pytest.param(
            [
                a_manifest()
                .spec(affinity={"podantiAffinity": {REQUIRED: [{"topologykey": HOST}]}})
                .spec(nodeselector={"a": "b"})
            ],
            None,
            [
                Row(
                    "field-miscapitalised",
                    "unsatisfiable",
                    "Manifest",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podantiAffinity",
                    (
                        "Deployment shop/db says podantiAffinity, which the API server refuses or ignores: the field is"
                        " podAntiAffinity."
                    ),
                ),
                Row(
                    "field-miscapitalised",
                    "unsatisfiable",
                    "Manifest",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.affinity.podantiAffinity.{REQUIRED}[0].topologykey",
                    (
                        "Deployment shop/db says topologykey, which the API server refuses or ignores: the field is "
                        "topologyKey."
                    ),
                ),
                Row(
                    "field-miscapitalised",
                    "unsatisfiable",
                    "Manifest",
                    "Deployment/shop/db",
                    f"{POD_SPEC}.nodeselector",
                    (
                        "Deployment shop/db says nodeselector, which the API server refuses or ignores: the field is "
                        "nodeSelector."
                    ),
                ),
            ],
            id="nodeselector, podantiAffinity, topologykey",
        ),
        pytest.param(
            [
                a_manifest().spreads(
                    {
                        "maxskew": 1,
                        "topologyKey": ZONE,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": app("db"),
                    }
                )
            ],
            None,
            [
                Row(
                    "field-miscapitalised",
                    "unsatisfiable",
                    "Manifest",
                    "Deployment/shop/db",
                    f"{SPREAD}.maxskew",
                    ("Deployment shop/db says maxskew, which the API server refuses or ignores: the field is maxSkew."),
                )
            ],
            id="maxskew for maxSkew, which must be there",
        ),
    ],
)
def test_a_choice_of_nodes_that_cannot_be_met_is_reported(
    objects: list[Written], inventory: Json | None, expected: list[Row]
) -> None:
    assert rows(objects, inventory) == expected


def test_parts_of_a_pod_spec_beside_it_and_wrong_endings_are_found() -> None:
    spread, containers = [{"topologyKey": ZONE}], [{"name": "c", "resources": {"request": {"cpu": 1}}}]
    manifest = a_manifest().spec(topologySpreadConstraint=spread, containers=containers).json()
    manifest["spec"]["affinity"] = manifest["spec"]["template"]["tolerations"] = {}
    found = report_of([manifest]).findings
    assert [(one.source, one.field) for one in found] == [
        ("field-misplaced", "spec.affinity"),
        ("field-miscapitalised", f"{POD_SPEC}.containers[0].resources.request"),
        ("field-miscapitalised", f"{POD_SPEC}.topologySpreadConstraint"),
        ("field-misplaced", "spec.template.tolerations"),
    ]
    assert found[0].message == (
        "Deployment shop/db says affinity in spec, where the API server refuses or ignores it: it belongs in "
        "spec.template.spec."
    )
    assert found[2].message.endswith("the field is topologySpreadConstraints.")
