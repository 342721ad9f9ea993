"""The Kubernetes watcher and the writers of the sinks against a real kube-apiserver."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.fakes.topics import FakeTopics
from support.processes.crowd import create as create_many
from support.processes.kube import ADMIN_TOKEN, NOBODY_TOKEN, USER_TOKENS, Kube, start_kube
from support.processes.ports import free_ports
from support.processes.relay import Outage
from support.watching import following
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.sinks.bindings import BindSink
from underhost.agents.sinks.events.sink import EventSink, PodCondition, Regarding, Told, event
from underhost.agents.sinks.events.writer import KubernetesEvents
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.labels.sink import LabelSink
from underhost.agents.sinks.orders import order
from underhost.schemas.errors import BackendError, Conflict, Gone, Refused, Unreachable
from underhost.schemas.records import Action
from underhost.schemas.topics import BUDGETS, NAMESPACES, NODES, PODS, SERVICES, WORKLOADS
from underhost.streams.kubernetes import dump
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.kubernetes.watcher import KubernetesSource
from underhost.streams.settings.clusters import KubernetesSettings
from underhost.streams.settings.labels import HostLabelSettings
from underhost.streams.timing import Timing

pytestmark = pytest.mark.real
KEY = "node.cluster.x-k8s.io/esxi-host"
RACKS = HostLabelSettings.model_validate({"derived": [{"key": "rack", "from": "folder"}]})


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[KubernetesClient]:
    async with await connect(KubernetesSettings(kubeconfig=kube.kubeconfig)) as connected:
        yield connected


@pytest.fixture
async def namespace(client: KubernetesClient) -> str:
    """A namespace of the test's own."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    await create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


async def create(client: KubernetesClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    created: dict[str, Any] = json.loads(await client.call("POST", path, query=[("fieldManager", "test")], body=body))
    return created


def a_pod(name: str, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.local/app:1"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


@asynccontextmanager
async def watching(kube: Kube, topics: FakeTopics, timing: Timing | None = None) -> AsyncIterator[KubernetesSource]:
    settings = KubernetesSettings(kubeconfig=kube.kubeconfig)
    source = KubernetesSource("prod", settings, topics, topics, timing=timing)
    async with following(source):
        yield source


async def test_a_long_list_is_one_answer_no_older_than_its_first_page(
    kube: Kube, client: KubernetesClient, namespace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [f"p{number:04}" for number in range(1050)]
    await asyncio.to_thread(create_many, kube, f"/api/v1/namespaces/{namespace}/pods", map(a_pod, names))
    topics = FakeTopics()
    async with watching(kube, topics):
        assert {f"prod/pod/{namespace}/{name}" for name in names} <= set(topics.keys(PODS))
        late = await create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("late"))
        await topics.until(lambda t: f"prod/pod/{namespace}/late" in t.keys(PODS))
    assert topics.records[-1].event_id.endswith(f"/{late['metadata']['resourceVersion']}")
    assert "listed page by page" not in "".join(capfd.readouterr())


async def test_every_kind_is_listed_and_followed(kube: Kube, client: KubernetesClient, namespace: str) -> None:
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": a_pod("")["spec"]}
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    bodies: dict[str, dict[str, Any]] = {
        "/api/v1/namespaces/{}/pods": a_pod("web-0"),
        "/api/v1/namespaces/{}/services": {
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        },
        "/api/v1/namespaces/{}/replicationcontrollers": {
            "metadata": {"name": "rc"},
            "spec": {"replicas": 1, "selector": {"app": "web"}, "template": template},
        },
        "/apis/apps/v1/namespaces/{}/deployments": {
            "metadata": {"name": "dep"},
            "spec": {"replicas": 2, "selector": selector, "template": template},
        },
        "/apis/apps/v1/namespaces/{}/replicasets": {
            "metadata": {"name": "rs"},
            "spec": {"replicas": 3, "selector": selector, "template": template},
        },
        "/apis/apps/v1/namespaces/{}/statefulsets": {
            "metadata": {"name": "sts"},
            "spec": {"replicas": 4, "selector": selector, "serviceName": "web", "template": template},
        },
        "/apis/batch/v1/namespaces/{}/jobs": {
            "metadata": {"name": "job"},
            "spec": {"parallelism": 5, "completions": 5, "template": once},
        },
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets": {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": selector},
        },
    }
    listed, followed = FakeTopics(), FakeTopics()

    def of_this_test(topics: FakeTopics) -> dict[str, dict[str, Any]]:
        records = {
            key: json.loads(value)
            for topic in (NAMESPACES, PODS, SERVICES, WORKLOADS, BUDGETS)
            for key, value in topics.live.get(topic.name, {}).items()
            if namespace in key
        }
        return {key.replace(namespace, "NS"): record for key, record in records.items()}

    async with watching(kube, followed):
        for path, body in bodies.items():
            await create(client, path.format(namespace), body)
        await followed.until(lambda t: len(of_this_test(t)) == 9)
    async with watching(kube, listed):
        pass
    records = of_this_test(followed)
    assert of_this_test(listed) == records
    assert {key: record.get("spec", {}).get("replicas") for key, record in records.items()} == {
        "prod/namespace//NS": None,
        "prod/pod/NS/web-0": None,
        "prod/service/NS/web": None,
        "prod/replicationcontroller/NS/rc": 1,
        "prod/deployment/NS/dep": 2,
        "prod/replicaset/NS/rs": 3,
        "prod/statefulset/NS/sts": 4,
        "prod/job/NS/job": None,
        "prod/poddisruptionbudget/NS/web": None,
    }
    assert records["prod/job/NS/job"]["kind"] == "Job"
    assert records["prod/job/NS/job"]["spec"]["parallelism"] == 5
    assert records["prod/replicaset/NS/rs"]["apiVersion"] == "apps/v1"
    assert records["prod/poddisruptionbudget/NS/web"]["spec"] == {
        "minAvailable": 1,
        "selector": {"matchLabels": {"app": "web"}},
    }


