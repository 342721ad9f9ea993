"""The committed manifests on a real API server with RBAC: what each account may do, and that it can do its work."""

import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.processes.kube import Kube, start_kube
from support.processes.manifests import NAMESPACES, PLAIN, SINKS, apply, config_of, objects, put, token_of
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import KubeApi, eventually

from underhost.agents.sinks.events.sink import EventSink, Regarding, Told, event
from underhost.agents.sinks.events.writer import KubernetesEvents
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.schemas.errors import Refused
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = pytest.mark.real

UUID = "7dc847e3-ffa0-55fc-9c65-18f9246b4527"
"""Of the VM that the node is."""
REFUSED = re.compile(r"\b403\b")
"""What a log says of a right that is missing; a time of day may have these digits, too."""
LOOK = {"list", "watch"}
WATCHED = {
    "namespaces": LOOK,
    "nodes": LOOK,
    "pods": LOOK,
    "replicationcontrollers": LOOK,
    "services": LOOK,
    "deployments.apps": LOOK,
    "replicasets.apps": LOOK,
    "statefulsets.apps": LOOK,
    "jobs.batch": LOOK,
    "poddisruptionbudgets.policy": LOOK,
    "virtualmachineinstancereplicasets.kubevirt.io": LOOK,
}
REPORTS = {
    f"{plural}.openreports.io": {"get", "list", "create", "patch", "delete"} for plural in ("reports", "clusterreports")
}
RIGHTS = {
    "plain/underhost-worker": {**WATCHED, "nodes": {*LOOK, "get"}, "pods": {*LOOK, "get"}},  # every sink is a dry run
    "sinks/underhost-worker": {
        **WATCHED,
        "nodes": {*LOOK, "get", "patch"},
        "pods": {*LOOK, "get", "patch"},
        "pods/binding": {"create"},
        "pods/status": {"patch"},
        "pods/eviction": {"create"},
        "events": {"get", "patch"},
        "events.events.k8s.io": {"create"},
        **REPORTS,
    },
    "underhost/underhost-watcher": WATCHED,
    "underhost/underhost-evaluator": {},
    "underhost/underhost-labeller": {"nodes": {"get", "patch"}},
    "underhost/underhost-pod-labeller": {"pods": {"get", "patch"}},
    "underhost/underhost-binder": {
        "nodes": {"get"},
        "pods": {"get"},
        "pods/binding": {"create"},
    },
    "underhost/underhost-events": {
        "nodes": {"get"},
        "pods": {"get"},
        "pods/status": {"patch"},
        "events": {"get", "patch"},
        "events.events.k8s.io": {"create"},
    },
    "underhost/underhost-reporter": REPORTS,
    "underhost/underhost-drs": {},
    "underhost/underhost-mover": {},
    "underhost/underhost-evictor": {"pods": {"get"}, "pods/eviction": {"create"}},
    "underhost/underhost-alerts": {},
}
"""All that each account may do, by namespace/name."""


@dataclass(frozen=True)
class Cluster:
    """The API server with both manifests applied; `warnings` are what it said of them."""

    kube: Kube
    api: KubeApi
    warnings: list[str]

    def kubeconfig(self, account: str) -> Path:
        """A kubeconfig with a token of the account `namespace/name`."""
        return self.kube.kubeconfig_of(token_of(self.api, account))

    @contextlib.asynccontextmanager
    async def client(self, account: str) -> AsyncIterator[KubernetesClient]:
        """Our own client, as this account."""
        async with await connect(KubernetesSettings(kubeconfig=self.kubeconfig(account))) as client:
            yield client


