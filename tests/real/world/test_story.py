"""The whole story on real parts: kube-apiserver with KWOK, vcsim, and Kafka or the embedded default in the middle.

Label, bind, rule, a vMotion that ignores rules, a finding, the way back. One process of `underhost run`, judged only by
what the real parts and an independent consumer say.
"""

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import answer_of, running
from support.processes.world import CLUSTER, FOREIGN_RULE, NODES, World, eventually, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SITE = "prod-a"
REPLICAS = tuple(f"db-{number}" for number in range(8))
REASON = "node(s) didn't match pod anti-affinity rules"


@pytest.fixture
def here(tmp_path: Path, parts: Path) -> Iterator[World]:
    with world(tmp_path, parts) as made:
        yield made


def own_rules(here: World) -> dict[str, list[str]]:
    return {name: vms for name, (_, vms) in here.vcenter.rules().items() if name != FOREIGN_RULE}


def applied(listener: Listener, kind: str) -> list[str]:
    """The targets of the applied commands of a kind, in order."""
    return [
        record.value["target"]
        for record in listener.records("underhost.outcomes")
        if record.value["kind"] == kind and record.value["result"] == "applied"
    ]


def the_label_follows_the_host(here: World) -> None:
    hosts = {node: here.vcenter.host_of(vm) for node, vm in here.vm_of.items()}
    eventually("the host label is on every Node", lambda: here.api.node_labels() == hosts)


def seven_are_bound_and_the_eighth_waits(here: World, listener: Listener) -> str:
    """The name of the waiting replica."""
    eventually("seven of eight replicas are bound", lambda: len(here.api.bound()) == 7)
    bound = here.api.bound()
    assert sorted(bound.values()) == sorted(NODES)
    [waiting] = set(REPLICAS) - set(bound)

    def reason() -> Any:
        placements = [r.value for r in listener.records("underhost.placements")]
        newest = [value for value in placements if value["pod"] == f"default/{waiting}"][-1:]
        return newest and newest[0]["node"] is None and newest[0]["failed"] == {REASON: 7}

    eventually("the eighth waits with its reason", reason)
    return waiting


def a_poison_record_lands_in_dead_letters(transport: Mapping[str, str], listener: Listener) -> None:
    """Somebody publishes rubbish to a change topic; the story that goes on after it shows that the stream does."""
    key = f"{SITE}/pod/default/rubbish"
    listener.publish("underhost.pods", key, b"{not json", site=SITE)
    letter = eventually(
        "the record is a dead letter",
        lambda: [r for r in listener.raw("underhost.dead-letters") if r[0] == key.encode()],
    )[0]
    headers = dict(letter[2])
    assert (letter[1][:7], headers["origin_topic"], headers["stage"]) == (b"sha256:", b"underhost.pods", b"tables")
    assert int(headers["origin_offset"]) > 0
    assert headers["error"]


def the_files_say_the_same(here: World, folder: Path, pods: set[str], waiting: str) -> None:
    """`inventory`, `check` and `explain` over a dump of the real cluster and what vCenter says now."""
    (folder / "dump.json").write_text(json.dumps(here.api.dump()))
    inventory = answer_of("inventory", "--config", str(folder / "underhost.yaml"), "-o", "json", code=0)
    (folder / "inventory.json").write_text(json.dumps(inventory))
    files = ("-f", str(folder / "dump.json"), "--inventory", str(folder / "inventory.json"), "-o", "json")
    report = answer_of("check", *files, code=1)
    [found] = [finding for finding in report["findings"] if finding["severity"] == "violation"]
    assert ({found["pod"], *found["peers"]}, found["rule"]) == (pods, "InterPodAffinity")
    explained = answer_of("explain", f"default/{waiting}", *files, code=0)["pods"][f"default/{waiting}"]["nodes"]
    assert {node: verdict["failing"] for node, verdict in explained.items()} == {
        node: {"InterPodAffinity": [REASON]} for node in NODES
    }


def the_finding(listener: Listener, pods: set[str]) -> Any:
    """The open violation of the shared host, once it is there."""

    def look() -> Any:
        return [
            finding
            for finding in listener.open_findings().values()
            if finding["severity"] == "violation" and {finding["pod"], *finding["peers"]} == pods
        ]

    return eventually(f"a violation of {sorted(pods)} is open", look)[0]


