"""A sample of the parity run: the evaluator and the upstream scheduler's plugins over random documents.

The whole run is `make parity`. A disagreement that is found there becomes a named table test of its rule.
"""

import json
from pathlib import Path

import pytest
from oracle import compare, generate, upstream

DOCUMENTS = 30
BUILD_SECONDS = 1800  # the first test that asks upstream also downloads and builds it
ALL = frozenset(("explain", "running", "schedule", "check"))


@pytest.mark.real
@pytest.mark.timeout(BUILD_SECONDS)
def test_every_verdict_score_and_placement_is_upstreams(oracle: Path) -> None:
    documents = {seed: json.dumps(generate.document(seed)).encode() for seed in range(7000, 7000 + DOCUMENTS)}
    answers = upstream.ask(oracle, documents.values(), "-running", "-both")
    found = {
        seed: compare.compare(document, answer, ALL)
        for (seed, document), answer in zip(documents.items(), answers, strict=True)
    }
    assert {seed: [str(one) for one in differences[:3]] for seed, differences in found.items() if differences} == {}


@pytest.mark.real
@pytest.mark.timeout(BUILD_SECONDS)
def test_volumes_of_claims_are_judged_as_upstream_judges_them(oracle: Path) -> None:
    documents = {
        seed: json.dumps(generate.document(seed, storage=1.0)).encode() for seed in range(7000, 7000 + DOCUMENTS)
    }
    answers = upstream.ask(oracle, documents.values(), "-running", "-both")
    found = {
        seed: compare.compare(document, answer, ALL)
        for (seed, document), answer in zip(documents.items(), answers, strict=True)
    }
    assert {seed: [str(one) for one in differences[:3]] for seed, differences in found.items() if differences} == {}


@pytest.mark.real
@pytest.mark.timeout(BUILD_SECONDS)
def test_manifests_are_completed_as_the_api_server_completes_them(oracle: Path) -> None:
    documents = {
        seed: json.dumps(generate.document(seed, stored=False)).encode() for seed in range(7000, 7000 + DOCUMENTS)
    }
    answers = upstream.ask(oracle, documents.values(), "-running", "-both", "-as-created")
    found = {
        seed: compare.compare(document, answer, ALL)
        for (seed, document), answer in zip(documents.items(), answers, strict=True)
    }
    assert {seed: [str(one) for one in differences[:3]] for seed, differences in found.items() if differences} == {}


@pytest.mark.real
@pytest.mark.timeout(BUILD_SECONDS)
def test_the_generated_documents_are_what_an_api_server_accepts(oracle: Path) -> None:
    documents = [json.dumps(generate.document(seed, storage=0.3)).encode() for seed in range(7000, 7000 + DOCUMENTS)]
    assert [answer["invalid"] for answer in upstream.ask(oracle, documents, "-validate")] == [{}] * DOCUMENTS


@pytest.mark.real
@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.parametrize(
    ("flags", "nodes"),
    [
        pytest.param([], ["node-000", "node-001", "node-002"], id="all nodes: each pod on the first empty one"),
        # Of 300 nodes 48 % are enough: the next search begins at the 145th, and the third goes over the end. Searched
        # by one thread: of several, one that is late leaves its first nodes out.
        pytest.param(
            ["-sample", "-parallelism", "1"],
            ["node-000", "node-144", "node-001"],
            id="its defaults: on from where the last ended",
        ),
    ],
)
def test_upstreams_loop_can_look_for_as_many_nodes_as_kube_scheduler_does(
    oracle: Path, flags: list[str], nodes: list[str]
) -> None:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    items: list[dict[str, object]] = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{at:03d}"}, "status": {"allocatable": room}}
        for at in range(300)
    ]
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    for name in "abc":
        spec = {"schedulerName": "default-scheduler", "priority": 0, "containers": [container]}
        metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        items.append({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec})
    document = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    [answer] = upstream.ask(oracle, [document], "-simulate", *flags)
    assert answer["placements"] == dict(zip(("default/a", "default/b", "default/c"), nodes, strict=True))


def test_the_same_seed_gives_the_same_document() -> None:
    assert generate.document(5, 1.0) == generate.document(5, 1.0)
    assert generate.document(5, 1.0) != generate.document(6, 1.0)


def test_a_difference_names_part_pod_node_rule_and_both_answers() -> None:
    ours = {"n/p": {"nodes": {"a": {"feasible": True, "failing": {}, "scores": {"ImageLocality": 7}, "total": 7}}}}
    theirs = {"n/p": {"nodes": {"a": {"feasible": True, "scores": {"ImageLocality": 9}, "total": 9}}}}
    found = [str(one) for one in compare.verdicts("explain", ours, theirs)]
    assert found == [
        "explain n/p a ImageLocality score: ours 7, upstream 9",
        "explain n/p a total: ours 7, upstream 9",
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "rule"),
    [
        pytest.param({}, {"n/p": {"nodes": {}}}, "pod", id="a pod that only upstream judges"),
        pytest.param(
            {"n/p": {"nodes": {"a": {"feasible": True, "failing": {}}}}},
            {"n/p": {"nodes": {"a": {"feasible": False, "all_failing": {"NodePorts": ["x"]}}}}},
            "feasible",
            id="a node that only we find feasible",
        ),
        pytest.param(
            {"n/p": {"nodes": {"a": {"feasible": False, "failing": {"NodePorts": ["x"]}, "code": {"NodePorts": "A"}}}}},
            {
                "n/p": {
                    "nodes": {
                        "a": {"feasible": False, "all_failing": {"NodePorts": ["x"]}, "all_codes": {"NodePorts": "B"}}
                    }
                }
            },
            "NodePorts code",
            id="another code for the same reason",
        ),
        pytest.param(
            {"n/p": {"nodes": {}}},
            {"n/p": {"nodes": {}, "preenqueue": {"plugin": "SchedulingGates"}}},
            "gated",
            id="a gate that we miss",
        ),
    ],
)
def test_every_kind_of_disagreement_is_seen(ours: compare.Json, theirs: compare.Json, rule: str) -> None:
    assert rule in [one.rule for one in compare.verdicts("explain", ours, theirs)]


@pytest.mark.parametrize(
    ("ours", "theirs", "rules"),
    [
        pytest.param({"n/p": "a"}, {"n/p": "b"}, ["placement"], id="another node"),
        pytest.param({"n/p": None}, {"n/p": "b"}, ["placement"], id="no node"),
        pytest.param({"n/p": "a"}, {"n/p": "a"}, [], id="the same node"),
    ],
)
def test_placements_are_compared_pod_by_pod(ours: compare.Json, theirs: compare.Json, rules: list[str]) -> None:
    found = compare.placements({"placements": ours, "order": ["n/p"]}, {"placements": theirs, "order": ["n/p"]})
    assert [one.rule for one in found] == rules