@pytest.fixture(scope="module")
def cluster(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that refuses every field that it does not know, and every pod that is not `restricted`."""
    with start_kube(tmp_path_factory.mktemp("access"), parts) as kube:
        warnings = [warning for path in NAMESPACES for warning in apply(kube, path)]
        yield Cluster(kube, KubeApi(kube), warnings)


# ------------------------------------------------------------------------------------------------------- the objects
def test_the_api_server_takes_every_object_without_a_warning(cluster: Cluster) -> None:
    assert cluster.warnings == []


def pods() -> list[Any]:
    """The pod of each worker, as its controller would make it."""
    found = []
    for path, namespace in NAMESPACES.items():
        for one in objects(path):
            if one["kind"] in ("Deployment", "StatefulSet"):
                name = one["metadata"]["name"]
                found.append(pytest.param(namespace, name, one["spec"]["template"], id=f"{namespace}/{name}"))
    return found


@pytest.mark.parametrize(("namespace", "name", "template"), pods())
def test_its_pod_is_let_into_a_namespace_where_all_is_restricted(
    cluster: Cluster, namespace: str, name: str, template: dict[str, Any]
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": name}}
    pod["spec"] = template["spec"]
    if namespace != "underhost":  # the volume that the StatefulSet's controller adds
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod["spec"] = {**template["spec"], "volumes": [*template["spec"]["volumes"], claim]}
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"
    assert put(cluster.kube, path, pod) == []


def test_a_pod_that_restricts_nothing_is_not_let_in(cluster: Cluster) -> None:
    container = {"name": "underhost", "image": "underhost"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {"containers": [container]}}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        put(cluster.kube, "/api/v1/namespaces/plain/pods?dryRun=All", pod)


# -------------------------------------------------------------------------------------------------------- the rights
async def rights(client: KubernetesClient, namespace: str) -> dict[str, set[str]]:
    """All that RBAC grants to who asks, in a namespace and in the whole cluster: verbs by resource."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    said = await client.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body=body)
    status = json.loads(said)["status"]
    assert not status["incomplete"]
    granted: dict[str, set[str]] = {}
    for rule in status["resourceRules"]:
        assert not rule.get("resourceNames")
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted.setdefault(f"{resource}.{group}" if group else resource, set()).update(rule["verbs"])
    return granted


ANYBODY = {
    "selfsubjectaccessreviews.authorization.k8s.io": {"create"},
    "selfsubjectrulesreviews.authorization.k8s.io": {"create"},
    "selfsubjectreviews.authentication.k8s.io": {"create"},
}
"""What Kubernetes itself grants to all who are known to it."""


def test_every_account_of_the_manifests_is_in_the_table_of_rights() -> None:
    accounts = {
        f"{namespace}/{one['metadata']['name']}"
        for path, namespace in NAMESPACES.items()
        for one in objects(path)
        if one["kind"] == "ServiceAccount"
    }
    assert accounts == set(RIGHTS)


@pytest.mark.parametrize("namespace", ["shop", "kube-system"])
@pytest.mark.parametrize("account", RIGHTS)
async def test_an_account_has_these_rights_and_no_others(cluster: Cluster, account: str, namespace: str) -> None:
    async with cluster.client(account) as client:
        assert await rights(client, namespace) == {**ANYBODY, **RIGHTS[account]}


ALLOWED, DENIED = True, False
WORKER, ACTIVE = "plain/underhost-worker", "sinks/underhost-worker"
WATCHER, EVALUATOR = "underhost/underhost-watcher", "underhost/underhost-evaluator"
POD_LABELLER = "underhost/underhost-pod-labeller"
LABELLER, BINDER, DRS = "underhost/underhost-labeller", "underhost/underhost-binder", "underhost/underhost-drs"
MOVER = "underhost/underhost-mover"
EVICTOR, ALERTS = "underhost/underhost-evictor", "underhost/underhost-alerts"
EVENTS, REPORTER = "underhost/underhost-events", "underhost/underhost-reporter"


@pytest.mark.parametrize(
    ("account", "verb", "resource", "expected"),
    [
        pytest.param(
            account, verb, resource, expected, id=f"{account.rpartition('-')[2]} {verb} {resource}: {expected}"
        )
        for account, verb, resource, expected in [
            (WORKER, "watch", "pods", ALLOWED),
            (WORKER, "patch", "nodes", DENIED),
            (WORKER, "create", "pods/binding", DENIED),
            (WORKER, "create", "pods/eviction", DENIED),
            (WORKER, "create", "events.events.k8s.io", DENIED),
            (WORKER, "list", "secrets", DENIED),
            (WATCHER, "list", "pods", ALLOWED),
            (WATCHER, "watch", "jobs.batch", ALLOWED),
            (WATCHER, "list", "poddisruptionbudgets.policy", ALLOWED),
            (WATCHER, "list", "configmaps", DENIED),
            (WATCHER, "list", "secrets", DENIED),
            (WATCHER, "patch", "nodes", DENIED),
            (WATCHER, "delete", "pods", DENIED),
            (EVALUATOR, "list", "pods", DENIED),
            (EVALUATOR, "get", "nodes", DENIED),
            (LABELLER, "patch", "nodes", ALLOWED),
            (LABELLER, "update", "nodes", DENIED),
            (LABELLER, "delete", "nodes", DENIED),
            (LABELLER, "patch", "nodes/status", DENIED),
            (LABELLER, "list", "nodes", DENIED),
            (LABELLER, "get", "pods", DENIED),
            (POD_LABELLER, "patch", "pods", ALLOWED),
            (POD_LABELLER, "update", "pods", DENIED),
            (POD_LABELLER, "patch", "pods/status", DENIED),
            (POD_LABELLER, "delete", "pods", DENIED),
            (POD_LABELLER, "list", "pods", DENIED),
            (POD_LABELLER, "patch", "nodes", DENIED),
            (WORKER, "patch", "pods", DENIED),
            (BINDER, "create", "pods/binding", ALLOWED),
            (BINDER, "patch", "pods/status", DENIED),
            (BINDER, "create", "events.events.k8s.io", DENIED),
            (EVENTS, "patch", "pods/status", ALLOWED),
            (EVENTS, "create", "events.events.k8s.io", ALLOWED),
            (EVENTS, "patch", "events", ALLOWED),
            (EVENTS, "delete", "events", DENIED),
            (EVENTS, "patch", "nodes", DENIED),
            (EVENTS, "create", "pods/binding", DENIED),
            (REPORTER, "patch", "reports.openreports.io", ALLOWED),
            (REPORTER, "delete", "clusterreports.openreports.io", ALLOWED),
            (REPORTER, "get", "pods", DENIED),
            (BINDER, "create", "pods", DENIED),
            (BINDER, "patch", "pods", DENIED),
            (BINDER, "create", "pods/eviction", DENIED),
            (BINDER, "create", "pods/exec", DENIED),
            (BINDER, "patch", "nodes", DENIED),
            (DRS, "get", "nodes", DENIED),
            (DRS, "patch", "nodes", DENIED),
            (EVICTOR, "create", "pods/eviction", ALLOWED),
            (EVICTOR, "delete", "pods", DENIED),
            (EVICTOR, "deletecollection", "pods", DENIED),
            (EVICTOR, "create", "pods/binding", DENIED),
            (EVICTOR, "patch", "poddisruptionbudgets.policy", DENIED),
            (ALERTS, "list", "pods", DENIED),
            (ALERTS, "get", "secrets", DENIED),
        ]
    ],
)
async def test_an_account_may(cluster: Cluster, account: str, verb: str, resource: str, expected: bool) -> None:
    async with cluster.client(account) as client:
        assert await _may(client, verb, resource) is expected


@pytest.mark.parametrize(
    ("account", "verb", "name", "expected"),
    [
        pytest.param(account, verb, name, expected, id=f"{account.rpartition('-')[2]} {verb} {name}: {expected}")
        for account, verb, name, expected in [
            (WORKER, "update", "underhost-default-kubernetes", ALLOWED),
            (WORKER, "update", "underhost-default-labeller", DENIED),
            (ACTIVE, "get", "underhost-default-events", ALLOWED),
            (LABELLER, "create", "", ALLOWED),
            (LABELLER, "update", "underhost-prod-a-labeller", ALLOWED),
            (LABELLER, "update", "underhost-prod-a-binder", DENIED),
            (LABELLER, "delete", "underhost-prod-a-labeller", DENIED),
            (LABELLER, "list", "", DENIED),
            (DRS, "update", "underhost-prod-a-drs", ALLOWED),
            (MOVER, "update", "underhost-prod-a-mover", ALLOWED),
            (MOVER, "update", "underhost-prod-a-evictor", DENIED),
            (EVALUATOR, "get", "underhost-prod-a-labeller", DENIED),
        ]
    ],
)
async def test_a_lease_that_an_account_may_take(
    cluster: Cluster, account: str, verb: str, name: str, expected: bool
) -> None:
    async with cluster.client(account) as client:
        place = account.partition("/")[0]
        assert await _may(client, verb, "leases.coordination.k8s.io", name, namespace=place) is expected
        assert not await _may(client, verb, "leases.coordination.k8s.io", name)


async def _may(
    client: KubernetesClient, verb: str, resource: str, object_: str = "", *, namespace: str = "shop"
) -> bool:
    name, _, group = resource.partition(".")
    plural, _, sub = name.partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": sub}
    asked["name"] = object_
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    said = await client.call("POST", path, body={**body, "spec": {"resourceAttributes": asked}})
    return bool(json.loads(said)["status"]["allowed"])


# ---------------------------------------------------------------------------------------------------------- the work
@dataclass
class Town:
    """A node, and as many pods as are asked for, made by the administrator."""

    api: KubeApi
    made: int = 0

    def pod(self) -> tuple[str, str]:
        """(name, uid) of a new pod of the namespace `default` that nobody has placed."""
        self.made += 1
        container = {"name": "db", "image": "db"}
        spec = {"containers": [container], "schedulerName": "underhost", "terminationGracePeriodSeconds": 0}
        body = {"metadata": {"name": f"db-{self.made}"}, "spec": spec}
        made = self.api.ask("POST", "/api/v1/namespaces/default/pods", body)
        return made["metadata"]["name"], made["metadata"]["uid"]


@pytest.fixture(scope="module")
def town(cluster: Cluster) -> Town:
    """The cluster with a node and a pod."""
    cluster.api.add_node("node-1", UUID)
    town = Town(cluster.api)
    town.pod()
    return town


async def list_all(client: KubernetesClient, town: Town) -> None:
    for kind in KINDS:
        if not kind.optional:
            await client.call("GET", kind.path, query=[("limit", "1")])


async def label_a_node(client: KubernetesClient, town: Town) -> None:
    writer = KubernetesApiWriter(client)
    uid, _, _ = await writer.node_labels("node-1")
    await writer.apply_node_labels("node-1", uid, {"node.cluster.x-k8s.io/esxi-host": "esx-1"})


async def label_a_pod(client: KubernetesClient, town: Town) -> None:
    name, uid = town.pod()
    writer = KubernetesApiWriter(client)
    version = (await writer.pod_labels("default", name)).version
    await writer.merge_pod_labels("default", name, uid, version, {"node.cluster.x-k8s.io/esxi-host": "esx-1"})


async def bind_a_pod(client: KubernetesClient, town: Town) -> None:
    name, uid = town.pod()
    writer = KubernetesApiWriter(client)
    assert await writer.pod_node("default", name) == (uid, "")
    await writer.node_labels("node-1")  # whether there is such a node, where the tables do not have it
    await writer.bind_pod("default", name, uid, "node-1")


async def say_why_a_pod_waits(client: KubernetesClient, town: Town) -> None:
    name, _ = town.pod()
    events = KubernetesEvents(client)
    pod = await events.pod_condition("default", name, "PodScheduled")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    await events.set_pod_condition("default", name, pod, condition)
    told = Told(Regarding("Pod", name, "default"), "Warning", "FailedScheduling", "no node", "Scheduling")
    for at in (1, 2):
        answer = await EventSink(events, "prod", enabled=True, binds=True).apply(event(told, "", {"pods": at}))
        if answer.result != "applied":
            raise Refused(answer.reason)


async def evict_a_pod(client: KubernetesClient, town: Town) -> None:
    name, uid = town.pod()
    writer = KubernetesApiWriter(client)
    assert await writer.pod_end("default", name) == (uid, False)
    await writer.request_eviction("default", name, uid)


WORK: tuple[Callable[[KubernetesClient, Town], Awaitable[None]], ...] = (
    list_all,
    label_a_node,
    label_a_pod,
    bind_a_pod,
    say_why_a_pod_waits,
    evict_a_pod,
)


@pytest.mark.parametrize(
    ("account", "can"),
    [
        pytest.param(WORKER, {"list_all"}, id="worker"),
        pytest.param(ACTIVE, {work.__name__ for work in WORK}, id="worker with every sink"),
        pytest.param(WATCHER, {"list_all"}, id="watcher"),
        pytest.param(EVALUATOR, set(), id="evaluator"),
        pytest.param(LABELLER, {"label_a_node"}, id="labeller"),
        pytest.param(POD_LABELLER, {"label_a_pod"}, id="pod-labeller"),
        pytest.param(BINDER, {"bind_a_pod"}, id="binder"),
        pytest.param(EVENTS, {"say_why_a_pod_waits"}, id="events"),
        pytest.param(REPORTER, set(), id="reporter"),
        pytest.param(DRS, set(), id="drs"),
        pytest.param(MOVER, set(), id="mover"),
        pytest.param(EVICTOR, {"evict_a_pod"}, id="evictor"),
        pytest.param(ALERTS, set(), id="alerts"),
    ],
)
async def test_an_account_can_do_its_own_work_and_nobody_elses(
    cluster: Cluster, town: Town, account: str, can: set[str]
) -> None:
    done = set()
    async with cluster.client(account) as client:
        for work in WORK:
            try:
                await work(client, town)
            except Refused as error:
                assert "(403)" in str(error)
            else:
                done.add(work.__name__)
    assert done == can


@contextlib.contextmanager
def worker(cluster: Cluster, account: str, config: Path) -> Iterator[tuple[str, Path]]:
    """`underhost run` with this account, as its pod would run it: (its address, its log). It has to end well."""
    [port] = free_ports(1)
    address, log = f"127.0.0.1:{port}", config.with_name("worker.log")
    command = [UNDERHOST, "run", f"--config={config}", f"--listen={address}"]
    command.append(f"--kubeconfig={cluster.kubeconfig(account)}")
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=config.parent)
    try:
        yield address, log
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def a_token(folder: Path) -> str:
    """The file that its Secret would be mounted as."""
    (folder / "token").write_text("token-of-the-page-of-the-test")
    return str(folder / "token")


