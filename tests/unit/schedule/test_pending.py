import pytest
from support.build import HOST, PodBuilder, a_node, a_pod, a_site, a_workload, app, nodes, spread, term

from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.schedule.pending import PodDecision, decide, place_all, schedule
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import Placements, to_json
from underhost.schemas.errors import BadObjectError


def placed(pods: list[PodBuilder], *names: str) -> Placements:
    return schedule(a_site(*nodes(*(names or ("n1", "n2"))), *pods), Options())


def test_ties_go_to_the_smallest_node_name() -> None:
    assert placed([a_pod("web")], "n2", "n10", "n1").placements == {"shop/web": "n1"}


def test_the_queue_is_by_priority_then_creation_time_then_input_order() -> None:
    pods = [
        a_pod("late").created("2026-01-01T00:02:00Z"),
        a_pod("second"),
        a_pod("third"),
        a_pod("first").spec(priority=5).created("2026-01-01T00:09:00Z"),
        a_pod("last").spec(priority=-1),
    ]
    assert placed(pods).order == ["shop/first", "shop/second", "shop/third", "shop/late", "shop/last"]


def test_each_placement_is_assumed_before_the_next() -> None:
    pods = [a_pod(f"web-{i}").labels(app="web").apart(term(HOST, app("web"))) for i in range(3)]
    found = placed(pods)
    assert found.placements == {"shop/web-0": "n1", "shop/web-1": "n2", "shop/web-2": None}
    assert found.failed == {"shop/web-2": {"node(s) didn't match pod anti-affinity rules": 2}}


def test_a_pod_takes_exactly_what_the_ones_before_have_left() -> None:
    pods = [a_pod(f"web-{i}").needs(cpu="2") for i in range(3)]
    assert placed(pods, "n1").placements == {"shop/web-0": "n1", "shop/web-1": "n1", "shop/web-2": None}


def test_terminating_pods_and_pods_of_other_schedulers_are_absent() -> None:
    pods = [
        a_pod("going").deleted(),
        a_pod("theirs").spec(schedulerName="other"),
        a_pod("done").finished(),
        a_pod("web"),
    ]
    assert placed(pods).placements == {"shop/web": "n1"}


def test_the_scheduler_names_are_an_option() -> None:
    snapshot = a_site(a_node("n1"), a_pod("theirs").spec(schedulerName="other"), a_pod("web"))
    assert schedule(snapshot, Options(scheduler_names=("other",))).order == ["shop/theirs"]


def test_without_nodes_every_pod_waits() -> None:
    assert placed([a_pod("web")], *()).placements == {"shop/web": "n1"}
    empty = schedule(a_site(a_pod("web")), Options())
    assert empty.placements == {"shop/web": None}
    assert empty.failed == {"shop/web": {"error: no nodes available to schedule pods": 0}}


def test_failed_nodes_are_counted_by_the_first_rule_that_refuses() -> None:
    some = [
        a_node("n1").cordoned().tainted("k=v:NoSchedule"),
        a_node("n2").tainted("k=v:NoSchedule"),
        a_node("n3").has(cpu="1"),
    ]
    found = schedule(a_site(*some, a_pod("web").needs(cpu="2")), Options())
    assert found.failed == {
        "shop/web": {"node(s) were unschedulable": 1, "node(s) had untolerated taint(s)": 1, "Insufficient cpu": 1}
    }


def test_a_nominated_node_is_taken_unscored_if_it_still_fits() -> None:
    snapshot = a_site(*nodes("n1", "n2"), a_pod("web").nominated("n2"), a_pod("big").needs(cpu="5").nominated("n1"))
    assert decide(snapshot, Options())[0] == PodDecision("shop/web", "uid-shop-web", "n2", None)


@pytest.mark.parametrize(
    ("priority", "node"),
    [
        pytest.param(1, "n1", id="a pod of higher priority may take the room"),
        pytest.param(0, "n2", id="a pod of equal priority yields"),
        pytest.param(-1, "n2", id="a pod of lower priority yields"),
    ],
)
def test_room_that_is_nominated_to_another_pod(priority: int, node: str) -> None:
    # the nominated pod waits for another scheduler's gate: it stays in the queue behind the one that is tried
    nominated = a_pod("vip").needs(cpu="3").nominated("n1").created("2026-02-01T00:00:00Z")
    full = a_pod("full").needs(cpu="1").on("n2")
    snapshot = a_site(*nodes("n1", "n2"), nominated, full, a_pod("web").needs(cpu="2").spec(priority=priority))
    found = {decision.pod: decision.node for decision in decide(snapshot, Options())}
    assert found["shop/web"] == node


def test_a_node_with_a_nominated_pod_is_counted_once_among_the_failed() -> None:
    nominated = a_pod("vip").needs(cpu="3").nominated("n1", 10).spec(schedulerName="underhost")
    snapshot = a_site(
        *nodes("n1", "n2"), nominated.created("2026-02-01T00:00:00Z"), a_pod("big").needs(cpu="5").spec(priority=10)
    )
    assert schedule(snapshot, Options()).failed == {"shop/big": {"Insufficient cpu": 2}}