async def test_heartbeats_are_not_published_and_changes_are(kube: Kube, client: KubernetesClient) -> None:
    await create(client, "/api/v1/nodes", {"metadata": {"name": "beating"}})
    topics = FakeTopics()
    async with watching(kube, topics):
        published = len(topics.records)
        for second in range(5):
            condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:0{second}Z"}
            await client.call(
                "PATCH",
                "/api/v1/nodes/beating/status",
                body={"status": {"conditions": [condition]}},
                content_type="application/strategic-merge-patch+json",
            )
        await client.call(
            "PATCH",
            "/api/v1/nodes/beating",
            body={"spec": {"unschedulable": True}},
            content_type="application/merge-patch+json",
        )
        await topics.until(lambda t: b'"unschedulable":true' in t.live[NODES.name]["prod/node//beating"])
        assert [record.key for record in topics.records[published:]] == ["prod/node//beating"] * 2
    await client.call("DELETE", "/api/v1/nodes/beating")


async def test_what_vanishes_while_the_watcher_is_down_is_tombstoned(
    kube: Kube, client: KubernetesClient, namespace: str
) -> None:
    for number in range(6):
        await create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod(f"web-{number}"))
    topics = FakeTopics()
    async with watching(kube, topics):
        published = len(topics.records)
    for number in range(2):
        await client.call(
            "DELETE", f"/api/v1/namespaces/{namespace}/pods/web-{number}", query=[("gracePeriodSeconds", "0")]
        )
    async with watching(kube, topics):
        gone = [record.key for record in topics.records[published:] if record.value is None]
    assert gone == [f"prod/pod/{namespace}/web-0", f"prod/pod/{namespace}/web-1"]


def port_of(kube: Kube) -> int:
    return int(kube.server.rpartition(":")[2])


@asynccontextmanager
async def behind(kube: Kube, outage: Outage) -> AsyncIterator[Kube]:
    """The same server, through a relay whose connections can be broken."""
    async with outage.relaying() as port:
        path = kube.kubeconfig_of(ADMIN_TOKEN, server=f"https://127.0.0.1:{port}")
        yield replace(kube, kubeconfig=path)


