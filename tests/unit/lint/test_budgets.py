"""Lint of disruption budgets, hosts and DRS rules."""

import pytest
from support.answers.lint import ANTI, ESXI, SPREAD, Row, Written, hosts, report_of, rows, zones
from support.build import HOST, Json, a_budget, a_manifest, a_node, a_pod, app, spread, term


@pytest.mark.parametrize(
    ("objects", "inventory", "expected"),
    [
        pytest.param(
            [*zones("a", "b", "c"), a_manifest().apart(term(HOST, app("db")))],
            hosts(n0="esx-1", n1="esx-1", n2="esx-2"),
            [
                Row(
                    "replicas-exceed-hosts",
                    "unsatisfiable",
                    "PhysicalHost",
                    "Deployment/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "Deployment shop/db wants 3 replicas apart, and the nodes that they may use run on 2 ESXi "
                        "hosts: some must share one; use fewer replicas, or add hosts."
                    ),
                )
            ],
            id="nodes enough, and fewer ESXi hosts than replicas",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), min_available=1, max_unavailable=1)],
            None,
            [
                Row(
                    "budget-min-and-max",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.maxUnavailable",
                    (
                        "Budget shop/db sets minAvailable and maxUnavailable, which the API server refuses: keep one of"
                        " them."
                    ),
                )
            ],
            id="a budget with both bounds",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"))],
            None,
            [
                Row(
                    "budget-without-bound",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec",
                    ("Budget shop/db sets neither minAvailable nor maxUnavailable, so it allows no eviction: set one."),
                )
            ],
            id="a budget with neither bound",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), max_unavailable=1, version="policy/v1beta1")],
            None,
            [
                Row(
                    "budget-api-removed",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "apiVersion",
                    (
                        "Budget shop/db is of policy/v1beta1, which Kubernetes 1.25 removed: use policy/v1, where an "
                        "empty selector matches every pod of the namespace instead of none."
                    ),
                )
            ],
            id="a budget of policy/v1beta1",
        ),
        pytest.param(
            [
                a_manifest(),
                a_budget("db", app("db"), max_unavailable=1, version="policy/v1beta1").metadata(uid="of-a-cluster"),
            ],
            None,
            [],
            id="a budget of policy/v1beta1 in a cluster that has no other",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", {}, max_unavailable=1)],
            None,
            [
                Row(
                    "budget-selector-empty",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector",
                    (
                        "Budget shop/db has the empty selector, which covers every pod of its namespace, and some "
                        "versions of the API server read it otherwise: select the pods that are meant."
                    ),
                )
            ],
            id="a budget with the empty selector",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("dbs"), max_unavailable=1)],
            None,
            [
                Row(
                    "budget-covers-nothing",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector",
                    (
                        "Budget shop/db covers no pod of the input: select the labels of the pods that are meant, or "
                        "leave it out with them."
                    ),
                )
            ],
            id="a budget that covers no pod",
        ),
        pytest.param(
            [a_manifest(), a_budget().put("spec", value={"maxUnavailable": 1})],
            None,
            [
                Row(
                    "budget-covers-nothing",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector",
                    "Budget shop/db has no selector, so it covers no pod: select the pods that are meant.",
                )
            ],
            id="a budget without a selector",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), min_available=0)],
            None,
            [
                Row(
                    "budget-protects-nothing",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.minAvailable",
                    "Budget shop/db has minAvailable 0, so it protects nothing: raise it.",
                )
            ],
            id="minAvailable 0",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), max_unavailable="100%")],
            None,
            [
                Row(
                    "budget-protects-nothing",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.maxUnavailable",
                    "Budget shop/db has maxUnavailable 100%, so it protects nothing: lower it.",
                )
            ],
            id="maxUnavailable 100%",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), min_available=3)],
            None,
            [
                Row(
                    "budget-never-allows",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.minAvailable",
                    (
                        "Budget shop/db can never allow an eviction of shop/db-0, shop/db-1 and shop/db-2: minAvailable"
                        " is 3 and there are 3 of them, so a drain waits for ever; run 4 replicas, or lower it."
                    ),
                )
            ],
            id="minAvailable as many as there are",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), max_unavailable=0)],
            None,
            [
                Row(
                    "budget-never-allows",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.maxUnavailable",
                    (
                        "Budget shop/db can never allow an eviction of shop/db-0, shop/db-1 and shop/db-2: "
                        "maxUnavailable is 0 of 3 replicas, so a drain waits for ever; raise it."
                    ),
                )
            ],
            id="maxUnavailable 0",
        ),
        pytest.param(
            [a_manifest(replicas=1), a_budget("db", app("db"), min_available="50%")],
            None,
            [
                Row(
                    "budget-never-allows",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.minAvailable",
                    (
                        "Budget shop/db can never allow an eviction of shop/db-0: minAvailable is 50% of 1 replicas, so"
                        " a drain waits for ever; run 2 replicas, or lower it."
                    ),
                )
            ],
            id="a budget over a single replica",
        ),
        pytest.param(
            [a_manifest(), a_budget("db", app("db"), max_unavailable=1), a_budget("db2", app("db"), min_available=1)],
            None,
            [
                Row(
                    "budget-overlap",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector",
                    (
                        "Budgets shop/db and shop/db2 both cover shop/db-0, shop/db-1 and shop/db-2, so the API server "
                        "refuses every eviction: leave one budget for each pod."
                    ),
                )
            ],
            id="two budgets on the same pods",
        ),
        pytest.param(
            [
                a_manifest(),
                a_budget().put("spec", value={"maxUnavailable": 1, "selector": {"matchlabels": {"app": "db"}}}),
            ],
            None,
            [
                Row(
                    "budget-selector-empty",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector",
                    (
                        "Budget shop/db has the empty selector, which covers every pod of its namespace, and some "
                        "versions of the API server read it otherwise: select the pods that are meant."
                    ),
                ),
                Row(
                    "budget-miscapitalised",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.selector.matchlabels",
                    (
                        "Budget shop/db says matchlabels, which the API server refuses or ignores: the field is "
                        "matchLabels."
                    ),
                ),
            ],
            id="matchlabels in a budget",
        ),
        pytest.param(
            [
                *zones("a", "b", "c", "d"),
                *[a_pod(f"db-{i}").on(f"n{i}").labels(app="db").owned_by("StatefulSet/db") for i in range(4)],
                a_manifest("StatefulSet", "db", 4).apart(term(HOST, app("db"))),
                a_budget("db", app("db"), min_available=3),
            ],
            hosts(n0="esx-1", n1="esx-1", n2="esx-2", n3="esx-3"),
            [
                Row(
                    "separation-shares-host",
                    "physical",
                    "PhysicalHost",
                    "StatefulSet/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "The required anti-affinity of StatefulSet shop/db is kept by kubernetes.io/hostname, yet pods "
                        "of it share ESXi host esx-1: use the key node.cluster.x-k8s.io/esxi-host, or let `underhost "
                        "run` write DRS rules."
                    ),
                ),
                Row(
                    "replicas-exceed-hosts",
                    "unsatisfiable",
                    "PhysicalHost",
                    "StatefulSet/shop/db",
                    f"{ANTI}.topologyKey",
                    (
                        "StatefulSet shop/db wants 4 replicas apart, and the nodes that they may use run on 3 ESXi "
                        "hosts: some must share one; use fewer replicas, or add hosts."
                    ),
                ),
                Row(
                    "budget-blocks-drain",
                    "budget",
                    "PodDisruptionBudget",
                    "PodDisruptionBudget/shop/db",
                    "spec.minAvailable",
                    (
                        "Budget shop/db blocks a drain of ESXi host esx-1: 3 pods must stay healthy, each in a "
                        "kubernetes.io/hostname of its own, and 2 domains would be left; let the budget spare more, add"
                        " a domain, or make the rule a preference."
                    ),
                ),
            ],
            id="four pods apart, three of which must stay: the host with two nodes cannot be drained",
        ),
        pytest.param(
            [*zones("a")],
            {
                **hosts(n0="esx-1"),
                "clusters": [
                    {
                        "name": "C0",
                        "rules": [
                            {"name": "r1", "type": "anti-affinity", "vms": ["vm-n0", "vm-9"]},
                            {"name": "r2", "type": "affinity", "vms": ["vm-9"]},
                        ],
                    }
                ],
            },
            [
                Row(
                    "drs-rule-alone",
                    "drift",
                    "PhysicalHost",
                    "DrsRule/C0/r1",
                    "vms",
                    (
                        "DRS rule r1 of vSphere cluster C0 names only the VM n0, so it does nothing: name two VMs or "
                        "more, or remove it."
                    ),
                ),
                Row(
                    "drs-rule-alone",
                    "drift",
                    "PhysicalHost",
                    "DrsRule/C0/r2",
                    "vms",
                    (
                        "DRS rule r2 of vSphere cluster C0 names no VM that is there, so it does nothing: name two VMs "
                        "or more, or remove it."
                    ),
                ),
            ],
            id="DRS rules of one VM and of none",
        ),
        pytest.param(
            [
                *zones("a", "b", "c"),
                *[a_pod(f"db-{i}").on(f"n{i}").labels(app="db").owned_by("StatefulSet/db") for i in range(3)],
                a_manifest("StatefulSet", "db", 3).spreads(spread(HOST, app("db"))),
            ],
            hosts(n0="esx-1", n1="esx-1", n2="esx-2"),
            [
                Row(
                    "separation-shares-host",
                    "physical",
                    "PhysicalHost",
                    "StatefulSet/shop/db",
                    f"{SPREAD}.topologyKey",
                    (
                        "The DoNotSchedule spread constraint of StatefulSet shop/db is kept by kubernetes.io/hostname, "
                        "yet pods of it share ESXi host esx-1: use the key node.cluster.x-k8s.io/esxi-host, or let "
                        "`underhost run` write DRS rules."
                    ),
                )
            ],
            id="a spread over nodes that one ESXi host undoes",
        ),
    ],
)
def test_a_budget_or_host_that_undoes_a_rule_is_reported(
    objects: list[Written], inventory: Json | None, expected: list[Row]
) -> None:
    assert rows(objects, inventory) == expected


