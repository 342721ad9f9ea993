"""A thousand pods on a real API server: no node over-committed, no rule broken, each bound once. Judged without us.

One process of `underhost run`, embedded transport, over kube-apiserver with KWOK; sums and rules are checked by a few
lines over the API's own objects, writes are counted in the API server's audit log.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.processes.crowd import Object, WriteLog, create, inventory
from support.processes.kube import Kube, start_kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod, uuid_of
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import KubeApi, eventually, helpers

from underhost.agents.sinks.bindings import BindSink
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.streams.kubernetes.client import connect
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PODS, NODES, NODES_PER_HOST, TAINTED = 1000, 120, 4, 12
CPU, MEMORY = (100, 250, 500, 1000, 1500), (128, 512, 1024, 2048)
"""Millicores and MiB that the pods ask for, in turn."""
REPLICAS = 15
TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Place:
    """The cluster, its nodes as they were made, and the log of the writes."""

    folder: Path
    kube: Kube
    api: KubeApi
    nodes: list[Object]
    log: WriteLog


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, parts: Path) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("binder")
    log = WriteLog(folder / "audit.log")
    nodes = [
        kwok_node(
            f"node-{at:03d}",
            uuid_of(at),
            host=f"esx-{at // NODES_PER_HOST:02d}",
            cpu="8",
            **({"taints": [TAINT]} if at < TAINTED else {}),
        )
        for at in range(NODES)
    ]
    with start_kube(folder / "kube", parts, *log.flags()) as kube, helpers(parts, kube):
        api = KubeApi(kube)
        eventually("the default namespace is there", lambda: api.ask("GET", "/api/v1/namespaces")["items"])
        create(kube, "/api/v1/nodes", nodes)
        eventually("only our taints are left", lambda: taints(api) == {TAINT["key"]}, 120)
        yield Place(folder, kube, api, nodes, log)


def taints(api: KubeApi) -> set[str]:
    return {
        taint["key"] for node in api.ask("GET", "/api/v1/nodes")["items"] for taint in node["spec"].get("taints", [])
    }


def the_pods() -> list[Object]:
    """Requests of twenty sizes; every third pod is a replica kept apart by host; every tenth tolerates the taint."""
    pods = []
    for number in range(PODS):
        app = f"app-{number // 3 // REPLICAS}" if number % 3 == 0 else ""
        tolerations = [{"key": "dedicated", "operator": "Exists"}] if number % 10 == 0 else []
        cpu, memory = CPU[number % len(CPU)], MEMORY[number % len(MEMORY)]
        pods.append(
            kwok_pod(
                f"pod-{number:04d}",
                "underhost",
                cpu=f"{cpu}m",
                memory=f"{memory}Mi",
                app=app,
                tolerations=tolerations,
            )
        )
    return pods


def config(place: Place) -> Path:
    (place.folder / "inventory.json").write_text(json.dumps(inventory(place.nodes)))
    path = place.folder / "underhost.yaml"
    tree = {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": "prod",
        "kafka": {"embedded": str(place.folder / "underhost.db")},
        "kubernetes": {"kubeconfig": str(place.kube.kubeconfig)},
        "vsphere": {"inventory": str(place.folder / "inventory.json")},
        "sinks": {"bindings": True},
        "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
    }
    path.write_text(json.dumps(tree))
    return path


def no_node_is_over_committed(pods: list[Object], nodes: list[Object]) -> None:
    cpu, memory, count = Counter[str](), Counter[str](), Counter[str]()
    for pod in pods:
        node, [container] = pod["spec"]["nodeName"], pod["spec"]["containers"]
        cpu[node] += millicores(container["resources"]["requests"]["cpu"])
        memory[node] += mebibytes(container["resources"]["requests"]["memory"])
        count[node] += 1
    names = {node["metadata"]["name"] for node in nodes}
    assert set(count) <= names
    assert [name for name in names if cpu[name] > 8000 or memory[name] > 32 * 1024 or count[name] > 110] == []


def millicores(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def mebibytes(text: str) -> int:
    return int(text[:-2]) * (1024 if text.endswith("Gi") else 1)


def no_replicas_share_a_host(pods: list[Object], nodes: list[Object]) -> None:
    host = {node["metadata"]["name"]: node["metadata"]["labels"][HOST_LABEL] for node in nodes}
    seats: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in pods:
        app = pod["metadata"].get("labels", {}).get("app")
        if app:
            seats[app, host[pod["spec"]["nodeName"]]].append(pod["metadata"]["name"])
    assert len(seats) > PODS // 4, "there are replicas to be kept apart"
    assert [names for names in seats.values() if len(names) > 1] == []


def no_taint_is_passed_over(pods: list[Object], nodes: list[Object]) -> None:
    closed = {node["metadata"]["name"] for node in nodes if node["spec"].get("taints")}
    here = [pod for pod in pods if pod["spec"]["nodeName"] in closed]
    assert here, "some of those that tolerate the taint are there"
    assert [
        pod["metadata"]["name"]
        for pod in here
        if not any(each.get("key") == "dedicated" for each in pod["spec"]["tolerations"])
    ] == []


def check_finds_nothing(place: Place) -> None:
    """`underhost check` over a dump of the real cluster."""
    (place.folder / "dump.json").write_text(json.dumps(place.api.dump()))
    files = ("-f", str(place.folder / "dump.json"), "--inventory", str(place.folder / "inventory.json"))
    done = subprocess.run([UNDERHOST, "check", *files, "-o", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Our own taint is said of its nodes (drift); nothing else is.
    found: list[Any] = [each for each in json.loads(done.stdout)["findings"] if each["severity"] != "drift"]
    assert found == []


def test_a_thousand_pods_are_placed_once_with_no_node_overcommitted_or_rule_broken(place: Place) -> None:
    path = config(place)
    with (place.folder / "underhost.log").open("wb") as out:
        command = [UNDERHOST, "run", "--config", str(path)]
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "NO_COLOR": "1"})
    try:
        create(place.kube, "/api/v1/namespaces/default/pods", the_pods())
        eventually("all are bound", lambda: len(bindings(place, "default")) >= PODS, 300)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0
    pods = place.api.ask("GET", "/api/v1/namespaces/default/pods")["items"]
    assert [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")] == []
    assert Counter(bindings(place, "default")) == Counter(pod["metadata"]["name"] for pod in pods)
    no_node_is_over_committed(pods, place.nodes)
    no_replicas_share_a_host(pods, place.nodes)
    no_taint_is_passed_over(pods, place.nodes)
    check_finds_nothing(place)


def bindings(place: Place, namespace: str) -> list[str]:
    """The pods of the bindings that the API server took, in order."""
    return [event.object_ref.name for event in place.log.writes("create", "pods/binding", namespace)]


@pytest.mark.parametrize("restarts", [pytest.param(False, id="at once"), pytest.param(True, id="after restarts")])
async def test_an_order_that_is_delivered_five_times_is_one_binding(place: Place, restarts: bool) -> None:
    namespace = f"five-{str(restarts).lower()}"
    place.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    path, names = f"/api/v1/namespaces/{namespace}/pods", [f"pod-{number:02d}" for number in range(20)]
    uids = {name: place.api.ask("POST", path, kwok_pod(name, "underhost"))["metadata"]["uid"] for name in names}
    node = place.nodes[-1]["metadata"]["name"]
    async with await connect(KubernetesSettings(kubeconfig=place.kube.kubeconfig)) as client:
        sink = BindSink(KubernetesApiWriter(client), enabled=True)
        for delivery in range(5):
            if restarts:
                sink = BindSink(KubernetesApiWriter(client), enabled=True)
            apply = sink.again if restarts and delivery else sink.apply
            actions = [
                order("bind", f"pod/{namespace}/{name}", {"uid": uid, "node": node}, "", {})
                for name, uid in uids.items()
            ]
            results = {outcome.result for outcome in await asyncio.gather(*map(apply, actions))}
            assert results == {"noop" if delivery else "applied"}
    assert Counter(bindings(place, namespace)) == Counter(names)
    tried = [
        event
        for event in place.log.read()
        if event.object_ref.subresource == "binding" and event.object_ref.namespace == namespace
    ]
    assert len(tried) == len(names), "none was refused either"


async def test_a_binding_to_a_node_that_is_not_there_says_so_and_writes_nothing(place: Place) -> None:
    namespace = "unknown-node"
    place.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    pod = place.api.ask("POST", f"/api/v1/namespaces/{namespace}/pods", kwok_pod("web-0", "underhost"))
    desired = {"uid": pod["metadata"]["uid"], "node": "never-was"}
    async with await connect(KubernetesSettings(kubeconfig=place.kube.kubeconfig)) as client:
        sink = BindSink(KubernetesApiWriter(client), enabled=True)
        outcome = await sink.apply(order("bind", f"pod/{namespace}/web-0", desired, "", {}))
    assert (outcome.result, outcome.reason) == ("refused", "there is no node never-was")
    assert bindings(place, namespace) == []
