"""The real kube-scheduler 1.36 asks us where replicas may go: one on each ESXi host, or they wait and say why."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.processes.authority import Authority, Certificate
from support.processes.kube import Kube, start_kube
from support.processes.ports import free_ports
from support.processes.scheduler import kube_scheduler
from support.processes.underhost import UNDERHOST
from support.processes.world import Audit, KubeApi, eventually, helpers

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

HOSTS = {f"node-{number}": f"esx-{(number + 1) // 2}" for number in range(1, 9)}
"""Two nodes on each of four hosts."""
LARGE = ("node-1", "node-2", "node-3", "node-4")
"""What kube-scheduler likes best, all on two hosts."""
SHARED = "node(s) were on a physical host that runs a pod to be kept apart"
MODES = ("preferred", "required")
TOKEN = "the-token-that-kube-scheduler-sends"
"""Of the worker in the mode `preferred`; the one in the mode `required` asks for certificates."""


@dataclass(frozen=True)
class Place:
    """The parts of this story. `underhosts` are the processes of `underhost run`, by mode."""

    kube: Kube
    api: KubeApi
    audit: Audit
    underhosts: "dict[str, subprocess.Popen[bytes]]"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, parts: Path) -> Iterator[Place]:
    """Kubernetes and kube-schedulers: one without an extender, one for each mode of ours, two whom nobody knows."""
    folder = tmp_path_factory.mktemp("extender")
    ours, clients, others = (Authority(folder, name) for name in ("ours", "clients", "others"))
    audit = Audit(folder / "audit.log")
    with start_kube(folder / "kube", parts, *audit.flags()) as kube, ExitStack() as stack:
        stack.enter_context(helpers(parts, kube, "deployment-controller", "replicaset-controller"))
        api = KubeApi(kube)
        add_nodes(api)
        inventory = folder / "inventory.json"
        inventory.write_text(json.dumps(an_inventory()))
        *pages, questions = free_ports(3)
        ports = dict(zip(MODES, pages, strict=True))
        (folder / "token").write_text(TOKEN)
        made = ours.certificate("listener", "IP:127.0.0.1")
        files = {"certFile": str(made.cert), "keyFile": str(made.key), "clientCaFile": str(clients.cert)}
        doors: dict[str, dict[str, Any]] = {
            "preferred": {"web": {"tokenFile": str(folder / "token")}},
            "required": {"extender": {"listen": f"127.0.0.1:{questions}", "tls": files}},
        }
        underhosts = {
            mode: stack.enter_context(underhost(folder, kube, inventory, mode, ports[mode], doors[mode]))
            for mode in MODES
        }
        for mode, port in ports.items():
            eventually(f"underhost ({mode}) answers for the site", lambda port=port: answers(port))
        stack.enter_context(kube_scheduler(kube, parts, "plain"))
        page, secure = f"127.0.0.1:{ports['preferred']}/extender", f"https://127.0.0.1:{questions}/extender"
        strict = {"bindVerb": "bind", "ignorable": False}
        extenders = {
            "preferred": {"urlPrefix": f"http://underhost:{TOKEN}@{page}"},
            "required": {"urlPrefix": secure, **strict, **certified(ours, clients.certificate("scheduler", "DNS:s"))},
            "guest": {"urlPrefix": f"http://{page}", **strict},
            "stranger": {"urlPrefix": secure, **strict, **certified(ours, others.certificate("stranger", "DNS:s"))},
        }
        for name, extender in extenders.items():
            stack.enter_context(kube_scheduler(kube, parts, name, extender))
        eventually("the default namespace is there", lambda: api.ask("GET", "/api/v1/namespaces")["items"])
        yield Place(kube, api, audit, underhosts)


def certified(trusted: Authority, shown: Certificate) -> dict[str, Any]:
    """What of the extender's configuration docs/extender.md has for a listener that asks for certificates."""
    files = {"caFile": str(trusted.cert), "certFile": str(shown.cert), "keyFile": str(shown.key)}
    return {"enableHTTPS": True, "tlsConfig": files}


@contextmanager
def underhost(
    folder: Path, kube: Kube, inventory: Path, mode: str, port: int, door: dict[str, Any]
) -> "Iterator[subprocess.Popen[bytes]]":
    """`underhost run` with bindings enabled, over the cluster and the inventory, behind a door."""
    config = folder / f"{mode}.yaml"
    tree: dict[str, Any] = {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": mode,  # two workers of one site would be one that acts and one that stands by
        "kafka": {"embedded": str(folder / f"{mode}.db")},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "vsphere": {"inventory": str(inventory)},
        "physicalHost": mode,
        "sinks": {"bindings": True},
        **door,
        "web": {"listen": f"127.0.0.1:{port}", **door.get("web", {})},
    }
    config.write_text(json.dumps(tree))
    command = [UNDERHOST, "run", "--config", str(config)]
    with (folder / f"{mode}.log").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "NO_COLOR": "1"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def add_nodes(api: KubeApi) -> None:
    for name in HOSTS:
        cpus = "64" if name in LARGE else "8"
        resources = {"cpu": cpus, "memory": "32Gi", "pods": "110"}
        metadata = {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name},
        }
        body = {"metadata": metadata, "status": {"allocatable": resources, "capacity": resources}}
        api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **body})


