"""Disruption budgets, as the disruption controller figures them."""

import random
from dataclasses import replace

import pytest
from support.build import a_budget, a_pod, a_site, a_workload

from underhost.agents.evaluate import disruption
from underhost.agents.evaluate.budgets import REASON_NEVER, REASON_OVERLAP
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.owners import ready
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.errors import BadObjectError

APP = {"app": "nginx"}
MATCH_APP = {"matchLabels": APP}


def figures(site):
    return check(site, Options()).budgets


def budget_findings(site):
    return [finding for finding in check(site, Options()).findings if finding.severity == "budget"]


def pods(count, owner="ReplicaSet/nginx-1", start=0, namespace="shop"):
    made = [a_pod(f"nginx-{n}", namespace).on("n1").labels(APP) for n in range(start, start + count)]
    return [pod.owned_by(owner) for pod in made] if owner else made


def a_deployment(replicas):
    return [
        a_workload("Deployment", "nginx", replicas),
        a_workload("ReplicaSet", "nginx-1", replicas).owned_by("Deployment/nginx"),
    ]


@pytest.mark.parametrize(
    ("objects", "budget", "expected"),
    [
        pytest.param(
            [*a_deployment(10), *pods(10)],
            a_budget(selector=MATCH_APP, min_available="80%"),
            BudgetFigures(expected=10, current=10, desired=8, allowed=2),
            id="seed 003: minAvailable 80 % of 10 allows 2",
        ),
        pytest.param(
            [*a_deployment(10), *pods(10)],
            a_budget(selector=MATCH_APP, max_unavailable="33%"),
            BudgetFigures(expected=10, current=10, desired=6, allowed=4),
            id="seed 003: maxUnavailable 33 % of 10 rounds up to 4, so 6 are desired",
        ),
        pytest.param(
            [*a_deployment(6), *pods(6)],
            a_budget(selector=MATCH_APP, min_available=5),
            BudgetFigures(expected=6, current=6, desired=5, allowed=1),
            id="seed 003: minAvailable 5 of 6 allows 1",
        ),
        pytest.param(
            [*a_deployment(7), *pods(7)],
            a_budget(selector=MATCH_APP, min_available="50%"),
            BudgetFigures(expected=7, current=7, desired=4, allowed=3),
            id="minAvailable 50 % of 7 rounds up to 4",
        ),
        pytest.param(
            [*a_deployment(3), *pods(1)],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=3, current=1, desired=2, allowed=0),
            id="the owner's replicas are expected, not the pods that there are",
        ),
        pytest.param(
            [*a_deployment(3), *pods(2)],
            a_budget(selector=MATCH_APP, min_available=1),
            BudgetFigures(expected=2, current=2, desired=1, allowed=1),
            id="an integer minAvailable expects the pods that there are",
        ),
        pytest.param(
            [a_workload("ReplicaSet", "nginx-1", 4), *pods(4)],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=4, current=4, desired=3, allowed=1),
            id="a ReplicaSet without a Deployment gives its own replicas",
        ),
        pytest.param(
            [
                a_workload("Deployment", "nginx", 4),
                a_workload("ReplicaSet", "nginx-1", 1).owned_by("Deployment/nginx"),
                a_workload("ReplicaSet", "nginx-2", 3).owned_by("Deployment/nginx"),
                *pods(1),
                *pods(3, "ReplicaSet/nginx-2", start=1),
            ],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=4, current=4, desired=3, allowed=1),
            id="two ReplicaSets of one Deployment in a rollout count once",
        ),
        pytest.param(
            [
                a_workload("StatefulSet", "a", 2),
                a_workload("StatefulSet", "b", 3),
                *pods(2, "StatefulSet/a"),
                *pods(3, "StatefulSet/b", start=2),
            ],
            a_budget(selector=MATCH_APP, min_available="50%"),
            BudgetFigures(expected=5, current=5, desired=3, allowed=2),
            id="two owners' replicas are added before rounding",
        ),
        pytest.param(
            [a_workload("StatefulSet", "a", None), *pods(1, "StatefulSet/a")],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=1, current=1, desired=0, allowed=1),
            id="replicas that are not written are one",
        ),
        pytest.param(
            [
                a_workload("VirtualMachineInstanceReplicaSet", "vms", 3),
                *pods(3, "VirtualMachineInstanceReplicaSet/vms"),
            ],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=3, current=3, desired=2, allowed=1),
            id="a KubeVirt replica set has a scale",
        ),
        pytest.param(
            [*a_deployment(4), *pods(3), *(pod.ready(False) for pod in pods(1, start=3))],
            a_budget(selector=MATCH_APP, min_available=2),
            BudgetFigures(expected=4, current=3, desired=2, allowed=1),
            id="a pod that is not ready is not healthy",
        ),
        pytest.param(
            [*a_deployment(4), *pods(3), *(pod.deleted() for pod in pods(1, start=3))],
            a_budget(selector=MATCH_APP, min_available=2),
            BudgetFigures(expected=4, current=3, desired=2, allowed=1),
            id="a pod that is being deleted is not healthy, but is expected",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector={"matchLabels": {"app": "other"}}, min_available=1),
            BudgetFigures(expected=0, current=0, desired=1, allowed=0),
            id="a budget that selects no pod allows nothing",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=None, min_available=1),
            BudgetFigures(expected=0, current=0, desired=1, allowed=0),
            id="no selector selects no pod",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3), a_pod("plain").on("n1")],
            a_budget(selector={}, min_available=1),
            BudgetFigures(expected=4, current=4, desired=1, allowed=3),
            id="an empty selector selects every pod of the namespace, unlabelled ones too",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector={}, min_available=1, version="policy/v1beta1"),
            BudgetFigures(expected=0, current=0, desired=1, allowed=0),
            id="an empty selector of policy/v1beta1 selects nothing",
        ),
        pytest.param(
            [*pods(2, owner=""), *a_deployment(3), *pods(3, start=2)],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=3, current=5, desired=2, allowed=3),
            id="pods without a controller are healthy but not expected",
        ),
        pytest.param(
            pods(3, "DaemonSet/agent"),
            a_budget(selector=MATCH_APP, max_unavailable=1),
            BudgetFigures(expected=0, current=3, desired=0, allowed=0),
            id="an owner without a scale makes the controller's sync fail, which allows nothing",
        ),
        pytest.param(
            pods(3),
            a_budget(selector=MATCH_APP, max_unavailable=1).put(
                "status",
                value=dict(
                    observedGeneration=1, disruptionsAllowed=1, currentHealthy=3, desiredHealthy=2, expectedPods=3
                ),
            ),
            BudgetFigures(expected=3, current=3, desired=2, allowed=1),
            id="where the owner is not in the input, what the controller wrote is believed",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP, min_available=0, max_unavailable=1),
            BudgetFigures(expected=3, current=3, desired=2, allowed=1),
            id="with both set, maxUnavailable counts",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP),
            BudgetFigures(expected=0, current=3, desired=0, allowed=0),
            id="with neither set, nothing is expected and nothing allowed",
        ),
        pytest.param(
            [a_workload("ReplicaSet", "nginx-1", 3, namespace="other"), *pods(3, namespace="other")],
            a_budget(selector=MATCH_APP, min_available=1),
            BudgetFigures(expected=0, current=0, desired=1, allowed=0),
            id="pods of another namespace do not count",
        ),
        pytest.param(
            [*a_deployment(2), *pods(2)],
            a_budget(
                selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["nginx", "apache"]}]},
                max_unavailable="150%",
            ),
            BudgetFigures(expected=2, current=2, desired=0, allowed=2),
            id="more than all may be unavailable: none is desired",
        ),
    ],
)
def test_the_figures_are_the_controllers(objects, budget, expected):
    assert figures(a_site(*objects, budget)) == {"shop/db": expected}