async def compact(kube: Kube, client: KubernetesClient) -> None:
    """Let etcd forget every version before now, as it does every five minutes in a real cluster."""
    now = json.loads(await client.call("GET", "/api/v1/namespaces"))["metadata"]["resourceVersion"]
    async with aiohttp.ClientSession() as session:
        body = {"revision": now, "physical": True}
        async with session.post(f"{kube.etcd}/v3/kv/compaction", json=body) as response:
            assert response.status == 200, await response.text()


async def test_a_position_compacted_by_etcd_leads_to_a_new_list_that_finds_every_delete(
    parts: Path, tmp_path: Path
) -> None:
    # Without the watch cache a compaction is seen at once; with it only after many more changes.
    with start_kube(tmp_path / "kube", parts, "--watch-cache=false") as kube:
        path, topics, outage = "/api/v1/namespaces/default/pods", FakeTopics(), Outage(port_of(kube))
        async with (
            await connect(KubernetesSettings(kubeconfig=kube.kubeconfig)) as client,
            behind(kube, outage) as relayed,
            watching(relayed, topics) as source,
        ):
            for number in range(150):
                await create(client, path, a_pod(f"p{number:03}"))
            await topics.until(lambda t: len(t.keys(PODS)) == 150)
            outage.cut()
            for number in range(100):
                await client.call("DELETE", f"{path}/p{number:03}", query=[("gracePeriodSeconds", "0")])
            await create(client, path, a_pod("late"))
            await compact(kube, client)
            outage.mend()
            survivors = [f"prod/pod/default/p{number:03}" for number in range(100, 150)]
            await topics.until(lambda t: t.keys(PODS) == ["prod/pod/default/late", *survivors])
            assert source.relists["pods"] == 1
    gone = [record.key for record in topics.records if record.value is None]
    assert gone == [f"prod/pod/default/p{number:03}" for number in range(100)]


async def test_dropped_connections_lose_no_change(kube: Kube, client: KubernetesClient, namespace: str) -> None:
    topics, outage, path = FakeTopics(), Outage(port_of(kube)), f"/api/v1/namespaces/{namespace}/pods"
    async with behind(kube, outage) as relayed, watching(relayed, topics) as source:
        for number in range(100):
            await create(client, path, a_pod(f"p{number:03}"))
            outage.drop()
            if number % 4 == 3:
                await client.call("DELETE", f"{path}/p{number:03}", query=[("gracePeriodSeconds", "0")])
        expected = [f"prod/pod/{namespace}/p{number:03}" for number in range(100) if number % 4 != 3]
        await topics.until(lambda t: [key for key in t.keys(PODS) if namespace in key] == expected)
        assert source.relists["pods"] == 0
    assert outage.connections > 20


async def test_a_stream_that_falls_silent_is_replaced(kube: Kube, client: KubernetesClient, namespace: str) -> None:
    topics, outage, path = FakeTopics(), Outage(port_of(kube)), f"/api/v1/namespaces/{namespace}/pods"
    async with behind(kube, outage) as relayed, watching(relayed, topics, Timing(inactivity=2.0)) as source:
        await create(client, path, a_pod("before"))
        await topics.until(lambda t: f"prod/pod/{namespace}/before" in t.keys(PODS))
        outage.freeze()
        await create(client, path, a_pod("unheard"))
        await asyncio.wait_for(until_new_connection(outage), 20)
        outage.mend()
        await topics.until(lambda t: f"prod/pod/{namespace}/unheard" in t.keys(PODS))
        assert source.relists["pods"] == 0


async def until_new_connection(outage: Outage) -> None:
    before = outage.connections
    while outage.connections == before:  # noqa: ASYNC110 (the relay tells of nothing)
        await asyncio.sleep(0.05)


async def test_a_server_that_crashes_is_followed_again_when_it_is_back(
    kube: Kube, client: KubernetesClient, namespace: str
) -> None:
    topics, path = FakeTopics(), f"/api/v1/namespaces/{namespace}/pods"
    await create(client, path, a_pod("old"))
    async with watching(kube, topics):
        kube.kill()
        await asyncio.to_thread(kube.restart)
        await create(client, path, a_pod("new"))
        await client.call("DELETE", f"{path}/old", query=[("gracePeriodSeconds", "0")])
        await topics.until(lambda t: [key for key in t.keys(PODS) if namespace in key] == [f"prod/pod/{namespace}/new"])


