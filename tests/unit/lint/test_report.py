"""What lint leaves alone, how it names and orders what it finds, and what it refuses to read."""

import copy
import json
import random
from pathlib import Path

import pytest
from support.answers.lint import ANTI, ESXI, POD_SPEC, Written, hosts, report_of, rows, zones
from support.build import HOST, REQUIRED, ZONE, Json, a_budget, a_manifest, a_node, a_pod, app, labelled, spread, term

from underhost.agents.lint.report import CHECKS, lint
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.errors import BadObjectError
from underhost.streams.files.reader import load_files

CASES = Path(__file__).parents[2] / "oracle" / "cases"
THREE = zones("a", "b", "c")
ON = [a_pod("p0").on("n0").labels(app="other")]
SPARES_ONE = a_budget("db", app("db"), max_unavailable=1)
EITHER = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [
    {"key": "app", "operator": "In", "values": ["db", "cache"]}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "inventory"),
    [
        pytest.param(
            [*THREE, *ON, a_manifest().near(term(HOST, app("db")))],
            None,
            id="the first pod of an affinity to its own kind may go anywhere",
        ),
        pytest.param(
            [*THREE, a_manifest(name="cache"), a_manifest().near(EITHER)],
            None,
            id="In with several values, of which one is there",
        ),
        pytest.param(
            [a_manifest().apart(term(HOST, app("db"))), a_manifest(name="web").apart(term(ZONE, app("web")))],
            None,
            id="keys are not judged without nodes",
        ),
        pytest.param(
            [*THREE, a_manifest().apart(term(HOST, app("db")))],
            None,
            id="as many replicas as nodes, apart by hostname",
        ),
        pytest.param(
            [*THREE, a_manifest().apart(term(HOST, app("db"), matchLabelKeys=["pod-template-hash"]))],
            None,
            id="matchLabelKeys with a label that the controller adds",
        ),
        pytest.param(
            [*THREE, a_manifest(replicas=9).apart(term(HOST, app("db"), mismatchLabelKeys=["app"]))],
            None,
            id="mismatchLabelKeys: a term that is meant for others",
        ),
        pytest.param(
            [*THREE, a_manifest().spreads(spread(ZONE, {}, matchLabelKeys=["app"]))],
            None,
            id="a spread constraint whose selector is its matchLabelKeys",
        ),
        pytest.param(
            [*THREE, a_manifest(replicas=9).spreads(spread(ZONE, app("db")), spread(HOST, app("db")))],
            None,
            id="a spread over three zones takes any number of replicas",
        ),
        pytest.param(
            [*THREE, a_manifest(replicas=3).spreads(spread(ZONE, app("db"), minDomains=5))],
            None,
            id="minDomains above the number of zones, with room for every replica",
        ),
        pytest.param(
            [
                *zones("a", "b"),
                a_node("n2").labels({ZONE: "c"}).tainted("dedicated=x:NoSchedule"),
                a_manifest(replicas=4).spreads(spread(ZONE, app("db"), nodeTaintsPolicy="Honor")),
            ],
            None,
            id="nodeTaintsPolicy Honor leaves the tainted zone out",
        ),
        pytest.param(
            [*THREE, a_manifest().apart({"topologyKey": HOST, "labelSelector": {}})],
            None,
            id="an anti-affinity to every pod of the namespace",
        ),
        pytest.param(
            [*THREE, *ON, a_pod("b").on("n1").labels(app="batch"), a_manifest().apart(term(HOST, app("batch")))],
            None,
            id="an anti-affinity to others that are there",
        ),
        pytest.param(
            [a_manifest().apart({"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": "batch"}}})],
            None,
            id="a manifest by itself, apart from pods of another file",
        ),
        pytest.param(
            [*THREE, *ON, a_manifest(replicas=0).near(term(HOST, app("gone"))).spec(nodeSelector={"disk": "ssd"})],
            None,
            id="a workload that is scaled to zero",
        ),
        pytest.param(
            [*THREE, a_manifest("DaemonSet").apart(term(HOST, app("db"))).spec(nodeSelector={"gpu": "yes"})],
            None,
            id="a DaemonSet for nodes that the cluster lacks",
        ),
        pytest.param(
            [*THREE, a_manifest("Job", replicas=None).apart(term(ZONE, app("db"))).put("spec", "parallelism", value=5)
             .put("spec", "completions", value=9)],
            None,
            id="a Job with more pods than zones: they take turns",
        ),
        pytest.param(
            [*THREE, a_manifest("Job").spec(nodeSelector={"disk": "ssd"})
             .put("status", "conditions", value=[{"type": "Complete", "status": "True"}])],
            None,
            id="a Job that is over",
        ),
        pytest.param(
            [*THREE, a_manifest().node_terms(labelled("disk"), labelled(ZONE, "In", "a"))],
            None,
            id="one of two node affinity terms is met",
        ),
        pytest.param(
            [
                *THREE,
                a_node("n3").tainted("dedicated=x:NoSchedule"),
                a_node("n4").spec(taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]),
                a_manifest(replicas=1).apart(term(ZONE, app("db"))).spec(nodeSelector={ZONE: "a"}),
            ],
            None,
            id="nodes that the pods cannot use may lack the key",
        ),
        pytest.param(
            [*zones("a", "b"), a_node("n2").labels({ZONE: "c"}).cordoned().spec(taints=[
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
             a_manifest().apart(term(ZONE, app("db")))],
            None,
            id="a cordon does not make a domain disappear",
        ),
        pytest.param(
            [*THREE, a_manifest(replicas=2).apart(term(ESXI, app("db")))],
            hosts(n0="esx-1", n1="esx-2", n2="esx-3"),
            id="the host key, which no node carries, where the live hosts are known",
        ),
        pytest.param(
            [*THREE, *(a_pod(f"db-{i}").on(f"n{i}").labels(app="db").owned_by("StatefulSet/db") for i in range(3)),
             a_manifest("StatefulSet").apart(term(HOST, app("db")))],
            hosts(n0="esx-1", n1="esx-2", n2="esx-3"),
            id="replicas on as many hosts",
        ),
        pytest.param([*THREE, a_manifest(), SPARES_ONE], None, id="a budget that spares one"),
        pytest.param([SPARES_ONE], None, id="a budget by itself: its pods are in another file"),
        pytest.param(
            [
                {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "k8s"}},
                a_manifest(name="web").near(term(HOST, app("prometheus"))).apart(term(HOST, app("prometheus"))),
                a_budget("db", app("prometheus"), max_unavailable=1),
            ],
            None,
            id="pods that a custom resource may make",
        ),
        pytest.param(
            [a_manifest(replicas=0), SPARES_ONE], None, id="a budget over a workload that is scaled to zero"
        ),
        pytest.param(
            [*THREE, *(a_pod(f"db-{i}").on(f"n{i}").labels(app="db").owned_by("StatefulSet/db") for i in range(3)),
             a_manifest("StatefulSet").apart(term(HOST, app("db"))), SPARES_ONE],
            hosts(n0="esx-1", n1="esx-2", n2="esx-3"),
            id="a budget that spares one of three pods apart: each node can be drained",
        ),
        pytest.param(
            [*THREE, a_manifest().spec(nodeSelector={}, affinity={}, topologySpreadConstraints=[])],
            None,
            id="parts that are empty",
        ),
    ],
)  # fmt: skip
def test_what_is_legal_and_effective_is_left_alone(objects: list[Written], inventory: Json | None) -> None:
    assert rows(objects, inventory) == []