RACK = "example.com/rack"
RACKED = [a_node(f"n{at}").labels({RACK: rack, HOST: f"n{at}"}) for at, rack in enumerate("ppq")]


@pytest.mark.parametrize(
    ("objects", "messages"),
    [
        pytest.param(
            [
                *RACKED,
                *[a_pod(f"db-{i}").on(f"n{i}").labels(app="db").owned_by("StatefulSet/db") for i in range(3)],
                a_manifest("StatefulSet", "db", 3).spreads(spread(HOST, app("db"))),
            ],
            [
                "The DoNotSchedule spread constraint of StatefulSet shop/db is kept by kubernetes.io/hostname, yet "
                "pods of it share host p: use the key example.com/rack."
            ],
            id="a host undoes a spread",
        ),
        pytest.param(
            [*RACKED, a_manifest(replicas=3).apart(term(HOST, app("db")))],
            [
                "Deployment shop/db wants 3 replicas apart, and the nodes that they may use run on 2 hosts: some must "
                "share one; use fewer replicas, or add hosts."
            ],
            id="fewer hosts than replicas",
        ),
        pytest.param(
            [*RACKED, a_node("n3").labels({HOST: "n3"}), a_manifest(replicas=2).apart(term(ESXI, app("db")))],
            [
                "1 of 4 nodes that the pods of Deployment shop/db may use (n3) has no known host for "
                "node.cluster.x-k8s.io/esxi-host: the required anti-affinity keeps nothing apart there; label them."
            ],
            id="a node without the label",
        ),
    ],
)
def test_where_a_label_names_the_hosts_lint_says_hosts(objects: list[Written], messages: list[str]) -> None:
    assert [row.message for row in rows(objects, host_label=RACK)] == messages


