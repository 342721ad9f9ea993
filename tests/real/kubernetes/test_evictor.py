"""The evictor against the real kube-apiserver, its disruption controller, ReplicaSets and KWOK.

A hundred workloads break a rule at once; each is repaired by one eviction, and none ever has fewer ready replicas than
its budget wants, at any event of the API server's own watch.
"""

import asyncio
import json
import queue
import re
import signal
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.processes.kube import ADMIN_TOKEN, Kube, start_kube
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import running
from support.processes.world import Audit, KubeApi, eventually, helpers

from underhost.agents.sinks.evictions.sink import EvictionSink
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.orders import order
from underhost.schemas.records import Action, Outcome
from underhost.streams.kubernetes.client import connect
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

RACK = "example.com/rack"
TEAMS = tuple(f"team-{number}" for number in range(100))
REPLICAS, LEAST = 6, 5
PATIENCE = 180.0
"""Seconds that anything is waited for: a machine may be busy."""


@dataclass
class Cluster:
    """Seven nodes in seven racks, the last one cordoned."""

    folder: Path
    kube: Kube
    api: KubeApi
    audit: Audit

    def config(self, port: int, *, evictions: bool) -> Path:
        """A worker that binds and, if asked, evicts; with caps that let a hundred go at once from one node."""
        tree = {
            "apiVersion": "underhost/v1",
            "kind": "Config",
            "site": "prod-a",
            "kafka": {"embedded": str(self.folder / "underhost.db")},
            "kubernetes": {"kubeconfig": str(self.kube.kubeconfig)},
            "sinks": {"bindings": True, "evictions": evictions},
            "evictions": {"wait": 0, "perNode": 1000, "perHost": 1000, "perMinute": 1000},
            "limits": {"evictions": 1000},
            "web": {"listen": f"127.0.0.1:{port}"},
        }
        path = self.folder / "underhost.yaml"
        path.write_text(json.dumps(tree))
        return path

    def evictions(self) -> list[int]:
        """The answers to each eviction that the product asked for."""
        return [code for verb, path, code in self.audit.product_writes() if path.endswith("/eviction")]

    def move(self, node: str, rack: str) -> None:
        """The node is in another rack from now on."""
        self.api.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {RACK: rack}}})

    def cordon(self, node: str, unschedulable: bool) -> None:
        self.api.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": unschedulable}})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, parts: Path) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("evictor")
    audit = Audit(folder / "audit.log")
    with (
        start_kube(folder / "kube", parts, *audit.flags()) as kube,
        helpers(parts, kube, "replicaset-controller", "disruption-controller"),
    ):
        made = Cluster(folder, kube, KubeApi(kube), audit)
        for number in range(1, 8):
            made.api.add_node(f"node-{number}", f"uuid-{number}")
            made.move(f"node-{number}", f"rack-{number}")
        made.cordon("node-7", True)
        yield made