ALONE = ("control-plane-never-kept", "Node/kni-control-plane")
"""The seeds' cluster has one member of the control plane."""


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("seed000-05-blackbox-literal", [("topology-key-absent", "Pod/default/blackbox-0"), ALONE]),
        ("seed000-06-blackbox", [ALONE]),
        ("seed000-04-varnish", [ALONE]),
        ("seed002-01-redis-web", []),
        ("seed003-02-rack-required", [("replicas-exceed-domains", "Pod/default/c0")]),
        ("seed004-04-required", [
            ("replicas-exceed-domains", "Pod/default/webserver-f-0"),
            ("node-labels-behind", "Node/aks-nodepool1-37473667-0"),
            ("node-labels-behind", "Node/aks-nodepool1-37473667-0"),
        ]),
    ],
)  # fmt: skip
def test_the_seeds_clusters(case: str, expected: list[tuple[str, str]]) -> None:
    read = load_files([CASES / f"{case}.json"])
    report = lint(snapshot_of(read)[0], Options(), read.others)
    assert [(one.source, one.object) for one in report.findings] == expected


def test_pods_of_a_workload_that_the_input_lacks_are_one_finding_on_it() -> None:
    alike = term(ZONE, app("db"))
    pods = [a_pod(f"db-{i}").on("n0").labels(app="db").owned_by("StatefulSet/db").apart(alike) for i in range(3)]
    (one,) = rows([a_node("n0"), *pods])
    assert (one.check, one.object, one.field) == ("topology-key-absent", "StatefulSet/shop/db", f"{ANTI}.topologyKey")