async def test_long_lists_come_in_pages_and_complete(kube: Kube, client: KubernetesClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for begin in range(0, 1200, 40):
        await asyncio.gather(*(create(client, path, a_pod(f"p{number:04}")) for number in range(begin, begin + 40)))
    topics = FakeTopics()
    async with watching(kube, topics):
        expected = [f"prod/pod/{namespace}/p{number:04}" for number in range(1200)]
        assert [key for key in topics.keys(PODS) if namespace in key] == expected


@pytest.mark.parametrize(
    ("make", "expected", "reason"),
    [
        pytest.param(lambda k: k.kubeconfig_of(NOBODY_TOKEN), Refused, 'User "nobody" cannot list', id="no rights"),
        pytest.param(lambda k: k.kubeconfig_of("wrong"), Refused, "Unauthorized (401)", id="a wrong token"),
        pytest.param(
            lambda k: k.kubeconfig_of("x", ca=Path("/etc/ssl/certs/ca-certificates.crt")),
            Refused,
            "its certificate is not trusted: self-signed certificate",
            id="another CA",
        ),
        pytest.param(
            lambda k: k.kubeconfig_of("x", server=k.server.replace("127.0.0.1", "localhost.localdomain")),
            Unreachable,
            "localhost.localdomain",
            id="an unknown host",
        ),
        pytest.param(
            lambda k: k.kubeconfig_of("x", server=f"https://127.0.0.1:{free_ports(1)[0]}"),
            Unreachable,
            "Connect call failed",
            id="a closed port",
        ),
        pytest.param(
            lambda k: k.kubeconfig_of("x", server=k.server.replace("https", "http")),
            Refused,
            "Client sent an HTTP request to an HTTPS server. (400)",
            id="http for https",
        ),
    ],
)
async def test_a_start_that_cannot_succeed_is_one_line(
    make: Callable[[Kube], Path], expected: type[BackendError], reason: str, kube: Kube
) -> None:
    topics = FakeTopics()
    source = KubernetesSource("prod", KubernetesSettings(kubeconfig=make(kube)), topics, topics)
    with pytest.raises(expected) as caught:
        await asyncio.wait_for(source.run(), 15)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert topics.records == []


@pytest.fixture
async def node(client: KubernetesClient, namespace: str) -> AsyncIterator[tuple[str, str]]:
    """A node of the test's own: (name, uid)."""
    created = await create(client, "/api/v1/nodes", {"metadata": {"name": namespace, "labels": {"zone": "a"}}})
    yield namespace, created["metadata"]["uid"]
    await client.call("DELETE", f"/api/v1/nodes/{namespace}")


def label(node: tuple[str, str], **labels: str | None) -> Action:
    return order("label", f"node/{node[0]}", {"uid": node[1], "labels": labels}, "", {})


async def labels_of(client: KubernetesClient, name: str) -> dict[str, str]:
    labels: dict[str, str] = json.loads(await client.call("GET", f"/api/v1/nodes/{name}"))["metadata"]["labels"]
    return labels


async def set_by(client: KubernetesClient, manager: str, node: str, **labels: str) -> None:
    await client.call(
        "PATCH",
        f"/api/v1/nodes/{node}",
        query=[("fieldManager", manager)],
        body={"metadata": {"labels": labels}},
        content_type="application/merge-patch+json",
    )


async def test_labels_are_applied_owned_kept_and_removed(client: KubernetesClient, node: tuple[str, str]) -> None:
    writer = KubernetesApiWriter(client)
    sink = LabelSink(writer, RACKS, enabled=True)
    results = [(await sink.apply(label(node, **{KEY: "esx-1", "rack": "r17"}))).result for _ in range(5)]
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    uid, labels, managers = await writer.node_labels(node[0])
    assert uid == node[1]
    assert labels == {"zone": "a", KEY: "esx-1", "rack": "r17"}
    assert managers == {KEY: "underhost", "rack": "underhost", "zone": "test"}
    assert (await sink.apply(label(node, **{KEY: "esx-2"}))).result == "applied"
    assert await labels_of(client, node[0]) == {"zone": "a", KEY: "esx-2", "rack": "r17"}
    assert (await sink.apply(label(node, rack=None))).result == "applied"
    assert await labels_of(client, node[0]) == {"zone": "a", KEY: "esx-2"}


async def test_another_controllers_label_is_refused_and_a_persons_is_repaired(
    client: KubernetesClient, node: tuple[str, str]
) -> None:
    sink = LabelSink(KubernetesApiWriter(client), HostLabelSettings(), enabled=True)
    await set_by(client, "kubectl-label", node[0], **{KEY: "mine"})
    assert (await sink.apply(label(node, **{KEY: "esx-1"}))).result == "applied"
    await set_by(client, "kubectl-label", node[0], **{KEY: "mine again"[:4]})
    assert (await sink.apply(label(node, **{KEY: "esx-1"}))).result == "applied"
    await set_by(client, "capi-machine", node[0], **{KEY: "esx-9"})
    outcome = await sink.apply(label(node, **{KEY: "esx-1"}))
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to capi-machine")
    assert (await labels_of(client, node[0]))[KEY] == "esx-9"
    own = LabelSink(KubernetesApiWriter(client), HostLabelSettings(mode="own"), enabled=True)
    assert (await own.apply(label(node, **{KEY: "esx-1"}))).result == "applied"
    assert (await labels_of(client, node[0]))[KEY] == "esx-1"


@pytest.mark.parametrize("manager", ["python", "python-requests", "openapi-generator", "unknown", "k9s", "curl"])
async def test_a_label_of_an_in_house_controller_is_never_overwritten(
    manager: str, client: KubernetesClient, node: tuple[str, str]
) -> None:
    sink = LabelSink(KubernetesApiWriter(client), HostLabelSettings(), enabled=True)
    await set_by(client, "kubectl-label", node[0], **{KEY: "mine"})
    await set_by(client, manager, node[0], **{KEY: "esx-9"})
    outcome = await sink.apply(label(node, **{KEY: "esx-1"}))
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to {manager}")
    assert (await labels_of(client, node[0]))[KEY] == "esx-9"


async def test_a_label_of_ours_is_written_without_a_look_unless_somebody_has_taken_it_over(
    client: KubernetesClient, node: tuple[str, str]
) -> None:
    writer, shown = KubernetesApiWriter(client), dict[str, str]()
    sink = LabelSink(writer, RACKS, enabled=True, seen=lambda name: shown)
    assert (await sink.apply(label(node, **{KEY: "esx-1", "rack": "r17"}))).result == "applied"
    shown |= await labels_of(client, node[0])
    assert (await sink.apply(label(node, **{KEY: "esx-2", "rack": "r17"}))).result == "applied"
    assert await labels_of(client, node[0]) == {"zone": "a", KEY: "esx-2", "rack": "r17"}
    shown |= {KEY: "esx-2"}
    await set_by(client, "capi-machine", node[0], **{KEY: "esx-9"})  # and the watch does not show it yet
    outcome = await sink.apply(label(node, **{KEY: "esx-3"}))
    assert (outcome.result, outcome.reason) == ("refused", f"label {KEY} belongs to capi-machine")
    assert await labels_of(client, node[0]) == {"zone": "a", KEY: "esx-9", "rack": "r17"}


async def test_an_apply_never_touches_another_uid_nor_creates_a_node(
    client: KubernetesClient, node: tuple[str, str]
) -> None:
    writer = KubernetesApiWriter(client)
    with pytest.raises(Conflict):
        await writer.apply_node_labels(node[0], "0aaaaaaa-0000-4000-8000-000000000000", {KEY: "esx-1"})
    assert KEY not in await labels_of(client, node[0])
    with pytest.raises(Conflict):
        await writer.apply_node_labels("never-was", "0aaaaaaa-0000-4000-8000-000000000000", {KEY: "esx-1"})
    with pytest.raises(Gone):
        await writer.node_labels("never-was")


async def test_pods_are_bound_once_with_their_uid_as_precondition(
    client: KubernetesClient, namespace: str, node: tuple[str, str]
) -> None:
    pod = await create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("web-0"))
    uid, writer = pod["metadata"]["uid"], KubernetesApiWriter(client)
    sink = BindSink(writer, enabled=True)

    def bind(uid: str, where: str) -> Action:
        return order("bind", f"pod/{namespace}/web-0", {"uid": uid, "node": where}, "", {})

    with pytest.raises(Conflict):
        await writer.bind_pod(namespace, "web-0", "0aaaaaaa-0000-4000-8000-000000000000", node[0])
    assert await writer.pod_node(namespace, "web-0") == (uid, "")
    results = [(await sink.apply(bind(uid, node[0]))).result for _ in range(5)]
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    assert await writer.pod_node(namespace, "web-0") == (uid, node[0])
    with pytest.raises(Conflict):
        await writer.bind_pod(namespace, "web-0", uid, "elsewhere")
    other = await create(client, "/api/v1/nodes", {"metadata": {"name": f"{node[0]}-b"}})
    outcome = await sink.apply(bind(uid, other["metadata"]["name"]))
    assert (outcome.result, outcome.reason) == ("refused", f"bound to {node[0]} already")
    outcome = await sink.apply(bind(uid, "elsewhere"))
    assert (outcome.result, outcome.reason) == ("refused", "there is no node elsewhere")
    await client.call("DELETE", f"/api/v1/nodes/{other['metadata']['name']}")
    gone = order("bind", f"pod/{namespace}/none", {"uid": uid, "node": node[0]}, "", {})
    assert (await sink.apply(gone)).result == "refused"


