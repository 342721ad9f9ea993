"""KubeVirt's article "Advanced scheduling using affinity and anti-affinity rules": the three-tier application.

A stretched cluster of seven nodes in the zones scu, bcn and sab; in each zone one node is labelled performance=high.
The manifests are the article's, as far as placement reads them.
"""

import pytest
from stories.cluster import ROOM, Cluster
from support.build import a_node

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
AFFINITY = "node(s) didn't match pod affinity rules"
NODE_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED, CORDONED = "node(s) had untolerated taint(s)", "node(s) were unschedulable"
HIGH, REGULAR = {"kni-worker2", "kni-worker4", "kni-worker6"}, {"kni-worker", "kni-worker3", "kni-worker5"}

DATABASE_WITH_NODE_SELECTOR = """
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachineInstanceReplicaSet
metadata: {name: mssql2016}
spec:
  replicas: 3
  selector: {matchLabels: {kubevirt.io/domain: mssql2016}}
  template:
    metadata: {name: mssql2016, labels: {kubevirt.io/domain: mssql2016}}
    spec:
      nodeSelector: {performance: high}
      domain: {resources: {requests: {memory: 16Gi}}}
"""
DATABASE = """
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachineInstanceReplicaSet
metadata: {name: mssql2016}
spec:
  replicas: 3
  selector: {matchLabels: {kubevirt.io/domain: mssql2016}}
  template:
    metadata: {name: mssql2016, labels: {kubevirt.io/domain: mssql2016}}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions: [{key: performance, operator: In, values: [high]}]
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {matchExpressions: [{key: kubevirt.io/domain, operator: In, values: [mssql2016]}]}
              topologyKey: topology.kubernetes.io/zone
      domain: {resources: {requests: {memory: 16Gi}}}
"""
CACHE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: varnish-cache}
spec:
  selector: {matchLabels: {app: cache}}
  replicas: 3
  template:
    metadata: {labels: {app: cache}}
    spec:
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 10
              preference: {matchExpressions: [{key: performance, operator: NotIn, values: [high]}]}
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {matchExpressions: [{key: app, operator: In, values: [cache]}]}
              topologyKey: topology.kubernetes.io/zone
      containers: [{name: cache, image: "quay.io/spaces/kube-httpcache:stable"}]
"""
APPLIANCE = """
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachineInstanceReplicaSet
metadata: {name: blackbox}
spec:
  replicas: 3
  selector: {matchLabels: {kubevirt.io/domain: blackbox}}
  template:
    metadata: {name: blackbox, labels: {kubevirt.io/domain: blackbox}}
    spec:
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {matchExpressions: [{key: app, operator: In, values: [cache]}]}
              topologyKey: TOPOLOGY_KEY
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {matchExpressions: [{key: kubevirt.io/domain, operator: In, values: [blackbox]}]}
              topologyKey: topology.kubernetes.io/zone
      domain: {resources: {requests: {memory: 2Gi}}}
"""
VIRT_API = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: virt-api}
spec:
  replicas: 2
  selector: {matchLabels: {kubevirt.io: virt-api}}
  template:
    metadata: {labels: {kubevirt.io: virt-api}}
    spec:
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - podAffinityTerm:
                labelSelector: {matchExpressions: [{key: kubevirt.io, operator: In, values: [virt-api]}]}
                topologyKey: kubernetes.io/hostname
              weight: 1
      containers: [{name: virt-api}]
"""
VIRT_HANDLER = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: virt-handler}
spec:
  selector: {matchLabels: {kubevirt.io: virt-handler}}
  template:
    metadata: {labels: {kubevirt.io: virt-handler}}
    spec: {containers: [{name: virt-handler}]}
