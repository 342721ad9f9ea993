"""Workers of one site beside one another, on a real API server: exactly one acts in each role, another after it died.

Each is an `underhost run`: with an embedded log of its own, or on one Kafka. The API server's audit log says who wrote
what, by the worker's account; Kafka's records whose they are, by their term.
"""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.processes.kafka import KafkaProcess
from support.processes.kube import ADMINS, USER_TOKENS
from support.processes.listener import Heard, Listener
from support.processes.ports import free_ports
from support.processes.underhost import Worker, running
from support.processes.world import NODES, World, eventually, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = f"{LEASES}/underhost-prod-a-labeller"
TAKEN_WITHIN = 20.0
"""Seconds after a crash until another worker has the lease: the lease's own fifteen, and the time to notice."""


@pytest.fixture(scope="module")
def here(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("world"), parts) as made:
        yield made


@dataclass
class Beside:
    """One of the workers: its process, its address, its log."""

    worker: Worker
    address: str

    @property
    def pid(self) -> int:
        assert self.worker._process is not None
        return self.worker._process.pid

    def readyz(self) -> dict[str, Any] | None:
        """What it says of itself, once it is ready."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/readyz", timeout=10) as answer:
                return dict(json.load(answer))
        except OSError:
            return None


def beside(stack: ExitStack, here: World, folder: Path, name: str, agents: str = "", **changes: Any) -> Beside:
    """A worker that labels, with a log of its own; other settings are given."""
    place = folder / name
    place.mkdir()
    [port] = free_ports(1)
    tree = json.loads(here.config({"embedded": str(place / "underhost.db")}, port).read_text())
    config = place / "underhost.yaml"
    config.write_text(json.dumps({**tree, "sinks": {"labels": True}, **changes}))
    return Beside(stack.enter_context(running(config, place / "underhost.log", agents)), f"127.0.0.1:{port}")


def holder(here: World) -> str:
    return str(here.api.ask("GET", LEASE)["spec"]["holderIdentity"])


def labels(here: World) -> list[tuple[str, str, int]]:
    """The writes of nodes, in order."""
    return [write for write in here.audit.product_writes() if write[1].startswith("/api/v1/nodes/")]


def writes(here: World) -> list[tuple[str, str]]:
    """(user, path) of each write of a worker to nodes and pods, in order."""
    events = here.audit.writes()
    found = [(event["user"]["username"], event["requestURI"].partition("?")[0]) for event in events]
    return [one for one in found if one[0] in {*ADMINS, *USER_TOKENS} and one[1].startswith("/api/v1/")]


def move(here: World, number: int, host: int) -> None:
    hosts = sorted(here.vcenter.hosts)
    here.vcenter.move(here.vm_of[NODES[number]], hosts[host])


def all_labelled(here: World) -> bool:
    """Whether each node carries the host of its VM."""
    live = {node: here.vcenter.host_of(vm) for node, vm in here.vm_of.items()}
    return here.api.node_labels() == live


def two(stack: ExitStack, here: World, folder: Path) -> tuple[Beside, Beside]:
    """The one that acts, and the one that stands by."""
    first = beside(stack, here, folder, "first")
    eventually("the first one holds every lease", lambda: (first.readyz() or {}).get("status") == "ok")
    eventually("it labels", lambda: all_labelled(here))
    second = beside(stack, here, folder, "second")
    said = eventually("the second one is ready", second.readyz)
    name = LEASE.rpartition("/")[2]
    told = f"lease {name} is held by {holder(here)}"
    assert (said["status"], said["reasons"][f"lease {name}"]) == ("standby", told)
    eventually("its log says so, too", lambda: told in second.worker.log())
    return first, second


def test_of_two_workers_one_labels_and_the_other_one_after_a_crash(here: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = two(stack, here, tmp_path)
        before = len(labels(here))
        move(here, 0, 3)
        eventually("the label follows", lambda: all_labelled(here))
        assert len(labels(here)) == before + 1

        was, killed = holder(here), time.monotonic()
        first.worker.end(signal.SIGKILL)
        move(here, 1, 4)
        eventually("another one holds the lease", lambda: holder(here) != was)
        assert time.monotonic() - killed < TAKEN_WITHIN
        eventually("the other one labels", lambda: all_labelled(here))
        assert (second.readyz() or {})["status"] == "ok"
        assert second.worker.end(signal.SIGTERM) == 0
    assert here.api.ask("GET", LEASE)["spec"].get("holderIdentity", "") == ""


def test_a_frozen_worker_writes_nothing_after_another_one_has_taken_over(here: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = two(stack, here, tmp_path)
        was = holder(here)
        os.kill(first.pid, signal.SIGSTOP)
        move(here, 2, 5)
        eventually("the other one labels", lambda: all_labelled(here))
        assert holder(here) != was
        before = len(labels(here))
        os.kill(first.pid, signal.SIGCONT)
        name = LEASE.rpartition("/")[2]
        stands = f"lease {name} is held by {holder(here)}"
        eventually("it stands by", lambda: (first.readyz() or {}).get("reasons", {}).get(f"lease {name}") == stands)
        assert len(labels(here)) == before
        move(here, 2, 6)
        eventually("the label follows", lambda: all_labelled(here))
        assert len(labels(here)) == before + 1
        assert (second.readyz() or {})["status"] == "ok"
        assert "writes stop" not in first.worker.log()


def test_a_worker_that_is_killed_and_started_again_acts_at_once(here: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = beside(stack, here, tmp_path, "first")
        eventually("it holds every lease", lambda: (first.readyz() or {}).get("status") == "ok")
        was = here.api.ask("GET", LEASE)["spec"]
        first.worker.end(signal.SIGKILL)
        first.worker.start()
        now = eventually("a new term has begun", lambda: later(here, was["leaseTransitions"]))
        # Who takes another one's lease waits for its end; who has the same name does not.
        assert now["holderIdentity"] == was["holderIdentity"]


def test_an_account_that_may_only_read_shows_its_findings_and_writes_nothing(here: World, tmp_path: Path) -> None:
    groups = ["", "apps", "batch", "policy", "kubevirt.io"]
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list", "watch"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    here.api.ask("POST", f"{rbac}/clusterroles", {"metadata": {"name": "reader"}, "rules": [rule]})
    user = {"kind": "User", "name": "watcher", "apiGroup": "rbac.authorization.k8s.io"}
    granted = {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    here.api.ask(
        "POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": "reader"}, "subjects": [user], "roleRef": granted}
    )
    reads = here.kube.kubeconfig_of(USER_TOKENS["watcher"])
    with ExitStack() as stack:
        worker = beside(stack, here, tmp_path, "reader", kubernetes={"kubeconfig": str(reads)})
        said = eventually("it is ready", worker.readyz)
        name = LEASE.rpartition("/")[2]
        assert said["status"] == "standby"
        why = said["reasons"][f"lease {name}"]
        assert why.startswith(f"lease {name} is not held: https://")
        assert 'User "watcher" cannot get resource "leases"' in why
        assert why.endswith("(403); grant get, create and update on leases in namespace default")
        site = eventually("it has judged the site", lambda: shown(worker))
        assert (site["nodes"], site["hosts"]) == (7, 7)
        assert worker.worker.log().count("a right to leases is missing") == 1
        assert worker.worker.log().count("(403)") == 1
    assert not [user for user, _ in writes(here) if user == "watcher"]


def shown(worker: Beside) -> dict[str, Any] | None:
    """What the page says of the site, once it has been judged."""
    with urllib.request.urlopen(f"http://{worker.address}/api/v1/sites", timeout=10) as answer:
        [site] = json.load(answer)["sites"]
    return dict(site) if site["ready"] else None


def later(here: World, term: int) -> dict[str, Any] | None:
    """The lease in a later term than this."""
    spec = here.api.ask("GET", LEASE)["spec"]
    return dict(spec) if spec["leaseTransitions"] > term else None


# --------------------------------------------------------------------------------------- every deployment beside Kafka
SINKS = {"labels": True, "bindings": True, "drsRules": True}
LEASED = ("kubernetes", "vsphere", "labeller", "binder", "drs")
"""The roles that take a lease then."""
SPLIT = {"watcher": "kubernetes,vsphere,web", "scheduler": "evaluator,binder,web", "hands": "labeller,drs,web"}


@pytest.fixture(scope="module")
def acting(here: World, lasting_broker: KafkaProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """An all-in-one worker on Kafka."""
    kafka = {"bootstrapServers": lasting_broker.address}
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("acting")
        yield beside(stack, here, folder, "acting", kafka=kafka, sinks=SINKS, kubernetes=account(here, "worker-1"))


@pytest.mark.parametrize(
    ("deployment", "on_kafka"),
    [
        pytest.param(SPLIT, True, id="a split deployment on the same Kafka"),
        pytest.param({"embedded": ""}, False, id="a worker on an embedded log"),
        pytest.param({"next": ""}, True, id="another release on the same Kafka"),
    ],
)
def test_beside_a_worker_on_kafka_nothing_is_done_a_second_time(
    here: World,
    acting: Beside,
    lasting_broker: KafkaProcess,
    tmp_path: Path,
    deployment: dict[str, str],
    on_kafka: bool,
) -> None:
    kafka = {"bootstrapServers": lasting_broker.address}
    given: dict[str, Any] = {"sinks": SINKS, "kubernetes": account(here, "worker-2")}
    given |= {"kafka": kafka} if on_kafka else {}
    number, pod = len(deployment), f"db-{'-'.join(deployment)}"
    eventually("it acts in every role", lambda: (acting.readyz() or {}).get("status") == "ok")
    with ExitStack() as stack:
        workers = [(acting, LEASED)]
        for name, agents in deployment.items():
            roles = tuple(agents.split(",")) if agents else LEASED
            workers.append((beside(stack, here, tmp_path, name, agents, **given), roles))
        held = eventually("one worker holds each lease, and the others say so", lambda: settled(here, workers))
        eventually("it labels", lambda: all_labelled(here))
        topics, began = Listener(kafka), len(writes(here))
        vms, pods = len(changes(topics, "vms")), len(changes(topics, "pods"))
        hosts = sorted(here.vcenter.hosts)
        was = here.vcenter.host_of(here.vm_of[NODES[number]])
        move(here, number, (hosts.index(was) + 1) % len(hosts))
        here.api.add_replica(pod)
        eventually("the label follows", lambda: all_labelled(here))
        eventually("the pod is bound", lambda: pod in here.api.bound())
        eventually("that is published", lambda: len(changes(topics, "pods")) > pods + 1)
        assert settled(here, workers) == held
        for worker, _ in workers[1:]:
            assert worker.worker.end(signal.SIGTERM) == 0
    done = writes(here)[began:]
    assert len({user for user, _ in done}) == 1
    of_node = [path for _, path in done if path == f"/api/v1/nodes/{NODES[number]}"]
    assert (len(of_node), [path for _, path in done].count(f"/api/v1/namespaces/default/pods/{pod}/binding")) == (1, 1)
    published = changes(topics, "pods")[pods:]
    ids = [record.headers["ce_id"] for record in published]
    assert len(ids) == len(set(ids))
    assert {record.headers["ce_term"] for record in published} == {str(held["kubernetes"][1])}
    assert len(changes(topics, "vms")[vms:]) == 1


def account(here: World, name: str) -> dict[str, str]:
    """The settings of an administrator whom the audit log tells from others."""
    return {"kubeconfig": str(here.kube.kubeconfig_of(ADMINS[name]))}


def settled(here: World, workers: Sequence[tuple[Beside, tuple[str, ...]]]) -> dict[str, tuple[str, int]] | None:
    """(holder, term) of each role, once one worker acts in it and every other one that has it names its holder."""
    said = [(worker.readyz(), roles) for worker, roles in workers]
    specs = {lease["metadata"]["name"]: lease["spec"] for lease in here.api.ask("GET", LEASES)["items"]}
    held = {}
    for role in LEASED:
        name = f"underhost-prod-a-{role}"
        spec = specs.get(name, {})
        held[role] = str(spec.get("holderIdentity", "")), int(spec.get("leaseTransitions", 0))
        told = [answer["reasons"].get(f"lease {name}") for answer, roles in said if answer and role in roles]
        if sorted(told, key=str) != [None, *[f"lease {name} is held by {held[role][0]}"] * (len(told) - 1)]:
            return None
    return held if all(answer for answer, _ in said) else None


def changes(topics: Listener, short: str) -> list[Heard]:
    """The records of a topic, but for its sources' markers."""
    return [record for record in topics.records(f"underhost.{short}") if "/listed/" not in record.key]