async def test_the_labels_of_a_binding_are_the_pods_in_the_same_write(
    client: KubernetesClient, namespace: str, node: tuple[str, str]
) -> None:
    pod = await create(
        client,
        f"/api/v1/namespaces/{namespace}/pods",
        a_pod("web-0"),
    )
    uid = pod["metadata"]["uid"]
    desired = {"uid": uid, "node": node[0], "labels": {KEY: "esx-1", "rack": "r17"}}
    sink = BindSink(KubernetesApiWriter(client), enabled=True, keys=[KEY, "rack"])
    assert (await sink.apply(order("bind", f"pod/{namespace}/web-0", desired, "", {}))).result == "applied"
    bound = json.loads(await client.call("GET", f"/api/v1/namespaces/{namespace}/pods/web-0"))
    assert bound["spec"]["nodeName"] == node[0]
    assert bound["metadata"]["labels"] == {"app": "web", KEY: "esx-1", "rack": "r17"}


async def test_of_two_orders_for_a_pod_exactly_one_binds_it(
    client: KubernetesClient, namespace: str, node: tuple[str, str]
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    created = [await create(client, pods, a_pod(f"p{number:03}")) for number in range(100)]
    sink = BindSink(KubernetesApiWriter(client), enabled=True, is_node={node[0], "elsewhere"}.__contains__)

    def bind(pod: dict[str, Any], where: str) -> Action:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        return order("bind", f"pod/{namespace}/{name}", {"uid": uid, "node": where}, "", {})

    for pod in created:
        here, there = await asyncio.gather(sink.apply(bind(pod, node[0])), sink.apply(bind(pod, "elsewhere")))
        bound = json.loads(await client.call("GET", f"{pods}/{pod['metadata']['name']}"))["spec"]["nodeName"]
        assert {here.result, there.result} == {"applied", "refused"}
        assert bound == (node[0] if here.result == "applied" else "elsewhere")


def failed_scheduling(pod: dict[str, Any], note: str, at: int) -> Action:
    meta = pod["metadata"]
    about = Regarding("Pod", meta["name"], meta["namespace"], meta["uid"])
    condition = PodCondition("PodScheduled", "False", "Unschedulable")
    return event(Told(about, "Warning", "FailedScheduling", note, "Scheduling", condition), "", {"pods": at})


async def test_a_waiting_pod_says_why_in_its_condition_and_in_one_event_that_counts_up(
    client: KubernetesClient, namespace: str, node: tuple[str, str]
) -> None:
    pods, events = f"/api/v1/namespaces/{namespace}/pods", f"/api/v1/namespaces/{namespace}/events"
    pod = await create(client, pods, a_pod("web-0"))
    first, second = (failed_scheduling(pod, f"0/7 nodes are available: {at} taints.", at) for at in (7, 6))
    for action, results in ((first, ["applied", *["noop"] * 4]), (second, ["applied", *["noop"] * 4])):
        sink = EventSink(KubernetesEvents(client), "prod", enabled=True, binds=True)
        assert [(await sink.apply(action)).result for _ in range(5)] == results
    live = json.loads(await client.call("GET", f"{pods}/web-0"))
    [condition] = [each for each in live["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "0/7 nodes are available: 6 taints."
    [told] = json.loads(await client.call("GET", events))["items"]
    assert (told["series"]["count"], told["reason"], told["type"]) == (2, "FailedScheduling", "Warning")
    assert (told["message"], told["reportingComponent"]) == (condition["message"], "underhost")
    assert told["involvedObject"]["uid"] == pod["metadata"]["uid"]

    # The API server sets the condition with the binding; nothing is said of a pod that is bound.
    await KubernetesApiWriter(client).bind_pod(namespace, "web-0", pod["metadata"]["uid"], node[0])
    late = await EventSink(KubernetesEvents(client), "prod", enabled=True, binds=True).apply(
        failed_scheduling(pod, "late", 9)
    )
    assert (late.result, late.reason) == ("noop", f"bound to {node[0]} by now")
    live = json.loads(await client.call("GET", f"{pods}/web-0"))
    assert [each["status"] for each in live["status"]["conditions"] if each["type"] == "PodScheduled"] == ["True"]


async def test_kubevirt_replica_sets_are_watched_where_kubevirt_is_installed(
    kube: Kube, client: KubernetesClient, namespace: str
) -> None:
    plural = "virtualmachineinstancereplicasets"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural[:-1], "kind": "VirtualMachineInstanceReplicaSet"}
    spec = {"group": "kubevirt.io", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await create(client, definitions, {"metadata": {"name": f"{plural}.kubevirt.io"}, "spec": spec})
    path = f"/apis/kubevirt.io/v1/namespaces/{namespace}/{plural}"
    body = {"apiVersion": "kubevirt.io/v1", "kind": names["kind"], "metadata": {"name": "vms"}, "spec": {"replicas": 2}}
    async with asyncio.timeout(20):
        while True:  # until the new kind is served
            try:
                await create(client, path, body)
                break
            except Gone:
                await asyncio.sleep(0.1)
    topics = FakeTopics()
    async with watching(kube, topics):
        key = f"prod/virtualmachineinstancereplicaset/{namespace}/vms"
        record = json.loads(topics.live[WORKLOADS.name][key])
        assert (record["kind"], record["apiVersion"], record["spec"]) == (
            names["kind"],
            "kubevirt.io/v1",
            {"replicas": 2},
        )
        await client.call("DELETE", f"{path}/vms")
        await topics.until(lambda t: key not in t.keys(WORKLOADS))
    await client.call("DELETE", f"{definitions}/{plural}.kubevirt.io")


WATCH = ["list", "watch"]
WATCHER_RULES: list[dict[str, list[str]]] = [
    {
        "apiGroups": [""],
        "resources": ["namespaces", "nodes", "pods", "services", "replicationcontrollers"],
        "verbs": WATCH,
    },
    {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets", "deployments"], "verbs": WATCH},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": WATCH},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": WATCH},
]
ACTOR_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "patch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


async def grant(client: KubernetesClient, user: str, rules: list[dict[str, list[str]]]) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await create(client, f"{rbac}/clusterroles", {"metadata": {"name": user}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    body = {"metadata": {"name": user}, "roleRef": role, "subjects": [subject]}
    await create(client, f"{rbac}/clusterrolebindings", body)


async def test_the_watcher_needs_list_and_watch_and_nothing_else(kube: Kube, client: KubernetesClient) -> None:
    await grant(client, "watcher", WATCHER_RULES)
    least = replace(kube, kubeconfig=kube.kubeconfig_of(USER_TOKENS["watcher"]))
    topics = FakeTopics()
    async with watching(least, topics):
        name = f"t-{uuid.uuid4().hex[:12]}"
        await create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
        await topics.until(lambda t: f"prod/namespace//{name}" in t.keys(NAMESPACES))


async def test_the_sinks_need_these_verbs_and_no_others(
    kube: Kube, client: KubernetesClient, namespace: str, node: tuple[str, str]
) -> None:
    await grant(client, "actor", ACTOR_RULES)
    pod = await create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("web-0"))
    settings = KubernetesSettings(kubeconfig=kube.kubeconfig_of(USER_TOKENS["actor"]))
    async with await connect(settings) as least:
        writer = KubernetesApiWriter(least)
        labels = LabelSink(writer, HostLabelSettings(), enabled=True)
        assert (await labels.apply(label(node, **{KEY: "esx-1"}))).result == "applied"
        for at in (1, 2):
            # A sink of a new run each time: it has to find out which Event is there.
            sink = EventSink(KubernetesEvents(least), "prod", enabled=True, binds=True)
            assert (await sink.apply(failed_scheduling(pod, f"{at} Insufficient cpu", at))).result == "applied"
        bind = order("bind", f"pod/{namespace}/web-0", {"uid": pod["metadata"]["uid"], "node": node[0]}, "", {})
        assert (await BindSink(writer, enabled=True).apply(bind)).result == "applied"


# ------------------------------------------------------------------------------- a live cluster in the place of a dump
async def commanded(*arguments: str) -> Result:
    """A command of ours, in a thread: it runs an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, build(), list(arguments))


async def test_the_commands_judge_the_live_cluster_as_its_dump(
    kube: Kube, client: KubernetesClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "PAGE", 2)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": a_pod("")["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    for name in ("live-1", "live-2"):
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "20"}
        body = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "status": {}}
        await create(client, "/api/v1/nodes", body | {"status": {"capacity": allocatable, "allocatable": allocatable}})
    owner = await create(
        client,
        f"/apis/apps/v1/namespaces/{namespace}/replicasets",
        {"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": selector, "template": template}},
    )
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    for number in range(3):
        pod = a_pod(f"web-{number}", "live-1")
        pod["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
        await create(client, f"/api/v1/namespaces/{namespace}/pods", pod)
    budget = {"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": selector}}
    await create(client, f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", budget)
    items = []
    for kind in KINDS:
        if not kind.optional:
            listed = json.loads(await client.call("GET", kind.path))["items"]
            items += [{"kind": kind.kind, "apiVersion": kind.api_version, **item} for item in listed]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    try:
        for command in (["check"], ["schedule"], ["drain", "live-1"], ["fail", "node/live-1"]):
            live = await commanded(*command, "--kubeconfig", str(kube.kubeconfig), "-o", "json")
            assert live.stdout == (await commanded(*command, "-f", str(file), "-o", "json")).stdout, live.stderr
        tried = json.loads(
            (await commanded("drain", "live-1", "--kubeconfig", str(kube.kubeconfig), "-o", "json")).stdout
        )
        # no pod has started, as there are no kubelets: no budget is asked; and new nodes are tainted as not ready
        why = {"node(s) were unschedulable": 1, "node(s) had untolerated taint(s)": 1}
        assert {pod: reasons for pod, reasons in tried["pending"].items() if pod.startswith(f"{namespace}/")} == {
            f"{namespace}/web-{number}": why for number in range(3)
        }
        refused = await commanded("check", "--kubeconfig", str(kube.kubeconfig_of(NOBODY_TOKEN)))
        assert isinstance(refused.exception, Refused)
        assert "403" in str(refused.exception)
    finally:
        for name in ("live-1", "live-2"):
            await client.call("DELETE", f"/api/v1/nodes/{name}")