@pytest.mark.parametrize(
    ("objects", "budget", "why"),
    [
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP, max_unavailable=0),
            "maxUnavailable is 0 of 3 replicas",
            id="maxUnavailable 0",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP, min_available="100%"),
            "minAvailable is 100% of 3 replicas",
            id="minAvailable 100 %",
        ),
        pytest.param(
            [*a_deployment(1), *pods(1)],
            a_budget(selector=MATCH_APP, min_available=1),
            "minAvailable is 1 and there are 1 of them",
            id="one replica of which one must stay",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP),
            "it sets neither minAvailable nor maxUnavailable",
            id="no bound at all",
        ),
        pytest.param(
            pods(3),
            a_budget(selector=MATCH_APP, max_unavailable=0),
            "maxUnavailable 0",
            id="maxUnavailable 0, though the owner is not in the input",
        ),
        pytest.param(
            pods(3),
            a_budget(selector=MATCH_APP, min_available=3),
            "minAvailable is 3 and there are 3 of them",
            id="every pod must stay, though the owner is not in the input",
        ),
        pytest.param(
            pods(2, owner=""),
            a_budget(selector=MATCH_APP, max_unavailable=1),
            "maxUnavailable is counted in their controllers' replicas, and they have no controller",
            id="only pods without a controller",
        ),
        pytest.param(
            pods(2, "DaemonSet/agent"),
            a_budget(selector=MATCH_APP, max_unavailable=1),
            "maxUnavailable 1 cannot be figured, as DaemonSet agent has no scale",
            id="an owner without a scale",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector=MATCH_APP, min_available="half"),
            "minAvailable 'half' is neither a number nor a percentage",
            id="a bound that is no bound",
        ),
    ],
)
def test_a_budget_that_can_never_allow_an_eviction_is_found(objects, budget, why):
    (finding,) = budget_findings(a_site(*objects, budget))
    assert (finding.severity, finding.rule, finding.reason) == ("budget", "PodDisruptionBudget", REASON_NEVER)
    assert (finding.pod, finding.node, finding.object) == ("shop/nginx-0", "n1", "PodDisruptionBudget/shop/db")
    assert why in finding.message