"""


@pytest.fixture
def cluster() -> Cluster:
    """The cluster as `kubectl get nodes --show-labels` prints it."""
    nodes = [a_node("kni-control-plane").has(**ROOM).tainted("node-role.kubernetes.io/master:NoSchedule")]
    for number, zone in enumerate(("scu", "scu", "bcn", "bcn", "sab", "sab"), 1):
        high = number % 2 == 0
        labels = {REGION: "iberia", ZONE: zone} | ({"performance": "high"} if high else {})
        size = {"cpu": "16", "memory": "64Gi"} if high else ROOM
        nodes.append(a_node(f"kni-worker{number if number > 1 else ''}").has(**size).labels(labels))
    return Cluster(*nodes)


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """The whole application, as it runs at "Verify the resiliency of our customapp"."""
    for manifest in (DATABASE, CACHE, APPLIANCE.replace("TOPOLOGY_KEY", "kubernetes.io/hostname")):
        cluster.apply(manifest)
        cluster.settle()
    return cluster


def test_the_databases_run_on_the_high_performing_nodes(cluster: Cluster) -> None:
    cluster.apply(DATABASE_WITH_NODE_SELECTOR)
    cluster.settle()
    assert set(cluster.where("virt-launcher-mssql").values()) == HIGH


def test_with_a_node_selector_only_a_drain_puts_two_databases_on_one_server(cluster: Cluster) -> None:
    cluster.apply(DATABASE_WITH_NODE_SELECTOR)
    cluster.settle()
    assert len(cluster.drain("kni-worker2")) == 1
    cluster.settle()
    nodes = sorted(cluster.where("virt-launcher-mssql").values())
    assert len(nodes) == 3
    assert set(nodes) == {"kni-worker4", "kni-worker6"}


def test_with_affinity_rules_the_deleted_instance_returns_to_the_free_zone(cluster: Cluster) -> None:
    cluster.apply(DATABASE_WITH_NODE_SELECTOR)
    cluster.settle()
    cluster.drain("kni-worker2")
    cluster.settle()
    cluster.uncordon("kni-worker2")
    cluster.apply(DATABASE)
    nodes = list(cluster.where("virt-launcher-mssql").values())
    doubled = max(set(nodes), key=nodes.count)
    cluster.delete(next(pod for pod, node in cluster.where("virt-launcher-mssql").items() if node == doubled))
    cluster.settle()
    assert set(cluster.where("virt-launcher-mssql").values()) == HIGH


def test_each_cache_runs_in_a_zone_of_its_own_beside_the_databases_servers(cluster: Cluster) -> None:
    cluster.apply(DATABASE)
    cluster.settle()
    cluster.apply(CACHE)
    verdicts = cluster.explain("varnish-cache-0")
    scores = {name: verdict.scores["NodeAffinity"] for name, verdict in verdicts.items() if verdict.scores}
    assert scores == {**dict.fromkeys(REGULAR, 100), **dict.fromkeys(HIGH, 0)}
    cluster.settle()
    assert set(cluster.where("varnish-cache").values()) == REGULAR


def test_the_appliances_literal_topology_key_fits_nowhere_for_no_node_carries_it(cluster: Cluster) -> None:
    for manifest in (DATABASE, CACHE):
        cluster.apply(manifest)
        cluster.settle()
    cluster.apply(APPLIANCE.replace("TOPOLOGY_KEY", "topology.kubernetes.io/hostname"))
    placed = cluster.settle()
    assert placed.placements == {f"default/virt-launcher-blackbox-{i}": None for i in range(3)}
    assert placed.failed["default/virt-launcher-blackbox-0"] == {TAINTED: 1, AFFINITY: 6}


def test_each_appliance_runs_beside_a_cache(running: Cluster) -> None:
    assert set(running.where("virt-launcher-blackbox").values()) == REGULAR
    assert set(running.where("varnish-cache").values()) == REGULAR
    assert set(running.where("virt-launcher-mssql").values()) == HIGH


def test_a_drained_regular_nodes_pods_go_to_the_high_performing_one_of_its_zone(
    running: Cluster,
) -> None:
    gone = sorted(running.drain("kni-worker"))
    assert [pod.rpartition("-")[0] for pod in gone] == ["default/varnish-cache", "default/virt-launcher-blackbox"]
    placed = running.settle()
    assert set(placed.placements.values()) == {"kni-worker2"}
    assert set(placed.placements) == set(gone)


def test_uncordoning_brings_nothing_back_but_deleting_both_pods_does(running: Cluster) -> None:
    gone = running.drain("kni-worker")
    running.settle()
    running.uncordon("kni-worker")
    assert running.settle().placements == {}
    for pod in gone:
        running.delete(pod.removeprefix("default/"))
    assert set(running.settle().placements.values()) == {"kni-worker"}


def test_a_database_cannot_leave_the_only_high_performing_node_of_its_zone(running: Cluster) -> None:
    gone = running.drain("kni-worker2")
    assert [pod.rpartition("-")[0] for pod in gone] == ["default/virt-launcher-mssql2016"]
    placed = running.settle()
    assert placed.placements == {gone[0]: None}
    # by the first rule that refuses: the cordon; the control plane's taint; the regular nodes; the others' zones
    assert placed.failed[gone[0]] == {CORDONED: 1, TAINTED: 1, NODE_AFFINITY: 3, ANTI_AFFINITY: 2}


def test_two_replicas_of_virt_api_avoid_one_node_if_possible(cluster: Cluster) -> None:
    cluster.apply(VIRT_API)
    cluster.settle()
    assert len(set(cluster.where("virt-api").values())) == 2
    for name in sorted(cluster.nodes)[2:]:
        cluster.cordon(name)
    cluster.pods.clear()
    cluster.settle()
    assert cluster.where("virt-api") == {"virt-api-0": "kni-worker", "virt-api-1": "kni-worker"}


def test_the_daemonset_desires_six_pods_each_pinned_to_its_node(cluster: Cluster) -> None:
    cluster.apply(VIRT_HANDLER)
    placed = cluster.settle()
    assert placed.placements == {f"default/virt-handler-{node}": node for node in sorted(HIGH | REGULAR)}
    cluster.cordon("kni-worker2")
    cluster.delete("virt-handler-kni-worker2")
    assert cluster.settle().placements == {"default/virt-handler-kni-worker2": "kni-worker2"}


def violations(cluster: Cluster) -> list[tuple[str, str | None, list[str]]]:
    """(rule, pod, peers) of what is violated now."""
    return [(one.rule, one.pod, one.peers) for one in cluster.check().findings if one.severity == "violation"]


def test_the_running_application_violates_nothing(running: Cluster) -> None:
    assert violations(running) == []


def test_a_label_that_is_removed_leaves_the_database_where_it_may_not_be(running: Cluster) -> None:
    database = next(pod for pod, node in running.where("virt-launcher-mssql").items() if node == "kni-worker2")
    del running.nodes["kni-worker2"]["metadata"]["labels"]["performance"]
    assert violations(running) == [("NodeAffinity", f"default/{database}", [])]


def test_a_node_that_changes_its_zone_brings_three_pairs_together(running: Cluster) -> None:
    in_sab = [f"default/{pod}" for pod, node in running.where().items() if node in ("kni-worker5", "kni-worker6")]
    for node in ("kni-worker5", "kni-worker6"):
        running.nodes[node]["metadata"]["labels"][ZONE] = "bcn"
    in_bcn = [f"default/{pod}" for pod, node in running.where().items() if node in ("kni-worker3", "kni-worker4")]
    pairs = [
        sorted(pod for pod in (*in_sab, *in_bcn) if pod.startswith(f"default/{prefix}"))
        for prefix in ("varnish-cache", "virt-launcher-blackbox", "virt-launcher-mssql2016")
    ]
    assert sorted(violations(running)) == [("InterPodAffinity", first, [second]) for first, second in pairs]


def test_an_appliance_whose_cache_has_gone_is_found(running: Cluster) -> None:
    cache = next(pod for pod, node in running.where("varnish-cache").items() if node == "kni-worker3")
    appliance = next(pod for pod, node in running.where("virt-launcher-blackbox").items() if node == "kni-worker3")
    running.delete(cache)
    assert violations(running) == [("InterPodAffinity", f"default/{appliance}", [])]