@pytest.mark.parametrize("transport", ["kafka", "embedded"], indirect=True)
def test_the_whole_story(here: World, transport: Mapping[str, str], tmp_path: Path) -> None:
    listener = Listener(transport)
    config = here.config(transport, free_ports(1)[0])
    with running(config, tmp_path / "underhost.log") as pipeline:
        the_label_follows_the_host(here)
        for name in REPLICAS:
            here.api.add_replica(name)
        waiting = seven_are_bound_and_the_eighth_waits(here, listener)
        every_vm = sorted(here.vm_of.values())
        eventually("one DRS rule keeps all seven VMs apart", lambda: list(own_rules(here).values()) == [every_vm])
        assert here.vcenter.rules()[FOREIGN_RULE] == (False, every_vm[:2])

        # An operator moves the second VM to the first one's host: vCenter obeys, rules or not.
        at = here.api.bound()
        first, second = NODES[0], NODES[1]
        here.vcenter.move(here.vm_of[second], here.vcenter.host_of(here.vm_of[first]))
        shared = here.vcenter.host_of(here.vm_of[first])
        eventually("the label follows", lambda: here.api.node_labels()[second] == shared)
        pods = {f"default/{name}" for name, node in at.items() if node in (first, second)}
        found = the_finding(listener, pods)
        assert (found["state"], found["rule"], found["site"]) == ("opened", "InterPodAffinity", SITE)
        assert found["domain"]["value"] == shared
        for word in (*pods, first, second, shared):
            assert word in found["message"]
        record = next(r for r in listener.records("underhost.violations") if r.value and r.value["id"] == found["id"])
        assert record.key == f"{SITE}/{found['id']}"
        assert record.headers["ce_specversion"] == "1.0"
        assert record.headers["ce_type"] == "underhost.violations.v1"
        assert record.headers["ce_source"] == f"/sites/{SITE}"
        assert record.headers["content-type"] == "application/json"
        assert record.headers["ce_id"]
        assert record.headers["ce_time"]

        the_files_say_the_same(here, tmp_path, pods, waiting)
        if "bootstrapServers" in transport:
            a_poison_record_lands_in_dead_letters(transport, listener)

        # The way back resolves it.
        free = next(host for host in here.vcenter.hosts if host not in here.api.node_labels().values())
        here.vcenter.move(here.vm_of[second], free)
        eventually("the finding resolves", lambda: found["id"] not in listener.open_findings())
        the_label_follows_the_host(here)
        assert own_rules(here) and here.vcenter.rules()[FOREIGN_RULE] == (False, every_vm[:2])
        assert sorted(applied(listener, "bind")) == sorted(f"pod/default/{name}" for name in at)
        assert applied(listener, "label").count(f"node/{second}") == 3
        assert pipeline.end(signal.SIGTERM) == 0
    assert CLUSTER in str(listener.records("underhost.drs-rules")[0])


@pytest.mark.parametrize("transport", ["kafka", "embedded"], indirect=True)
def test_kill_9_in_the_middle_ends_in_the_same_state_with_no_duplicate_action(
    here: World, transport: Mapping[str, str], tmp_path: Path
) -> None:
    listener = Listener(transport)
    config = here.config(transport, free_ports(1)[0])
    with running(config, tmp_path / "underhost.log") as pipeline:
        the_label_follows_the_host(here)
        for name in REPLICAS:
            here.api.add_replica(name)
        eventually("the first replicas are bound", lambda: len(here.api.bound()) >= 2)
        pipeline.end(signal.SIGKILL)

        # While nobody watches, an operator moves a VM to a host that has one already.
        stays, moved = NODES[0], NODES[2]
        shared = here.vcenter.host_of(here.vm_of[stays])
        here.vcenter.move(here.vm_of[moved], shared)
        before = here.api.bound()

        pipeline.start()
        the_label_follows_the_host(here)
        eventually("every host has a replica", lambda: hosts_of(here) == set(here.api.node_labels().values()))
        shares = {f"default/{name}" for name, node in before.items() if node in (stays, moved)}
        if len(shares) == 2:
            the_finding(listener, shares)
        eventually("the rest wait", lambda: len(newest_placements(listener, node=None)) == 8 - len(here.api.bound()))

        # The end state is the same as without the kill, and the API server saw no write twice.
        bound = here.api.bound()
        assert len(bound) == len(hosts_of(here)) + (1 if len(shares) == 2 else 0)
        binding = "/api/v1/namespaces/default/pods/{}/binding"
        writes = [write for write in here.audit.product_writes() if not tells_people(write[1])]
        assert sorted(w for w in writes if w[0] == "create") == sorted(
            ("create", binding.format(name), 201) for name in bound
        )
        assert sorted(w for w in writes if w[0] == "patch") == sorted(
            ("patch", f"/api/v1/nodes/{name}", 200) for name in (*NODES, moved)
        )
        assert len(writes) == len(bound) + len(NODES) + 1
        assert pipeline.end(signal.SIGTERM) == 0


def tells_people(path: str) -> bool:
    """Whether a write is an Event, or the condition of a pod that waits: told again after a restart, counts go up."""
    return "/events" in path or path.endswith("/status")


def hosts_of(here: World) -> set[str]:
    """The hosts that the bound replicas run on."""
    return {here.vcenter.host_of(here.vm_of[node]) for node in here.api.bound().values()}


def newest_placements(listener: Listener, node: str | None) -> list[str]:
    """The pods whose newest decision names this node (None: they wait)."""
    newest = {record.key: record.value for record in listener.records("underhost.placements")}
    return [value["pod"] for value in newest.values() if value["node"] == node]
