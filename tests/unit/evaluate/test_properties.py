"""What holds for every cluster: the order of the input never matters, and nobody is refused because a pod has gone."""

import io
import json
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import generate

from underhost.agents.evaluate.check import check
from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import to_json
from underhost.streams.files.reader import load_files

SEEDS = st.integers(0, 2**31)
ANTI_AFFINITY = {
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
}


def snapshot(items: list[Any]) -> Snapshot:
    document = json.dumps({"kind": "List", "items": items}).encode()
    return snapshot_of(load_files(["-"], stdin=io.BytesIO(document)))[0]


def refused_for_anti_affinity(site: Snapshot) -> set[tuple[str, str]]:
    """(pod, node) of pending pods."""
    return {
        (pod, node)
        for pod, verdict in explain(site, Options()).pods.items()
        for node, found in verdict.nodes.items()
        if ANTI_AFFINITY & set(found.failing.get("InterPodAffinity", ()))
    }


@settings(max_examples=25, derandomize=True)
@given(SEEDS)
def test_the_order_of_the_input_never_matters(seed: int) -> None:
    items = generate.document(seed)["items"]
    shuffled = Random(seed).sample(items, len(items))
    first, second = snapshot(items), snapshot(shuffled)
    assert to_json(explain(first, Options())) == to_json(explain(second, Options()))
    assert to_json(check(first, Options(drift=True))) == to_json(check(second, Options(drift=True)))


@settings(max_examples=25, derandomize=True)
@given(SEEDS)
def test_a_pod_that_goes_away_never_makes_an_anti_affinity_refusal(seed: int) -> None:
    items = generate.document(seed)["items"]
    before = refused_for_anti_affinity(snapshot(items))
    running = [item for item in items if item["kind"] == "Pod" and "nodeName" in item["spec"]]
    gone = Random(seed).choice(running)
    assert refused_for_anti_affinity(snapshot([item for item in items if item is not gone])) <= before
