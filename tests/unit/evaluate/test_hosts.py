"""What the live host means, held against definitions that share no code with the rules, on random clusters."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.sites.random_cluster import HOST_KEY, RandomCluster

from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.documents import to_builtins

SEEDS = range(30)
Json = dict[str, Any]


def json_of(pod: k8s.Pod) -> Json:
    found: Json = msgspec.json.decode(k8s.encode(pod))
    return found


def selects(term: Json, owner: Json, other: Json) -> bool:
    """Whether a term of `owner`, with the selectors that `RandomCluster` makes, selects `other`."""
    own, theirs = owner["metadata"]["namespace"], other["metadata"]["namespace"]
    selector = term.get("labelSelector")
    if selector is None or (own != theirs and term.get("namespaceSelector") != {}):
        return False
    labels = other["metadata"]["labels"]
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(labels["app"] not in one["values"] for one in selector.get("matchExpressions", []))


def separating_keys(one: Json, other: Json) -> set[str]:
    """The topology keys by which `one` must be kept apart from `other`, by its own terms."""
    anti = one["spec"].get("affinity", {}).get("podAntiAffinity", {})
    terms = anti.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    keys = {term["topologyKey"] for term in terms if selects(term, one, other)}
    for constraint in one["spec"].get("topologySpreadConstraints", []):
        strict = constraint["whenUnsatisfiable"] == "DoNotSchedule" and constraint.get("labelSelector") != {}
        if strict and selects({**constraint, "namespaceSelector": None}, one, other):
            keys.add(constraint["topologyKey"])
    return keys - {HOST_KEY}


def conflicts_by_definition(snapshot: Snapshot, pod: str, node: str, cross: str) -> int:
    labels = {name: msgspec.json.decode(each.metadata.labels) for name, each in snapshot.nodes.items()}
    hosts = {name: joined.host for name, joined in snapshot.node_hosts.items()}
    new, found = json_of(snapshot.pods[pod]), 0
    for key, each in snapshot.pods.items():
        at = each.spec.node_name
        if key == pod or not at or not hosts.get(at) or hosts.get(at) != hosts.get(node):
            continue
        other = json_of(each)
        reaches = cross == "act" or other["metadata"]["namespace"] == new["metadata"]["namespace"]
        keys = separating_keys(new, other) | (separating_keys(other, new) if reaches else set())
        found += any(k in labels[at] and k in labels[node] and labels[at][k] != labels[node][k] for k in keys)
    return found


@pytest.mark.parametrize("cross", ["report", "act"])
@pytest.mark.parametrize("seed", SEEDS)
def test_physical_conflicts_are_the_pods_to_be_kept_apart_on_the_same_host(seed: int, cross: str) -> None:
    snapshot = RandomCluster(seed).snapshot()
    for pod, verdict in explain(snapshot, Options(cross_namespace=cross)).pods.items():
        for node, one in verdict.nodes.items():
            if one.feasible:
                assert one.physical_conflicts == conflicts_by_definition(snapshot, pod, node, cross), (pod, node)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_host_key_is_judged_as_a_label_with_the_live_host_would_be(seed: int) -> None:
    snapshot = RandomCluster(seed).snapshot()
    relabelled = {}
    for name, node in snapshot.nodes.items():
        labels = msgspec.json.decode(node.metadata.labels)
        labels.pop(HOST_KEY, None)
        if snapshot.node_hosts[name].host:
            labels[HOST_KEY] = snapshot.node_hosts[name].host
        metadata = msgspec.structs.replace(node.metadata, labels=msgspec.Raw(msgspec.json.encode(labels)))
        relabelled[name] = msgspec.structs.replace(node, metadata=metadata)
    by_label = explain(replace(snapshot, nodes=relabelled, node_hosts={}, hosts={}), Options())
    by_host = explain(snapshot, Options())
    assert without_conflicts(by_host) == without_conflicts(by_label)


def without_conflicts(document: Any) -> Any:
    plain = to_builtins(document)
    for pod in plain["pods"].values():
        for node in pod["nodes"].values():
            node.pop("physicalConflicts", None)
            node.pop("because", None)  # it names a host as people do, and a label by its value
    return plain