@pytest.mark.parametrize(
    ("replicas", "least", "enough"),
    [
        pytest.param(1, "51%", 3, id="51 % of 2 are 2"),
        pytest.param(2, "80%", 5, id="80 %"),
        pytest.param(1, 2, 3, id="2 of 1"),
        pytest.param(3, 3, 4, id="all of 3"),
        pytest.param(4, "99%", 100, id="99 %"),
    ],
)
def test_as_many_replicas_as_are_advised_are_enough_and_no_fewer(replicas: int, least: int | str, enough: int) -> None:
    def never(count: int) -> list[str]:
        found = report_of([a_manifest(replicas=count), a_budget("db", app("db"), min_available=least)]).findings
        return [one.message for one in found if one.source == "budget-never-allows"]

    (message,) = never(replicas)
    assert message.endswith(f"so a drain waits for ever; run {enough} replicas, or lower it.")
    assert never(enough - 1)
    assert not never(enough)


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        pytest.param({"min_available": -1}, "minAvailable -1", id="a negative number"),
        pytest.param({"min_available": "101%"}, "minAvailable 101%", id="more than all"),
        pytest.param({"max_unavailable": "-5%"}, "maxUnavailable -5%", id="a negative percentage"),
        pytest.param({"max_unavailable": "half"}, "maxUnavailable half", id="a word"),
    ],
)
def test_a_bound_that_the_api_server_refuses_is_the_only_finding(bound: Json, shown: str) -> None:
    (found,) = report_of([a_manifest(), a_budget("db", app("db"), **bound)]).findings
    assert (found.source, found.severity) == ("budget-out-of-range", "budget")
    assert found.message == (
        f"Budget shop/db has {shown}, which the API server refuses: use a number from 0 on, or 0% to 100%."
    )
