"""Loop and explain ask the same rules: on random clusters they must say the same."""

import pytest
from support.sites.random_cluster import RandomCluster

from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import decide
from underhost.agents.site.snapshot import Options

SEEDS = range(40)
MODES = [Options(), Options(physical_host="required")]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loop_takes_the_node_that_explain_calls_best(seed: int) -> None:
    parts = RandomCluster(seed, hosts=seed % 4 > 0)
    options = MODES[seed % 2]
    running, waiting = list(parts.running), {pod.key: pod for pod in parts.pending}
    for decision in decide(parts.snapshot(), options):
        found = explain(parts.snapshot(*running, *waiting.values()), options, [decision.pod]).pods[decision.pod]
        feasible = {name: one for name, one in found.nodes.items() if one.feasible}
        if decision.node is None:
            assert not feasible or found.error
            assert found.error or sum(decision.failed.values()) >= len(found.nodes)
            continue
        assert feasible[decision.node].physical_conflicts == decision.physical_conflicts
        if decision.total is not None:
            best = min(feasible, key=lambda name: (feasible[name].physical_conflicts, -feasible[name].total, name))
            assert (decision.node, decision.total) == (best, feasible[best].total)
        running.append(waiting.pop(decision.pod).on(decision.node))


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_the_order_of_the_input_does_not_matter(seed: int) -> None:
    parts = RandomCluster(seed)
    pods = [*parts.running, *parts.pending]
    straight = explain(parts.snapshot(*pods), Options(), [pod.key for pod in pods])
    parts.nodes.reverse()
    assert explain(parts.snapshot(*reversed(pods)), Options(), [pod.key for pod in pods]) == straight


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_taking_a_pod_away_never_makes_another_refused_by_anti_affinity(seed: int) -> None:
    parts = RandomCluster(seed)
    apart = {"node(s) didn't match pod anti-affinity rules", "node(s) didn't satisfy existing pods anti-affinity rules"}
    subject, without = parts.pending[0], parts.running[1:]
    before = explain(parts.snapshot(*parts.running, subject), Options()).pods[subject.key].nodes
    after = explain(parts.snapshot(*without, subject), Options()).pods[subject.key].nodes
    for name, one in after.items():
        if apart & set(one.failing.get("InterPodAffinity", [])):
            assert set(before[name].failing.get("InterPodAffinity", []))
