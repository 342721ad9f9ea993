import pytest
from support.answers.rules import verdict
from support.build import HOST, a_node, a_pod, a_site, app, nodes, spread, term

from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import to_builtins
from underhost.schemas.errors import InputError


def test_a_verdict_has_each_failing_rules_reasons_and_codes_and_the_others_scores() -> None:
    there = a_pod("there").needs(cpu="4").on("n1")
    snapshot = a_site(a_node("n1").cordoned(), a_node("n2"), there, a_pod("web").needs(cpu="1", memory="1Gi"))
    found = to_builtins(explain(snapshot, Options()))
    assert found["kind"] == "Explanation" and found["apiVersion"] == "underhost/v1"
    assert found["pods"]["shop/web"]["nodes"] == {
        "n1": {
            "feasible": False,
            "failing": {"NodeResourcesFit": ["Insufficient cpu"], "NodeUnschedulable": ["node(s) were unschedulable"]},
            "code": {"NodeResourcesFit": "Unschedulable", "NodeUnschedulable": "UnschedulableAndUnresolvable"},
            "because": {
                "NodeResourcesFit": [{"resource": "cpu", "asked": "1", "free": "0", "allocatable": "4"}],
                "NodeUnschedulable": [{"taint": "node.kubernetes.io/unschedulable:NoSchedule"}],
            },
        },
        "n2": {
            "feasible": True,
            "failing": {},
            # emptiness (75 + 87) // 2; balance 93 after 100: 50 + (50 − 7) // 2
            "scores": {
                "ImageLocality": 0,
                "NodeResourcesBalancedAllocation": 71,
                "NodeResourcesFit": 81,
                "TaintToleration": 100,
            },
            "total": 452,
            "physicalConflicts": 0,
        },
    }


def test_every_pending_pod_is_explained_whoever_schedules_it() -> None:
    pods = [
        a_pod("web"),
        a_pod("theirs").spec(schedulerName="other"),
        a_pod("there").on("n1"),
        a_pod("done").finished(),
    ]
    assert set(explain(a_site(a_node("n1"), *pods), Options()).pods) == {"shop/web", "shop/theirs"}


def test_pods_are_judged_alone_not_one_after_another() -> None:
    pods = [a_pod(f"web-{i}").labels(app="web").apart(term(HOST, app("web"))) for i in range(2)]
    found = explain(a_site(a_node("n1"), *pods), Options())
    assert [one.nodes["n1"].feasible for one in found.pods.values()] == [True, True]


def test_a_named_running_pod_is_judged_as_if_taken_out_first() -> None:
    pods = [
        a_pod(f"web-{i}").labels(app="web").needs(cpu="3").apart(term(HOST, app("web"))).on(f"n{i}") for i in (1, 2)
    ]
    found = verdict(a_site(*nodes("n1", "n2"), *pods), "web-1").nodes
    assert found["n1"].feasible
    assert list(found["n2"].failing) == ["NodeResourcesFit", "InterPodAffinity"]


def test_explaining_running_pods_leaves_no_trace_on_the_next() -> None:
    pods = [
        a_pod(f"web-{i}").labels(app="web").needs(cpu="3").apart(term(HOST, app("web"))).on(f"n{i}") for i in (1, 2)
    ]
    snapshot = a_site(*nodes("n1", "n2"), *pods, a_pod("new").needs(cpu="2"))
    together = explain(snapshot, Options(), ["shop/web-1", "shop/web-2", "shop/new"])
    assert together.pods["shop/new"] == verdict(snapshot, "new")


def test_a_pod_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="pod shop/nope: not in the input, or finished"):
        explain(a_site(a_node("n1"), a_pod("web")), Options(), ["shop/web", "shop/nope"])


def test_a_node_is_refused_if_a_pod_nominated_there_would_not_leave_room() -> None:
    vip = a_pod("vip").needs(cpu="3").nominated("n1", 10)
    found = verdict(a_site(*nodes("n1", "n2"), vip, a_pod("web").needs(cpu="2")), "web").nodes
    assert found["n1"].failing == {"NodeResourcesFit": ["Insufficient cpu"]} and found["n2"].feasible


def test_the_reasons_of_a_rule_are_those_with_the_nominated_pods() -> None:
    vip = a_pod("vip").needs(cpu="3").nominated("n1", 10)
    found = verdict(a_site(a_node("n1"), vip, a_pod("web").needs(cpu="2", memory="9Gi")), "web").nodes
    assert found["n1"].failing == {"NodeResourcesFit": ["Insufficient cpu", "Insufficient memory"]}


def test_affinity_to_a_pod_that_is_only_nominated_is_not_met() -> None:
    vip = a_pod("vip").labels(app="db").nominated("n1", 10)
    found = verdict(a_site(a_node("n1"), vip, a_pod("web").near(term(HOST, app("db")))), "web").nodes
    assert found["n1"].failing == {"InterPodAffinity": ["node(s) didn't match pod affinity rules"]}


def test_a_nominated_pods_anti_affinity_counts_only_where_the_rule_runs_anyway() -> None:
    # upstream skips InterPodAffinity for a pod without terms that no running pod's anti-affinity concerns
    vip = a_pod("vip").apart(term(HOST, app("web"))).nominated("n1", 10)
    new, there = a_pod("new").labels(app="web"), a_pod("there").apart(term(HOST, app("web"))).on("n2")
    assert verdict(a_site(*nodes("n1", "n2"), vip, new), "new").nodes["n1"].feasible
    refused = {"InterPodAffinity": ["node(s) didn't satisfy existing pods anti-affinity rules"]}
    assert verdict(a_site(*nodes("n1", "n2"), vip, there, new), "new").nodes["n1"].failing == refused


@pytest.mark.parametrize(
    ("selector", "deleted"),
    [
        pytest.param({}, False, id="an empty selector, which counts no running pod"),
        pytest.param(app("web"), True, id="a pod being deleted, which does not count while it runs"),
    ],
)
def test_spread_counts_nominated_pods_without_its_exceptions(selector: dict[str, object], deleted: bool) -> None:
    vip = a_pod("vip").labels(app="web").nominated("n1", 10)
    new = a_pod("new").labels(app="web").spreads(spread(HOST, selector))
    found = verdict(a_site(*nodes("n1", "n2"), vip.deleted() if deleted else vip, new), "new").nodes
    assert found["n1"].failing == {"PodTopologySpread": ["node(s) didn't match pod topology spread constraints"]}
    assert found["n2"].feasible


def test_a_gated_pods_nomination_is_ignored() -> None:
    vip = a_pod("vip").needs(cpu="3").nominated("n1", 10).spec(schedulingGates=[{"name": "g"}])
    assert verdict(a_site(a_node("n1"), vip, a_pod("web").needs(cpu="2")), "web").nodes["n1"].feasible
