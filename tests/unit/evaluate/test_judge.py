from support.rule_builders import HOST, ZONE, a_node, a_pod, app, cluster, nodes, spread, term

from underhost.agents.compiled.model import compile
from underhost.agents.evaluate.judge import Judge, judge
from underhost.agents.site.snapshot import Options


def test_two_pods_that_refuse_one_another_are_each_others_peers() -> None:
    pods = [a_pod(f"db-{i}").labels(app="db").apart(term(HOST, app("db"))).on("n1") for i in range(2)]
    judged = Judge(compile(cluster(nodes("n1", "n2"), [*pods, a_pod("web").on("n1")]), Options()))
    reason = "node(s) didn't match pod anti-affinity rules"
    assert [list(one.get("InterPodAffinity", ((), ()))[1]) for one in judged.refusals()] == [[reason], [reason], []]
    found = [(peers.key, peers.value, peers.pods.tolist()) for peers in judged.peers(0, "InterPodAffinity")]
    assert found == [(HOST, "n1", [1])]
    assert judged.peers(2, "InterPodAffinity") == []


def test_peers_of_a_spread_are_the_pods_of_the_domain() -> None:
    pods = [a_pod(f"web-{i}").labels(app="web").spreads(spread(ZONE, app("web"))).on(f"a{i}") for i in (1, 2)]
    snapshot = cluster([a_node("a1").zone("a"), a_node("a2").zone("a"), a_node("b1").zone("b")], pods)
    judged = Judge(compile(snapshot, Options()))
    assert [list(one) for one in judged.refusals()] == [["PodTopologySpread"]] * 2
    found = [(peers.key, peers.value, peers.pods.tolist()) for peers in judged.peers(1, "PodTopologySpread")]
    assert found == [(ZONE, "a", [0])]


def test_a_port_that_two_pods_hold_makes_them_peers() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    judged = Judge(compile(cluster(nodes("n1"), [a_pod(f"p{i}").ports(port).on("n1") for i in range(2)]), Options()))
    assert [list(one) for one in judged.refusals()] == [["NodePorts"]] * 2
    assert [peers.pods.tolist() for peers in judged.peers(0, "NodePorts")] == [[1]]


def test_only_an_untolerated_no_execute_taint_evicts() -> None:
    some = [a_node("n1").tainted("k=v:NoExecute"), a_node("n2").tainted("k=v:NoSchedule")]
    for_a_time = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    pods = [a_pod("a").on("n1"), a_pod("b").on("n1").tolerates(for_a_time), a_pod("c").on("n2")]
    judged = Judge(compile(cluster(some, pods), Options()))
    assert judged.evicted().tolist() == [0]


def test_an_overcommitted_node_refuses_its_pods_and_a_full_one_does_not() -> None:
    pods = [a_pod(f"p{i}").needs(cpu="2").on("full") for i in range(2)]
    pods += [a_pod(f"q{i}").needs(cpu="3").on("over") for i in range(2)]
    found = judge(compile(cluster(nodes("full", "over"), pods), Options()))
    assert [list(one) for one in found] == [[], [], ["NodeResourcesFit"], ["NodeResourcesFit"]]


def test_without_running_pods_there_is_nothing_to_judge() -> None:
    judged = Judge(compile(cluster(nodes("n1"), []), Options()))
    assert (judged.refusals(), judged.conflicts().tolist(), judged.evicted().tolist()) == ([], [], [])
