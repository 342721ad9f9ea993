"""OpenShift's chapter on pod affinity and disruption budgets: two racks as topology domains, the budgets' figures."""

import pytest
from stories.cluster import ROOM, Cluster
from support.build import a_node

MASTER = "node-role.kubernetes.io/master:NoSchedule"
RACKS = {"master01": 2, "master02": 1, "master03": 1, "node01": 1, "node02": 2, "node03": 2}
PREFERRED = """
preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              labelSelector: {matchExpressions: [{key: app, operator: In, values: [custom]}]}
              topologyKey: rack
"""
REQUIRED = """
requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchExpressions: [{key: app, operator: In, values: [custom]}]}
            topologyKey: rack
"""
CUSTOM = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: my-pod}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: custom}}
  template:
    metadata: {labels: {app: custom}}
    spec:
      affinity:
        podAntiAffinity:
          RULE
      containers: [{name: c, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
"""
NGINX = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: nginx}
spec:
  RULE
  selector: {matchLabels: {app: nginx}}
"""


def racks() -> Cluster:
    """Three control plane nodes and three compute nodes in two racks."""
    return Cluster(
        *(
            a_node(name).has(**ROOM).tainted(*[MASTER] * (name[0] == "m")).labels(rack=f"rack-{rack}")
            for name, rack in RACKS.items()
        )
    )


def test_three_pods_go_to_each_rack_though_one_rack_has_a_single_compute_node() -> None:
    cluster = racks()
    cluster.apply(CUSTOM.replace("REPLICAS", "6").replace("RULE", PREFERRED.strip()))
    cluster.settle()
    nodes = list(cluster.where("my-pod").values())
    assert sorted(RACKS[node] for node in nodes) == [1, 1, 1, 2, 2, 2]
    assert nodes.count("node01") == 3


def test_the_weight_counts_pods_in_the_rack_not_on_the_node() -> None:
    cluster = racks()
    cluster.apply(CUSTOM.replace("REPLICAS", "1").replace("RULE", PREFERRED.strip()))
    cluster.settle()
    [(_, first)] = cluster.where("my-pod").items()
    cluster.apply(CUSTOM.replace("REPLICAS", "2").replace("RULE", PREFERRED.strip()))
    verdicts = cluster.explain("my-pod-1")
    scores = {name: verdict.scores["InterPodAffinity"] for name, verdict in verdicts.items() if verdict.scores}
    assert scores == {name: 0 if RACKS[name] == RACKS[first] else 100 for name in ("node01", "node02", "node03")}


def test_as_a_required_rule_a_third_pod_fits_in_no_rack() -> None:
    cluster = racks()
    cluster.apply(CUSTOM.replace("REPLICAS", "3").replace("RULE", REQUIRED.strip()))
    placed = cluster.settle()
    assert sorted(RACKS[node] for node in placed.placements.values() if node) == [1, 2]
    assert placed.failed == {
        "default/my-pod-2": {
            "node(s) didn't match pod anti-affinity rules": 3,
            "node(s) had untolerated taint(s)": 3,
        }
    }


@pytest.mark.parametrize(
    ("replicas", "rule", "desired", "allowed"),
    [
        pytest.param(10, "minAvailable: 80%", 8, 2, id="80 % of ten must be there, so two may go"),
        pytest.param(10, "maxUnavailable: 33%", 6, 4, id="33 % of ten round up to four that may go"),
        pytest.param(6, "minAvailable: 5", 5, 1, id="five of six must be there, so one may go"),
    ],
)
def test_the_budgets_figures_are_those_that_oc_describe_prints(
    replicas: int, rule: str, desired: int, allowed: int
) -> None:
    cluster = racks()
    cluster.apply(NGINX.replace("REPLICAS", str(replicas)).replace("RULE", rule))
    cluster.settle()
    figures = cluster.check().budgets["default/nginx"]
    assert (figures.expected, figures.current, figures.desired, figures.allowed) == (
        replicas,
        replicas,
        desired,
        allowed,
    )


def test_a_budget_does_not_keep_replacements_from_the_other_nodes() -> None:
    cluster = racks()
    cluster.apply(NGINX.replace("REPLICAS", "6").replace("RULE", "minAvailable: 5"))
    cluster.settle()
    gone = cluster.drain("node01")
    assert len(gone) == 2
    assert set(cluster.settle().placements) == set(gone)
    assert set(cluster.where("nginx").values()) == {"node02", "node03"}
