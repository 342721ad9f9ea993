"""Kubernetes Events on a real API server: one for each object and reason, which counts; read as `kubectl` reads them.

`underhost run` over kube-apiserver and an inventory file in the vCenter's place: whoever edits the file moves VMs.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.processes.crowd import Object, inventory
from support.processes.kube import Kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod, uuid_of
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import KubeApi, eventually

from underhost.agents.sinks.events.messages import EventMessages
from underhost.agents.sinks.events.sink import EventSink
from underhost.agents.sinks.events.writer import KubernetesEvents
from underhost.schemas.records import FindingEvent, Outcome
from underhost.streams.kubernetes.client import connect
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
def api(kube: Kube) -> KubeApi:
    """The cluster with two nodes, each with a replica that no other may share a host with."""
    api = KubeApi(kube)
    eventually("the default namespace is there", lambda: api.ask("GET", "/api/v1/namespaces")["items"])
    return api


def told(api: KubeApi) -> Counter[tuple[str, str, str]]:
    """How often each object was told each reason by us; more than one Event of the same fails."""
    found: Counter[tuple[str, str, str]] = Counter()
    for event in api.ask("GET", EVENTS)["items"]:
        if event["reportingController"] == "underhost":
            place = event["regarding"]["kind"], event["regarding"]["name"], event["reason"]
            assert place not in found, f"two Events of {place}"
            found[place] = event["series"]["count"] if event.get("series") else 1
    return found


def of(found: Counter[tuple[str, str, str]], reason: str) -> dict[str, int]:
    """Of one reason, by the name of the object."""
    return {name: count for (_, name, of_reason), count in sorted(found.items()) if of_reason == reason}


class Vms:
    """The inventory file."""

    def __init__(self, path: Path, nodes: list[Object]) -> None:
        self._path, self._tree = path, inventory(nodes)
        self.move()

    def move(self, **hosts: str) -> None:
        """These VMs, by the name of their node with an underscore, run on these hosts now."""
        for vm in self._tree["vms"]:
            vm["host"] = hosts.get(vm["name"].replace("-", "_"), vm["host"])
        whole = self._path.with_suffix(".new")
        whole.write_text(json.dumps(self._tree))
        whole.replace(self._path)


@contextmanager
def underhost(folder: Path, kube: Kube, **sinks: bool) -> Iterator[None]:
    tree = {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": "prod",
        "kafka": {"embedded": str(folder / "underhost.db")},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "vsphere": {"inventory": str(folder / "inventory.json")},
        "sinks": sinks,
        "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
    }
    (folder / "underhost.yaml").write_text(json.dumps(tree))
    with (folder / "underhost.log").open("ab") as out:
        command = [UNDERHOST, "run", "--config", str(folder / "underhost.yaml")]
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "NO_COLOR": "1"})
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (folder / "underhost.log").read_text()
    finally:
        process.kill()
        process.wait()


def test_findings_and_what_is_done_are_told_once_to_each_pod_and_node_and_counted_on(
    api: KubeApi, kube: Kube, tmp_path: Path
) -> None:
    nodes = [kwok_node(f"node-{at}", uuid_of(at), host=f"esx-{at}") for at in (1, 2, 3)]
    vms = Vms(tmp_path / "inventory.json", nodes)
    for node in nodes:
        del node["metadata"]["labels"][HOST_LABEL]
        api.ask("POST", "/api/v1/nodes", node)
    for number in (1, 2):
        api.ask("POST", PODS, kwok_pod(f"db-{number}", "default-scheduler", app="db"))
        api.bind(f"db-{number}", f"node-{number}")
    with underhost(tmp_path, kube, labels=True, events=True):
        everywhere = {"node-1": 1, "node-2": 1, "node-3": 1}
        eventually("the labels are told", lambda: of(told(api), "HostLabel") == everywhere)

        vms.move(node_2="esx-1")
        once = {"db-1": 1, "db-2": 1, "node-1": 1, "node-2": 1}
        eventually("the finding is told", lambda: of(told(api), "RuleViolated") == once)
        vms.move(node_2="esx-2")
        eventually("its end is told", lambda: of(told(api), "FindingResolved") == once)
        vms.move(node_2="esx-1")
        twice = dict.fromkeys(once, 2)
        eventually("it is counted on", lambda: of(told(api), "RuleViolated") == twice)
    with underhost(tmp_path, kube, labels=True, events=True):  # again: what was told is not told anew
        vms.move(node_2="esx-2")
        eventually("its end is told again", lambda: of(told(api), "FindingResolved") == twice)
    assert of(told(api), "RuleViolated") == twice

    [event] = [
        event
        for event in api.ask("GET", EVENTS)["items"]
        if (event["regarding"]["name"], event["reason"]) == ("db-2", "RuleViolated")
    ]
    pod = api.ask("GET", f"{PODS}/db-2")
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    assert (event["type"], event["action"], event["reportingInstance"]) == ("Warning", "Checking", "underhost-prod")
    for word in ("default/db-1", "default/db-2", "node-1", "node-2"):
        assert word in event["note"]
    assert "esx-1" not in event["note"], "who reads a namespace's Events does not learn which hosts there are"
    labelled = [one for one in api.ask("GET", EVENTS)["items"] if one["reason"] == "HostLabel"]
    notes = {one["regarding"]["name"]: one["note"] for one in labelled}
    assert notes["node-3"] == f"set {HOST_LABEL}=esx-3"


def test_without_being_enabled_by_name_nothing_is_told(api: KubeApi, kube: Kube, tmp_path: Path) -> None:
    before = told(api)
    nodes = [kwok_node(f"quiet-{number}", uuid_of(number), host="esx-9") for number in (8, 9)]
    Vms(tmp_path / "inventory.json", nodes)
    for node in nodes:
        del node["metadata"]["labels"][HOST_LABEL]
        api.ask("POST", "/api/v1/nodes", node)
    with underhost(tmp_path, kube, labels=True):
        eventually("the labels are there", lambda: {"quiet-8", "quiet-9"} <= set(api.node_labels()))
    assert told(api) == before


@pytest.mark.parametrize("restarts", [pytest.param(False, id="at once"), pytest.param(True, id="after restarts")])
async def test_records_that_are_delivered_five_times_are_told_once(api: KubeApi, kube: Kube, restarts: bool) -> None:
    name = f"five-{str(restarts).lower()}"
    api.ask("POST", PODS, kwok_pod(name, "default-scheduler"))
    pods = [f"default/{name}"]
    records: list[Any] = [
        FindingEvent(f"f{number}", "opened", "prod", "violation", "R", "r", f"wrong {number}", "0", "1", {}, pods[0])
        for number in (1, 2)
    ]
    records.append(Outcome("o1", "evict", f"pod/{pods[0]}", "failed", "the budget allows none"))
    async with await connect(KubernetesSettings(kubeconfig=kube.kubeconfig)) as client:
        sink, results = EventSink(KubernetesEvents(client), "prod", enabled=True, binds=True), []
        for _ in range(5):
            messages = EventMessages(lambda pod: "")
            for row in records:
                finding = isinstance(row, FindingEvent)
                actions = messages.of_finding(row) if finding else messages.of_outcome(row, None, lambda vms: [])
                results += [(await sink.apply(action)).result for action in actions]
            sink = EventSink(KubernetesEvents(client), "prod", enabled=True, binds=True) if restarts else sink
    assert results == ["applied"] * 3 + ["noop"] * 12
    mine: dict[tuple[str, str, str], int] = {key: count for key, count in told(api).items() if key[1] == name}
    assert mine == {("Pod", name, "RuleViolated"): 2, ("Pod", name, "RepairEvictionFailed"): 1}