def test_a_deployment_is_known_by_its_pods_names() -> None:
    waiting = a_pod("db-5d4f-x").labels(app="db").owned_by("ReplicaSet/db-5d4f").near(term("rack", app("db")))
    waiting = waiting.labels({"pod-template-hash": "5d4f"})
    assert [one.object for one in rows([*THREE, waiting])] == ["Deployment/shop/db"]


def test_a_bare_pod_is_named_with_the_fields_of_a_pod() -> None:
    (one,) = rows([*THREE, a_pod("p").spec(nodeSelector={"disk": "ssd"})])
    assert (one.object, one.field) == ("Pod/shop/p", "spec.nodeSelector[disk]")
    assert one.message == (
        "No node has disk=ssd, which the nodeSelector of Pod shop/p asks for, so it cannot be placed: "
        "no node has the label disk; label a node, or ask for a label that is there."
    )


def test_fields_of_a_hand_written_pod_and_budget_are_known_by_their_capitals() -> None:
    metadata = {"name": "p", "namespace": "shop", "labels": {"app": "other"}}
    written = a_pod("p").spec(nodeselector={"disk": "ssd"}, Affinity={}).put("metadata", value=metadata)
    limits = a_budget("db").put("spec", value={"minavailable": 1, "selector": app("other")})
    assert [(one.check, one.object, one.field) for one in rows([written, limits])] == [
        ("field-miscapitalised", "Pod/shop/p", "spec.Affinity"),
        ("field-miscapitalised", "Pod/shop/p", "spec.nodeselector"),
        ("budget-without-bound", "PodDisruptionBudget/shop/db", "spec"),
        ("budget-miscapitalised", "PodDisruptionBudget/shop/db", "spec.minavailable"),
    ]


def test_rules_that_a_webhook_gave_every_pod_count_for_the_workload() -> None:
    pods = [
        a_pod(f"db-{i}").on("n0").labels(app="db").owned_by("StatefulSet/db").apart(term(ZONE, app("db")))
        for i in range(3)
    ]
    found = rows([a_node("n0"), a_manifest("StatefulSet"), *pods])
    assert [(one.check, one.object) for one in found] == [("topology-key-absent", "StatefulSet/shop/db")]


def test_a_virtual_machine_replica_set_is_judged_by_its_template() -> None:
    guests = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceReplicaSet",
        "metadata": {"name": "mssql", "namespace": "default"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [term(ZONE, app("db"))]}}, "domain": {}},
            },
        },
    }
    (one,) = rows([*THREE, guests])
    assert (one.check, one.object, one.field) == (
        "replicas-exceed-domains",
        "VirtualMachineInstanceReplicaSet/default/mssql",
        f"{ANTI}.topologyKey",
    )


def test_pods_that_the_manifests_make_match_the_selectors_of_others() -> None:
    assert rows([*THREE, *ON, a_manifest(name="cache"), a_manifest().near(term(HOST, app("cache")))]) == []


FAULTY = [
    *zones("a", "b", ""),
    *ON,
    a_manifest(name="a").apart(term("rack", app("a"))).prefers_apart(0, term(HOST, app("gone"))),
    a_manifest(name="b", replicas=5).spreads(spread(ZONE, app("gone"))).spec(nodeSelector={"disk": "ssd"}),
    a_pod("db-0").on("n1").labels(app="db").owned_by("StatefulSet/db").near(term(HOST, app("gone"))),
    a_pod("db-1").on("n2").labels(app="db").owned_by("StatefulSet/db").near(term(HOST, app("gone"))),
    a_budget("db", app("db"), min_available=2),
    a_budget("other", app("db"), min_available=1),
]


@pytest.mark.parametrize("seed", range(10))
def test_the_report_is_the_same_for_every_order_of_the_input(seed: int) -> None:
    shuffled = copy.deepcopy(FAULTY)
    random.Random(seed).shuffle(shuffled)
    assert report_of(shuffled) == report_of(FAULTY)