def a_team(api: KubeApi, name: str, *budgets: str) -> None:
    """A namespace with a ReplicaSet of six, no two in one rack, and budgets that want five of them ready."""
    labels = {"app": "db"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": RACK}
    spec = {
        "schedulerName": "underhost",
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "containers": [{"name": "db", "image": "db", "resources": {"requests": {"cpu": "10m"}}}],
        "terminationGracePeriodSeconds": 0,
    }
    replicas = {"replicas": REPLICAS, "selector": {"matchLabels": labels}}
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for budget in budgets:
        body = {"metadata": {"name": budget}, "spec": {"minAvailable": LEAST, "selector": {"matchLabels": labels}}}
        api.ask("POST", f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets", body)
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"metadata": {"name": "db"}, "spec": {**replicas, "template": template}}
    api.ask("POST", f"/apis/apps/v1/namespaces/{name}/replicasets", body)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Ready, and not being deleted: what a budget counts."""
    conditions = pod["status"].get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


class Witness:
    """Follows the API server's watch of all pods, event by event.

    The server drops a watch that it finds too slow; the next one begins with the event after the last that was seen, so
    that none is missed.

    Attributes:
        fewest: the smallest number of ready replicas that each namespace ever had since it was last cleared.
    """

    def __init__(self, api: KubeApi) -> None:
        self.fewest: dict[str, int] = {}
        self._api = api
        self._version = api.ask("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ready: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def follow(self) -> None:
        """Watch once, until the server ends it; in a thread, which does nothing else, so as not to be too slow."""
        url = f"{self._api._server}/api/v1/pods?watch=1&resourceVersion={self._version}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE, context=self._api._tls) as stream:
                for line in stream:
                    self._lines.put(line)
        finally:
            self._lines.put(None)

    def wait(self, what: str, true: Callable[[], bool]) -> None:
        """Until it is so; looked at after every event."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                counts = Counter(len(pods) for pods in self._ready.values())
                pytest.fail(f"still not: {what}; ready replicas by number of teams: {counts}")
            if line is None:
                self.start()
            else:
                self._saw(json.loads(line))

    def start(self) -> None:
        threading.Thread(target=self.follow, daemon=True).start()

    def _saw(self, event: Mapping[str, Any]) -> None:
        pod = event["object"]
        assert event["type"] != "ERROR", pod
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._version = pod["metadata"]["resourceVersion"]
        ready = self._ready[namespace]
        if event["type"] != "DELETED" and is_ready(pod):
            ready[name] = pod["spec"]["nodeName"]
        else:
            ready.pop(name, None)
        self.fewest[namespace] = min(self.fewest.get(namespace, REPLICAS), len(ready))

    def nodes(self, team: str) -> list[str]:
        """The nodes of the team's ready replicas."""
        return sorted(self._ready[team].values())

    def catch_up(self) -> None:
        """See every event until now."""
        last = {"metadata": {"name": "the-last"}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        version = int(self._api.ask("POST", "/api/v1/namespaces/default/pods", last)["metadata"]["resourceVersion"])
        self.wait("the last event", lambda: int(self._version) >= version)


def counted(port: int, result: str) -> int:
    """How many evictions had this outcome, as the worker's metrics say."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    [count] = re.findall(rf'underhost_outcomes_total{{kind="evict",result="{result}"}} (\S+)', text) or ["0"]
    return int(float(count))


def outcomes(folder: Path, result: str) -> list[str]:
    """The targets of evictions with this outcome, in order."""
    heard = Listener({"embedded": str(folder / "underhost.db")}).records("underhost.outcomes")
    return [one.value["target"] for one in heard if (one.value["kind"], one.value["result"]) == ("evict", result)]


def test_a_hundred_violations_are_repaired_at_once_and_no_budget_is_ever_broken(cluster: Cluster) -> None:
    api, port = cluster.api, free_ports(1)[0]
    witness = Witness(api)
    witness.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda team: a_team(api, team, "db"), TEAMS))
    with running(cluster.config(port, evictions=False), cluster.folder / "dry.log") as pipeline:
        before = [f"node-{number}" for number in range(1, 7)]
        witness.wait("every replica runs", lambda: all(witness.nodes(team) == before for team in TEAMS))
        budgets = "/apis/policy/v1/poddisruptionbudgets"
        eventually(
            "the disruption controller allows one each",
            lambda: all(one["status"].get("disruptionsAllowed") == 1 for one in api.ask("GET", budgets)["items"]),
            PATIENCE,
        )
        cluster.cordon("node-7", False)
        cluster.move("node-2", "rack-1")
        eventually("every violation has its dry run", lambda: counted(port, "dry-run") == len(TEAMS), PATIENCE)
        assert pipeline.end(signal.SIGTERM) == 0
    dry = outcomes(cluster.folder, "dry-run")
    assert sorted(target.split("/")[1] for target in dry) == sorted(TEAMS)
    assert cluster.evictions() == []

    witness.fewest.clear()
    with running(cluster.config(port, evictions=True), cluster.folder / "wet.log") as pipeline:
        witness.wait("every replica has a rack", lambda: all(repaired(witness.nodes(team)) for team in TEAMS))
        assert pipeline.end(signal.SIGTERM) == 0
    witness.catch_up()
    assert {team: witness.fewest[team] for team in TEAMS} == dict.fromkeys(TEAMS, LEAST)
    applied = outcomes(cluster.folder, "applied")
    assert sorted(target.split("/")[1] for target in applied) == sorted(TEAMS), "one eviction each"
    assert Counter(cluster.evictions())[201] == len(TEAMS)
    assert [path for verb, path, _ in cluster.audit.product_writes() if verb.startswith("delete")] == []


def repaired(nodes: list[str]) -> bool:
    """Six ready replicas in six racks: node-1 and node-2 share one."""
    return len(set(nodes)) == REPLICAS and not {"node-1", "node-2"} <= set(nodes)


def test_what_the_real_eviction_api_answers_is_an_outcome(cluster: Cluster) -> None:
    """A pod, a budget that has none to spare, two budgets, another uid, and a command that comes five times."""
    api = cluster.api
    for team, budgets in (("plain", ()), ("tight", ("db",)), ("twice", ("one", "two"))):
        a_team(api, team, *budgets)
    budgets = "/apis/policy/v1/namespaces/tight/poddisruptionbudgets"
    eventually(
        "the budget is figured",
        lambda: all(one["status"].get("expectedPods") == REPLICAS for one in api.ask("GET", budgets)["items"]),
        PATIENCE,
    )
    pods: dict[str, list[Any]] = {}

    def are_made() -> bool:
        for team in ("plain", "tight", "twice"):
            pods[team] = api.ask("GET", f"/api/v1/namespaces/{team}/pods")["items"]
        return all(len(made) == REPLICAS for made in pods.values())

    eventually("each has six pods", are_made, PATIENCE)
    for team in pods:  # nobody binds here, so that the test does: only a running pod is a budget's matter
        for number, pod in enumerate(pods[team][:LEAST], 1):
            name = pod["metadata"]["name"]
            target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number}"}
            binding = {"metadata": {"name": name}, "target": target}
            api.ask("POST", f"/api/v1/namespaces/{team}/pods/{name}/binding", binding)
    eventually(
        "five of six are ready",
        lambda: all(
            sum(map(is_ready, api.ask("GET", f"/api/v1/namespaces/{team}/pods")["items"])) == LEAST for team in pods
        ),
        PATIENCE,
    )
    commands = {team: evict(team, pods[team][0]) for team in pods}
    other = Action("other", "evict", commands["tight"].target, {**commands["tight"].desired, "uid": "u"}, "", {})
    asked = len(cluster.evictions())
    five, tight, twice, another = asyncio.run(
        carry_out(cluster.kube.kubeconfig, [[commands["plain"]] * 5, [commands["tight"]], [commands["twice"]], [other]])
    )
    assert [one.result for one in five] == ["applied", "noop", "noop", "noop", "noop"]
    assert tight[0].result == "failed"
    assert tight[0].reason.endswith(
        "Cannot evict pod as it would violate the pod's disruption budget. (429) "
        "The disruption budget db needs 5 healthy pods and has 5 currently"
    )
    assert twice[0].result == "refused"
    assert "This pod has more than one PodDisruptionBudget" in twice[0].reason
    assert another[0].result == "noop"
    assert cluster.evictions()[asked:] == [201, 429, 500]


def evict(namespace: str, pod: Mapping[str, Any]) -> Action:
    desired = {"uid": pod["metadata"]["uid"], "at": "2999-01-01T00:00:00Z", "node": "n", "to": "m"}
    return order("evict", f"pod/{namespace}/{pod['metadata']['name']}", desired, "", {})


async def carry_out(kubeconfig: Path, commands: list[list[Action]]) -> list[list[Outcome]]:
    """What the sink says of each command, one after another."""
    async with await connect(KubernetesSettings(kubeconfig=kubeconfig)) as client:
        sink = EvictionSink(KubernetesApiWriter(client), enabled=True)
        return [[await sink.apply(command) for command in some] for some in commands]
