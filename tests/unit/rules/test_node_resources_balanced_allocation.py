from support.answers.rules import scores
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.node_resources_balanced_allocation import NAME

NODES = [a_node("cpu-bound").has(cpu="4", memory="8Gi"), a_node("idle").has(cpu="4", memory="8Gi")]


def test_the_node_that_the_pod_balances_scores_above_75_and_the_one_it_tips_below() -> None:
    # cpu-bound holds half its cpu: balance 75; with half the memory taken as well it is 100: 50 + (50 + 100 − 75) // 2
    # idle: balance 100; with half of the memory alone 75: 50 + (50 + 75 − 100) // 2
    there = a_pod("there").needs(cpu="2").on("cpu-bound")
    snapshot = a_site(*NODES, there, a_pod("web").needs(memory="4Gi"))
    assert scores(snapshot, "web", NAME) == {"cpu-bound": 87, "idle": 62}


def test_a_pod_that_requests_nothing_is_not_scored() -> None:
    assert scores(a_site(*NODES, a_pod("web")), "web", NAME) == {}


def test_a_node_without_memory_to_give_is_neither_better_nor_worse() -> None:
    # n2: a quarter of its cpu alone, balance 87 after 100: 50 + (50 − 13) // 2
    snapshot = a_site(a_node("n1").has(memory="0"), a_node("n2"), a_pod("web").needs(cpu="1"))
    assert scores(snapshot, "web", NAME) == {"n1": 75, "n2": 68}