def test_the_worker_of_the_manifests_gets_ready_with_its_account(cluster: Cluster, town: Town, tmp_path: Path) -> None:
    config = tmp_path / "underhost.yaml"
    parts = {"kafka": {"embedded": str(tmp_path / "underhost.db")}, "lease": {"namespace": "plain"}}
    config.write_text(json.dumps({**config_of(PLAIN), **parts, "web": {"tokenFile": a_token(tmp_path)}}))
    with worker(cluster, WORKER, config) as (address, log):
        eventually("the worker is ready", lambda: _answers(f"http://{address}/readyz"), within=120)
    assert REFUSED.search(log.read_text()) is None


def test_with_its_sinks_on_it_labels_tells_and_binds_with_its_account(
    cluster: Cluster, town: Town, tmp_path: Path
) -> None:
    api, name = cluster.api, town.pod()[0]
    inventory, config = tmp_path / "inventory.json", tmp_path / "underhost.yaml"
    vm = {"name": "node-1", "id": "vm-1", "uuid": UUID, "host": "host-1"}
    hosts = [{"name": "esx-7", "id": "host-1", "cluster": "C0"}]
    inventory.write_text(json.dumps({"kind": "Inventory", "hosts": hosts, "vms": [vm]}))
    parts = {
        "kafka": {"embedded": str(tmp_path / "underhost.db")},
        "vsphere": {"inventory": str(inventory)},
        "lease": {"namespace": "sinks"},
    }
    config.write_text(json.dumps({**config_of(SINKS), **parts, "web": {"tokenFile": a_token(tmp_path)}}))
    with worker(cluster, ACTIVE, config) as (_, log):
        eventually("it has labelled the node", lambda: api.node_labels() == {"node-1": "esx-7"}, within=120)
        # The API server itself taints a node that is not ready, so that every pod waits.
        waits = eventually("it has told why the pod waits", lambda: _told(api, name))
        assert waits == ("FailedScheduling", "Unschedulable")
        api.ask("PATCH", "/api/v1/nodes/node-1", {"spec": {"taints": None}})
        eventually("it has bound the pod", lambda: api.bound().get(name) == "node-1")
    assert REFUSED.search(log.read_text()) is None


def _told(api: KubeApi, pod: str) -> tuple[str, str] | None:
    """(reason of its Event, reason of its condition), once there are both."""
    conditions = api.ask("GET", f"/api/v1/namespaces/default/pods/{pod}")["status"].get("conditions", [])
    events = api.ask("GET", "/api/v1/namespaces/default/events")["items"]
    reasons = [one["reason"] for one in conditions if one["type"] == "PodScheduled"]
    said = [one["reason"] for one in events if one["involvedObject"]["name"] == pod]
    return ("FailedScheduling", reasons[0]) if "FailedScheduling" in said and reasons else None


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