def an_inventory() -> dict[str, Any]:
    hosts = [{"name": name} for name in sorted(set(HOSTS.values()))]
    return {"kind": "Inventory", "hosts": hosts, "vms": [{"name": vm, "host": host} for vm, host in HOSTS.items()]}


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/extender/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def deploy(api: KubeApi, scheduler: str, replicas: int, constraint: str = "apart", namespace: str = "") -> str:
    """A Deployment whose replicas keep apart by hostname, in a namespace of its own; its name."""
    namespace = namespace or f"{scheduler}-{constraint}"
    api.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    selector = {"matchLabels": {"app": "db"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    rules: dict[str, Any] = {
        "apart": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        "spread": {"topologySpreadConstraints": [spread]},
        "free": {},
    }
    container = {"name": "db", "image": "db", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"schedulerName": scheduler, "containers": [container], **rules[constraint]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "db"},
        "spec": {"replicas": replicas, "selector": selector, "template": pod},
    }
    api.ask("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
    return namespace


def hosts_of(api: KubeApi, namespace: str, replicas: int) -> list[str]:
    """The hosts of the replicas, sorted, once so many are bound."""
    bound = eventually(
        f"{replicas} replicas of {namespace} are bound",
        lambda: found if len(found := api.bound(namespace)) == replicas else None,
    )
    return sorted(HOSTS[node] for node in bound.values())


def events(api: KubeApi, namespace: str) -> list[str]:
    """The messages of FailedScheduling."""
    listed = api.ask("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [one.get("message") or one.get("note", "") for one in listed if one["reason"] == "FailedScheduling"]


def test_without_us_replicas_share_hosts_and_with_us_each_has_its_own(place: Place) -> None:
    plain, ours = deploy(place.api, "plain", 4), deploy(place.api, "preferred", 4)
    assert hosts_of(place.api, plain, 4) == ["esx-1", "esx-1", "esx-2", "esx-2"]
    assert hosts_of(place.api, ours, 4) == ["esx-1", "esx-2", "esx-3", "esx-4"]


def test_in_preferred_mode_a_fifth_replica_shares_a_host_rather_than_waits(place: Place) -> None:
    namespace = deploy(place.api, "preferred", 5, namespace="preferred-five")
    hosts = hosts_of(place.api, namespace, 5)
    assert set(hosts) == {"esx-1", "esx-2", "esx-3", "esx-4"}


def test_in_required_mode_a_fifth_replica_waits_and_its_event_says_why(place: Place) -> None:
    namespace = deploy(place.api, "required", 5)
    assert hosts_of(place.api, namespace, 4) == ["esx-1", "esx-2", "esx-3", "esx-4"]
    eventually(
        "the event of the fifth gives our reason",
        lambda: any(SHARED in one for one in events(place.api, namespace)),
    )
    [message] = {one for one in events(place.api, namespace) if SHARED in one}
    assert message.startswith(f"0/8 nodes are available: 1 {SHARED}: ")
    assert "4 node(s) didn't match pod anti-affinity rules" in message
    hosts = re.findall(rf"1 {re.escape(SHARED)}: \S+ is on (esx-\d)", message)
    assert sorted(hosts) == ["esx-1", "esx-2", "esx-3", "esx-4"]
    bound = sorted(place.api.bound(namespace))
    assert len(bound) == 4
    mine = sorted(write for write in place.audit.product_writes() if f"/namespaces/{namespace}/" in write[1])
    assert mine == [("create", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", 201) for name in bound]


@pytest.mark.parametrize("mode", MODES)
def test_replicas_of_a_strict_spread_get_a_host_each(place: Place, mode: str) -> None:
    """What kube-scheduler offers says nothing of where the replica before has gone."""
    namespace = deploy(place.api, mode, 4, "spread")
    assert hosts_of(place.api, namespace, 4) == ["esx-1", "esx-2", "esx-3", "esx-4"]


@pytest.mark.parametrize(
    ("scheduler", "why"),
    [
        pytest.param("guest", "/extender/filter, code 401", id="no password"),
        pytest.param("stranger", '/extender/filter": ', id="a certificate of others: the connection ends"),
    ],
)
def test_a_scheduler_that_nobody_knows_gets_no_answer_and_binds_nothing(place: Place, scheduler: str, why: str) -> None:
    namespace = deploy(place.api, scheduler, 1)
    eventually("its pod says why it waits", lambda: any(why in one for one in events(place.api, namespace)))
    assert place.api.bound(namespace) == {}


def test_without_an_answer_ignorable_goes_on_and_the_other_waits(place: Place) -> None:
    for process in place.underhosts.values():
        process.send_signal(signal.SIGTERM)
    assert [process.wait(15) for process in place.underhosts.values()] == [0, 0]
    ignorable = deploy(place.api, "preferred", 1, "free")
    waiting = deploy(place.api, "required", 1, "free")
    assert len(hosts_of(place.api, ignorable, 1)) == 1
    eventually(
        "the pod says that nobody answers", lambda: any("/extender/filter" in one for one in events(place.api, waiting))
    )
    assert place.api.bound(waiting) == {}
    told = [one["note"] if "note" in one else one["message"] for one in place.api.ask("GET", "/api/v1/events")["items"]]
    assert [one for one in told if TOKEN in one] == []
