"""Node-local rules answer for one node, without arrays, what they answer for many."""

import numpy as np
import pytest
from support.build import a_node, a_pod, a_site
from support.sites.random_cluster import RandomCluster

from underhost.agents.compiled.model import Model, compile
from underhost.agents.compiled.state import State
from underhost.agents.schedule.prepared import Plans
from underhost.agents.site.snapshot import Options


def compare(model: Model) -> None:
    state = State(model)
    every = np.arange(len(model.nodes))
    for request in model.requests:
        for named in Plans(state).of(0).local:
            codes, score = named.prepared.refuse(request, every), named.prepared.score(request, every)
            good = np.ones(len(every), bool) if codes is None else codes == 0
            scores = np.broadcast_to(0 if score is None else score, every.shape)
            found = [named.prepared.at(request, node) for node in every.tolist()]
            assert found == list(zip(good.tolist(), scores.tolist(), strict=True)), named.name


@pytest.mark.parametrize("seed", range(10))
def test_on_random_clusters(seed: int) -> None:
    compare(compile(RandomCluster(seed).snapshot(), Options()))


def test_on_nodes_without_capacity_full_and_overcommitted() -> None:
    nodes = [a_node("bare").has(cpu="0"), a_node("blank").has(cpu="0", memory="0"), a_node("full"), a_node("over")]
    pods = [
        a_pod("exact").needs(cpu="4", memory="8Gi").on("full"),
        a_pod("more").needs(cpu="9", memory="2Gi").on("over"),
        a_pod("least").needs(cpu="1m"),
        a_pod("none"),
        a_pod("gpu").needs(**{"example.com/gpu": "1"}),
    ]
    compare(compile(a_site(*nodes, *pods), Options()))