def test_assumed_pods_count_as_running_and_are_not_decided_again() -> None:
    pods = [a_pod(f"web-{i}").labels(app="web").apart(term(HOST, app("web"))) for i in range(2)]
    snapshot = a_site(*nodes("n1", "n2"), *pods)
    found = decide(snapshot, Options(), {"shop/web-0": "n1"})
    assert [(decision.pod, decision.node) for decision in found] == [("shop/web-1", "n2")]


@pytest.mark.parametrize("assumed", [pytest.param(count, id=f"{count} of one size") for count in (1, 7, 8, 20)])
def test_what_assumed_pods_leave_free_is_counted_to_the_last_place(assumed: int) -> None:
    pods = [a_pod(f"web-{i:02}").needs(cpu="1") for i in range(assumed + 2)]
    room = a_node("n1").has(cpu=str(assumed + 1))
    found = decide(a_site(room, *pods), Options(), {f"shop/web-{i:02}": "n1" for i in range(assumed)})
    assert [(each.pod, each.node, each.failed) for each in found] == [
        (f"shop/web-{assumed:02}", "n1", {}),
        (f"shop/web-{assumed + 1:02}", None, {"Insufficient cpu": 1}),
    ]


@pytest.mark.parametrize("assumed", [0, 12])
def test_what_was_tried_is_taken_back_to_the_last_pod(assumed: int) -> None:
    pods = [
        a_pod(f"web-{i:02}").needs(cpu="500m").labels(app="web").prefers_apart(5, term(HOST, app("web")))
        for i in range(20)
    ]
    site = a_site(*nodes("n1", "n2", "n3"), *pods)
    there = {f"shop/web-{i:02}": f"n{i % 3 + 1}" for i in range(assumed)}
    state = State(compile(site, Options()))
    found = []
    for _ in range(2):
        with state.trial():
            found.append([(pod.key, decision) for pod, decision in place_all(state, there)])
    assert found[0] == found[1] == [(pod.key, decision) for pod, decision in place_all(State(state.model), there)]
    assert len(found[0]) == 20 - assumed
    assert (state.pods.tolist(), state.used.sum(), state.nonzero.sum()) == ([0, 0, 0], 0, 0)


def test_a_pod_assumed_on_a_node_that_is_gone_counts_nowhere_and_is_not_decided() -> None:
    assert decide(a_site(a_node("n1"), a_pod("web")), Options(), {"shop/web": "gone"}) == []


def test_decisions_carry_the_total_also_when_one_node_is_feasible() -> None:
    # 3 · 100 taints, 97 for the emptier node
    (found,) = decide(a_site(a_node("n1"), a_pod("web")), Options())
    assert found.total == 397


def test_equal_input_gives_equal_bytes() -> None:
    pods = [a_pod(f"web-{i}").labels(app="web").apart(term(HOST, app("web"))) for i in range(3)]
    assert to_json(placed(pods)) == to_json(placed(pods, "n2", "n1"))


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            a_pod("web").put("metadata", "labels", value={"a": 5}),
            "Pod shop/web: metadata.labels",
            id="a label that is a number",
        ),
        pytest.param(
            a_pod("web").tolerates({"key": "k", "operator": "Near"}),
            "Pod shop/web: spec.tolerations[0].operator",
            id="an operator",
        ),
        pytest.param(
            a_pod("web").tolerates({"operator": "Equal"}), "Pod shop/web: spec.tolerations[0].operator", id="no key"
        ),
        pytest.param(
            a_pod("web").node_terms({"matchExpressions": [{"key": "a", "operator": "in"}]}),
            "Pod shop/web: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            "nodeSelectorTerms[0].matchExpressions[0].operator",
            id="an operator in the wrong case",
        ),
        pytest.param(
            a_pod("web").spreads({**spread(HOST, {}), "maxSkew": 10**30}),
            "Pod shop/web: spec.topologySpreadConstraints[0].maxSkew: ",
            id="a number beyond 32 bits",
        ),
        pytest.param(a_pod("web").spec(affinity=[]), "Pod shop/web: spec.affinity: ", id="an affinity that is a list"),
        pytest.param(
            a_pod("web").spec(nodeSelector=["a"]),
            "Pod shop/web: spec.nodeSelector: ",
            id="a nodeSelector that is a list",
        ),
    ],
)
def test_what_breaks_the_api_is_named_with_object_and_field(pod: PodBuilder, message: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        schedule(a_site(a_node("n1"), pod), Options())
    assert str(caught.value).startswith(message)


def test_a_wrong_taint_and_a_wrong_service_are_named() -> None:
    with pytest.raises(BadObjectError, match=r"^Node n1: spec.taints\[0\].effect: 'Never' is none of NoSchedule, "):
        schedule(a_site(a_node("n1").tainted("k=v:Never")), Options())
    wrong = a_workload("ReplicaSet", "w").selects({"matchLabels": 3})
    with pytest.raises(BadObjectError, match=r"^ReplicaSet shop/w: spec.selector.matchLabels: "):
        schedule(a_site(a_node("n1"), wrong), Options())