@pytest.mark.parametrize(
    ("objects", "budget"),
    [
        pytest.param(
            [*a_deployment(3), *pods(1), *(pod.ready(False) for pod in pods(2, start=1))],
            a_budget(selector=MATCH_APP, max_unavailable=1),
            id="it allows nothing now because pods are not ready",
        ),
        pytest.param(
            [*a_deployment(6), *pods(4)],
            a_budget(selector=MATCH_APP, min_available=4),
            id="it allows nothing now because pods are missing",
        ),
        pytest.param(
            [*a_deployment(3), *pods(3)],
            a_budget(selector={"matchLabels": {"app": "other"}}, max_unavailable=0),
            id="it selects no pod",
        ),
        pytest.param(pods(3), a_budget(selector=MATCH_APP, max_unavailable=1), id="the owner is not in the input"),
        pytest.param(
            pods(3), a_budget(selector=MATCH_APP, min_available=2), id="the owner is not in the input, and 2 stay"
        ),
        pytest.param(
            [*a_deployment(3), *(pod.finished() for pod in pods(1))],
            a_budget(selector=MATCH_APP, max_unavailable=0),
            id="its only pod has finished",
        ),
    ],
)
def test_a_budget_that_may_yet_allow_an_eviction_is_not_found(objects, budget):
    assert budget_findings(a_site(*objects, budget)) == []


