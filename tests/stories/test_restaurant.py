"""The article of the "social restaurant": redis-cache and web-server, node selectors, preferences and taints."""

import pytest
from stories.cluster import ROOM, Cluster
from support.build import a_node, nodes

ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
AFFINITY = "node(s) didn't match pod affinity rules"

REDIS_CACHE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: redis-cache}
spec:
  selector: {matchLabels: {apptype: redis-cache}}
  replicas: 3
  template:
    metadata: {labels: {apptype: redis-cache}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchExpressions: [{key: apptype, operator: In, values: [redis-cache]}]}
            topologyKey: "kubernetes.io/hostname"
      containers: [{name: redis-server, image: "redis:3.2-alpine"}]
"""
WEB_SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-server}
spec:
  selector: {matchLabels: {apptype: web-server}}
  replicas: 3
  template:
    metadata: {labels: {apptype: web-server}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchExpressions: [{key: apptype, operator: In, values: [web-server]}]}
            topologyKey: "kubernetes.io/hostname"
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchExpressions: [{key: apptype, operator: In, values: [redis-cache]}]}
            topologyKey: "kubernetes.io/hostname"
      containers: [{name: web-app, image: "nginx:1.12-alpine"}]
"""


def three_workers(**size: str) -> Cluster:
    """worker-2 is the blue table."""
    one, two, three = (node.has(**{**ROOM, **size}) for node in nodes("worker-1", "worker-2", "worker-3"))
    return Cluster(one, two.labels(color="blue"), three)


def a_pod(name: str, spec: str) -> str:
    return f"{{kind: Pod, metadata: {{name: {name}}}, spec: {{{spec}}}}}"


def test_one_copy_of_each_runs_on_one_node() -> None:
    cluster = three_workers()
    cluster.apply(REDIS_CACHE)
    cluster.apply(WEB_SERVER)
    cluster.settle()
    workers = {"worker-1", "worker-2", "worker-3"}
    assert set(cluster.where("redis-cache").values()) == workers
    assert set(cluster.where("web-server").values()) == workers


def test_a_web_server_fits_nowhere_before_there_is_a_redis_cache() -> None:
    cluster = three_workers()
    cluster.apply(WEB_SERVER)
    assert cluster.settle().failed == {f"default/web-server-{i}": {AFFINITY: 3} for i in range(3)}


def test_a_fourth_redis_cache_waits() -> None:
    cluster = three_workers()
    cluster.apply(REDIS_CACHE.replace("replicas: 3", "replicas: 4"))
    placed = cluster.settle()
    assert placed.placements["default/redis-cache-3"] is None
    assert placed.failed == {"default/redis-cache-3": {ANTI_AFFINITY: 3}}


def test_the_pod_that_asks_for_half_a_cpu_does_not_fit_beside_a_busy_one() -> None:
    cluster = three_workers(cpu="1", memory="1Gi")
    busy = "nodeName: worker-1, containers: [{name: c, resources: {requests: {cpu: 600m}}}]"
    cluster.apply(a_pod("busy", busy))
    cluster.apply(a_pod("nginx", "containers: [{name: nginx, resources: {requests: {memory: 128Mi, cpu: 500m}}}]"))
    verdicts = cluster.explain("nginx")
    assert {name: verdict.failing for name, verdict in verdicts.items()} == {
        "worker-1": {"NodeResourcesFit": ["Insufficient cpu"]},
        "worker-2": {},
        "worker-3": {},
    }


def test_the_blue_table_is_the_only_one_for_who_asks_for_blue() -> None:
    cluster = three_workers()
    cluster.apply(a_pod("nginx-blue", "containers: [{name: nginx}], nodeSelector: {color: blue}"))
    assert cluster.feasible("nginx-blue") == ["worker-2"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, {"worker-1": 0, "worker-2": 0, "worker-3": 0}, id="no table has it, any will do"),
        pytest.param({"view": "ocean"}, {"worker-1": 0, "worker-2": 0, "worker-3": 100}, id="one table has it"),
    ],
)
def test_the_ocean_view_is_a_preference(labels: dict[str, str], expected: dict[str, int]) -> None:
    cluster = three_workers()
    cluster.nodes["worker-3"]["metadata"]["labels"] |= labels
    term = "{weight: 1, preference: {matchExpressions: [{key: view, operator: In, values: [ocean]}]}}"
    preferred = f"preferredDuringSchedulingIgnoredDuringExecution: [{term}]"
    cluster.apply(a_pod("nginx-oceanview", f"containers: [{{name: c}}], affinity: {{nodeAffinity: {{{preferred}}}}}"))
    verdicts = cluster.explain("nginx-oceanview")
    assert {name: (verdict.scores or {}).get("NodeAffinity", 0) for name, verdict in verdicts.items()} == expected


@pytest.mark.parametrize(
    ("effect", "tolerations", "placed"),
    [
        pytest.param("NoSchedule", [], False, id="nobody sits at the tainted table"),
        pytest.param("NoExecute", ["NoExecute"], True, id="who tolerates peanuts does"),
        pytest.param("NoSchedule", ["NoExecute"], False, id="the article's toleration is not for its NoSchedule taint"),
        pytest.param("NoSchedule", ["NoSchedule"], True, id="with the taint's own effect it is"),
    ],
)
def test_only_who_tolerates_the_taint_gets_the_table(effect: str, tolerations: list[str], placed: bool) -> None:
    cluster = Cluster(a_node("peanut").has(**ROOM).tainted(f"mytaintkey=mytaintvalue:{effect}"))
    listed = ", ".join(
        f"{{key: mytaintkey, operator: Equal, value: mytaintvalue, effect: {tolerated}}}" for tolerated in tolerations
    )
    cluster.apply(a_pod("web-server", f"containers: [{{name: web-app}}], tolerations: [{listed}]"))
    assert cluster.settle().placements == {"default/web-server": "peanut" if placed else None}