def test_findings_are_ordered_by_severity_object_and_field() -> None:
    assert [(one.severity, one.object, one.check) for one in rows(FAULTY)] == [
        ("unsatisfiable", "Deployment/shop/a", "weight-out-of-range"),
        ("unsatisfiable", "Deployment/shop/a", "topology-key-absent"),
        ("unsatisfiable", "Deployment/shop/b", "node-affinity-unmet"),
        ("unsatisfiable", "StatefulSet/shop/db", "affinity-unmet"),
        ("budget", "PodDisruptionBudget/shop/db", "budget-never-allows"),
        ("budget", "PodDisruptionBudget/shop/db", "budget-overlap"),
        ("drift", "Deployment/shop/a", "preference-selects-nothing"),
        ("drift", "Deployment/shop/b", "spread-misses-own-pods"),
    ]


def test_an_id_stays_while_other_objects_come_and_go() -> None:
    before = {(one.source, one.object, one.field): one.id for one in report_of(FAULTY).findings}
    after = {
        (one.source, one.object, one.field): one.id for one in report_of([*FAULTY, *zones("", "", "", "z")]).findings
    }
    assert len(before) == len(set(before.values())) == 8
    assert {key: after[key] for key in before if key in after} == {k: v for k, v in before.items() if k in after}
    assert len(before.keys() & after.keys()) >= 7


def test_the_summary_counts_what_was_looked_at() -> None:
    summary = report_of([*FAULTY], hosts(n0="esx-1", n1="esx-2")).summary
    assert (summary["pods"], summary["nodes"], summary["hosts"]) == (11, 3, 2)
    assert (summary["unsatisfiable"], summary["budget"], summary["violation"]) == (4, 2, 0)


def test_every_check_has_a_name_of_its_own_a_reason_and_a_source() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.why and check.source and check.find.__doc__ for check in CHECKS)


@pytest.mark.parametrize(
    ("objects", "object_", "field", "message"),
    [
        (
            [a_manifest().node_terms(labelled("disk", "Has"))],
            "Deployment/shop/db",
            f"{POD_SPEC}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0].operator",
            "'Has' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        (
            [a_manifest().apart({"topologyKey": HOST, "labelSelector": {"matchExpressions": [
                {"key": "app", "operator": "In"}]}})],
            "Deployment/shop/db",
            f"{ANTI}.labelSelector.matchExpressions[0].values",
            "operator In needs a value",
        ),
        (
            [a_manifest().spreads(spread(ZONE, app("db"), whenUnsatisfiable="Sometimes"))],
            "Deployment/shop/db",
            f"{POD_SPEC}.topologySpreadConstraints[0].whenUnsatisfiable",
            "'Sometimes' is none of DoNotSchedule, ScheduleAnyway",
        ),
        (
            [a_manifest().prefers_apart("ten", term(HOST, app("db")))],
            "Deployment/shop/db",
            f"{POD_SPEC}.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
            "expected an integer, got a string",
        ),
        (
            [a_manifest().spec(tolerations=[{"key": "a", "operator": "Perhaps"}])],
            "Deployment/shop/db",
            f"{POD_SPEC}.tolerations[0].operator",
            "'Perhaps' is none of Equal, Exists, Lt, Gt",
        ),
        (
            [a_pod("p").near({"topologyKey": 5, "labelSelector": {}})],
            "Pod/shop/p",
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            "expected a string, got an integer",
        ),
        (
            [a_pod("p").near(term(HOST, app("db"), namespaceSelector=labelled("a", "Is")))],
            "Pod/shop/p",
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector"
            ".matchExpressions[0].operator",
            "'Is' is none of In, NotIn, Exists, DoesNotExist",
        ),
        (
            [a_manifest(), a_budget("db", {"matchExpressions": [{"key": "a", "operator": "Is"}]}, max_unavailable=1)],
            "PodDisruptionBudget shop/db",
            "spec.selector.matchExpressions[0].operator",
            "'Is' is none of In, NotIn, Exists, DoesNotExist",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_object_and_field(
    objects: list[Written], object_: str, field: str, message: str
) -> None:
    with pytest.raises(BadObjectError) as caught:
        report_of(objects)
    assert (caught.value.object, caught.value.field, caught.value.message) == (object_, field, message)


def test_thousands_of_workloads_are_linted_without_looking_at_each_pair() -> None:
    many = [a_manifest(name=f"w{i}", replicas=2).apart(term(HOST, app(f"w{i}"))) for i in range(300)]
    assert rows([*THREE, *many]) == []


def test_json_of_a_report_holds_object_and_field_and_no_pod() -> None:
    from underhost.schemas.documents import to_json

    (finding,) = json.loads(to_json(report_of([a_manifest().apart(term("", app("db")))])))["findings"]
    assert sorted(finding) == ["field", "id", "message", "object", "reason", "rule", "severity", "source"]