def test_pods_under_two_budgets_are_one_finding():
    site = a_site(
        *a_deployment(3),
        *pods(3),
        a_pod("lonely").on("n1").labels(app="other"),
        a_budget("a", MATCH_APP, min_available=1),
        a_budget("b", {}, max_unavailable="50%"),
    )
    (finding,) = budget_findings(site)
    assert (finding.severity, finding.reason) == ("budget", REASON_OVERLAP)
    assert (finding.pod, finding.peers) == ("shop/nginx-0", ["shop/nginx-1", "shop/nginx-2"])
    assert finding.message == (
        "Budgets shop/a and shop/b both cover shop/nginx-0, shop/nginx-1 and shop/nginx-2: "
        "the API server refuses every eviction of a pod with more than one budget."
    )


def test_a_selector_the_api_server_refuses_names_the_budget_and_the_field():
    bad = {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["x"]}]}
    with pytest.raises(BadObjectError) as caught:
        figures(a_site(*pods(1), a_budget(selector=bad, min_available=1)))
    assert (caught.value.object, caught.value.field) == (
        "PodDisruptionBudget shop/db",
        "spec.selector.matchExpressions[0].operator",
    )


def test_the_order_of_the_input_does_not_matter():
    objects = [
        *a_deployment(3),
        *pods(3),
        a_budget("a", MATCH_APP, max_unavailable=0),
        a_budget("b", MATCH_APP, min_available=1),
    ]
    expected = (figures(a_site(*objects)), budget_findings(a_site(*objects)))
    assert sorted(finding.reason for finding in expected[1]) == sorted([REASON_NEVER, REASON_OVERLAP])
    for seed in range(20):
        random.Random(seed).shuffle(objects)
        assert (figures(a_site(*objects)), budget_findings(a_site(*objects))) == expected


def test_of_a_budgets_pods_only_the_one_that_changes_is_read(monkeypatch):
    there, budgets = pods(50), (a_budget("a", {}, max_unavailable=0), a_budget("b", {}, min_available=1))
    site = a_site(*a_deployment(50), *there, *budgets)
    evaluator, read = Evaluator(Options()), []
    evaluator.update(site)
    monkeypatch.setattr(disruption, "ready", lambda pod: read.append(pod.metadata.name) or ready(pod))
    unready = there[7].ready(False)
    report = evaluator.update(replace(site, pods={**site.pods, unready.key: unready.build()}))
    assert report.budgets["shop/a"].current == report.budgets["shop/b"].current == 49
    assert set(read) == {"nginx-7"}


@pytest.mark.parametrize("seed", range(20))
def test_a_pod_is_covered_by_each_budget_whose_selector_its_labels_match(seed):
    dice, keys, values = random.Random(seed), ("app", "tier", "zone"), ("a", "b", "c")

    def expression():
        operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        some = dice.sample(values, dice.randint(1, 3)) if operator in ("In", "NotIn") else []
        return {"key": dice.choice(keys), "operator": operator, "values": some}

    budgets = {}
    for number in range(30):
        selector = {"matchExpressions": [expression() for _ in range(dice.randrange(3))]}
        budgets[f"shop/b{number:02d}"] = selector, a_budget(f"b{number:02d}", selector, min_available=1).build()
    coverage = disruption.Coverage()
    coverage.change_budgets({name: budget for name, (_, budget) in budgets.items()}, {})
    for number in range(30):
        worn = {key: dice.choice(values) for key in keys if dice.random() < 0.6}
        pod = a_pod(f"p{number}", "shop").labels(worn).build()
        expected = [name for name, (selector, _) in budgets.items() if _selects(selector["matchExpressions"], worn)]
        assert coverage.budgets_of(f"shop/p{number}", pod) == tuple(expected)


def _selects(expressions, worn):
    """As the API's reference says of each operator."""
    meets = {
        "In": lambda value, values: value in values,
        "NotIn": lambda value, values: value not in values,
        "Exists": lambda value, values: value is not None,
        "DoesNotExist": lambda value, values: value is None,
    }
    return all(meets[one["operator"]](worn.get(one["key"]), one["values"]) for one in expressions)
