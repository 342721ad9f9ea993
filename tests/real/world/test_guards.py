"""The guards on real parts: a vCenter that shows less, nothing, or falls silent.

One kube-apiserver (with its audit log) and one vCenter for all tests; `underhost run` is a process of its own on the
embedded default, judged by the API server's audit log, vCenter's rules and an independent reader of the topics.
"""

import itertools
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim
from support.processes.kwok import HOST_LABEL
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST, running
from support.processes.vcsim import start_vcsim
from support.processes.world import NODES, VCenter, World, eventually, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SITE = "prod-a"
FULL = 7


class Site:
    """The world, with a vCenter that can come back with another inventory, and a pipeline over it."""

    def __init__(self, here: World, parts: Path, folder: Path, **changes: Any) -> None:
        self._parts, self._folder, self._web = parts, folder, free_ports(1)[0]
        self.here = here
        kafka = {"embedded": str(folder / "underhost.db")}
        tree = json.loads(here.config(kafka, self._web).read_text())
        tree["vsphere"] |= {"pollInterval": 1, "staleAfter": 5}
        self.config = folder / "underhost.yaml"
        self.config.write_text(json.dumps({**tree, **changes}))
        self.topics = Listener(kafka)
        self.log = folder / "underhost.log"

    def ask(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._web}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def metric(self, line: str) -> float:
        """The value of the series that is written so, 0 where there is none."""
        found = [text.rpartition(" ")[2] for text in self.ask("/metrics").splitlines() if text.startswith(line + " ")]
        return float(found[0]) if found else 0.0

    def status(self) -> str:
        try:
            return str(json.loads(self.ask("/readyz"))["status"])
        except OSError:
            return ""

    def started(self) -> None:
        """The worker listens, and has opened its topics."""
        eventually("the worker answers", lambda: self.status() or None)

    def evaluated_again(self) -> None:
        """Whatever has reached the topics by now has been decided upon."""
        before = self.metric(f'underhost_evaluation_seconds_count{{site="{SITE}"}}')
        eventually(
            "two more evaluations",
            lambda: self.metric(f'underhost_evaluation_seconds_count{{site="{SITE}"}}') >= before + 2,
        )

    def writes(self) -> list[tuple[str, str, int]]:
        return self.here.audit.product_writes()

    def ordered(self) -> list[str]:
        """The target of every command, in order: what is not ordered is not written a moment later either.

        Without Events, which only tell of what was done.
        """
        records = self.topics.records("underhost.actions")
        return [record.value["target"] for record in records if record.value["kind"] != "event"]

    def stopped(self) -> list[Any]:
        """The open findings that say that writes stop."""
        return [found for found in self.topics.open_findings().values() if found["rule"] == "Inventory"]

    def stops(self) -> list[Any]:
        """Those findings, once there is one."""
        return eventually("writes stop", lambda: self.stopped() or None)

    def vcenter_comes_back(self, hosts: int, vms: int = FULL) -> None:
        """Another inventory behind the same address, as after a loss of rights, or of the database."""
        self.here.vcsim.stop()
        vcsim = start_vcsim(self._parts, hosts, vms, port=self.here.vcsim.port)
        self.here = replace(self.here, vcsim=vcsim, vcenter=VCenter(vcsim))
        # vcsim places VMs at random. Other hosts than before, and none empty: the pod that waits needs a third one.
        hosts_in_turn = itertools.cycle(sorted(self.here.vcenter.hosts, reverse=True))
        for vm, host in zip(self.here.vcenter.vms, hosts_in_turn, strict=False):
            self.here.vcenter.move(vm, host)

    def hosts_of_nodes(self) -> dict[str, str]:
        return {node: self.here.vcenter.host_of(vm) for node, vm in zip(NODES, self.here.vcenter.vms, strict=True)}

    def labels_are_right(self) -> bool:
        return self.here.api.node_labels() == self.hosts_of_nodes()

    def resume(self) -> str:
        command = [UNDERHOST, "resume", SITE, "--config", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture(scope="module")
def everything(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("world"), parts) as made:
        yield made


@pytest.fixture
def here(everything: World, parts: Path) -> Iterator[World]:
    """The world with a vCenter of its own, seven VMs on seven hosts, and no pod."""
    vcsim = start_vcsim(parts, FULL, FULL)
    vcenter = VCenter(vcsim)
    for vm, host in zip(vcenter.vms, sorted(vcenter.hosts), strict=True):
        vcenter.move(vm, host)
    vcenter.add_foreign_rule()
    yield replace(everything, vcsim=vcsim, vcenter=vcenter)
    vcsim.stop()
    everything.api.ask("DELETE", "/api/v1/namespaces/default/pods")


@pytest.fixture
def site(here: World, parts: Path, tmp_path: Path) -> Iterator[Site]:
    made = Site(here, parts, tmp_path)
    yield made
    made.here.vcsim.stop()


def test_a_vcenter_that_lost_its_hosts_stops_every_write_until_a_person_resumes(site: Site) -> None:
    with running(site.config, site.log) as pipeline:
        for name in ("db-0", "db-1"):
            site.here.api.add_replica(name)
        eventually("labels and bindings", lambda: site.labels_are_right() and len(site.here.api.bound()) == 2)
        eventually("a rule keeps the two apart", lambda: len(site.here.vcenter.rules()) == 2)

        site.vcenter_comes_back(hosts=3)  # and its VMs are on other hosts, and our rule is gone
        [found] = site.stops()
        before, ordered = site.writes(), site.ordered()
        assert (found["severity"], found["domain"]["value"]) == ("unknown-node", "vsphere")
        assert "hosts: 4 of 7 objects of site prod-a are missing in the new list" in found["message"]
        assert found["message"].endswith("underhost resume prod-a")

        # What would be written at any other time: a label by hand, a pod that waits, a rule that is missing.
        site.here.api.ask("PATCH", f"/api/v1/nodes/{NODES[0]}", {"metadata": {"labels": {HOST_LABEL: "by-hand"}}})
        site.here.api.add_replica("db-2")
        eventually(
            "the pod is in the topics", lambda: any("db-2" in r.key for r in site.topics.records("underhost.pods"))
        )
        site.evaluated_again()
        assert site.status() == "stopped"
        assert site.metric(f'underhost_writes_stopped{{site="{SITE}",why="shrunk"}}') == 1

        pipeline.end(signal.SIGKILL)
        pipeline.start()
        eventually("it has started again", lambda: site.status() == "stopped")
        site.evaluated_again()
        assert [again["id"] for again in site.stopped()] == [found["id"]]
        assert (site.writes(), site.ordered()) == (before, ordered)
        assert site.here.vcenter.rules() == {}
        assert tombstones(site, "underhost.hosts") == tombstones(site, "underhost.node-hosts") == []

        assert site.resume().splitlines()[0] == "Site prod-a goes on. Accepted:"
        eventually("labels follow", site.labels_are_right)
        eventually("the pod is bound, as far as the hosts allow it", lambda: "db-2" in site.here.api.bound())
        eventually("the finding is resolved", lambda: not site.stopped())
        assert len(tombstones(site, "underhost.hosts")) == 4
        assert site.resume() == "Site prod-a was not stopped.\n"


def tombstones(site: Site, topic: str) -> list[str]:
    return [record.key for record in site.topics.records(topic) if record.value is None]


def test_a_vcenter_that_shows_nothing_then_everything_again_waits_for_a_person_too(site: Site) -> None:
    with running(site.config, site.log):
        site.started()
        eventually("labels", site.labels_are_right)
        site.vcenter_comes_back(hosts=0, vms=0)
        site.stops()
        before, ordered = site.writes(), site.ordered()
        site.vcenter_comes_back(hosts=FULL)
        moved = eventually("a node's label is wrong now", lambda: not site.labels_are_right())
        assert moved
        eventually("what is there again is seen", lambda: newest_hosts(site) == set(site.hosts_of_nodes().values()))
        site.evaluated_again()
        assert len(site.stopped()) == 1
        assert (site.writes(), site.ordered()) == (before, ordered)
        assert tombstones(site, "underhost.vms") == tombstones(site, "underhost.hosts") == []
        site.resume()
        eventually("labels follow", site.labels_are_right)


def newest_hosts(site: Site) -> set[str]:
    """The hosts that the newest records of `node-hosts` name."""
    newest = {record.key: record.value for record in site.topics.records("underhost.node-hosts")}
    return {value["hostName"] for value in newest.values() if value is not None}


def test_a_vcenter_that_is_away_deletes_nothing_and_stops_only_what_rests_on_hosts(
    site: Site,
) -> None:
    option = vim.option.OptionValue(key="config.vmacore.soap.sessionTimeout", value="1s")
    site.here.vcenter.set_option(option)
    with running(site.config, site.log):
        eventually("labels", site.labels_are_right)
        site.here.vcsim.process.send_signal(signal.SIGSTOP)
        [found] = site.stops()
        before, ordered = site.writes(), site.ordered()
        assert (found["severity"], found["reason"]) == ("unknown-host", "vSphere data is too old")
        assert site.metric(f'underhost_writes_stopped{{site="{SITE}",why="stale"}}') == 1
        site.here.api.ask("PATCH", f"/api/v1/nodes/{NODES[0]}", {"metadata": {"labels": {HOST_LABEL: "by-hand"}}})
        site.here.api.add_replica("db-9")
        eventually("a preference for hosts does not keep pods waiting", lambda: "db-9" in site.here.api.bound())
        site.evaluated_again()
        later = [write for write in site.writes() if write not in before]
        # The Event that tells of the binding comes when it comes; it rests on no host.
        assert [
            write for write in later if write != ("create", "/apis/events.k8s.io/v1/namespaces/default/events", 201)
        ] == [("create", "/api/v1/namespaces/default/pods/db-9/binding", 201)]
        assert site.ordered() == ordered
        site.here.vcsim.process.send_signal(signal.SIGCONT)
        eventually("it recovers unaided", lambda: not site.stopped() and site.labels_are_right())
    for topic in ("underhost.hosts", "underhost.vms", "underhost.node-hosts"):
        assert tombstones(site, topic) == []


def test_a_kubernetes_api_that_freezes_stops_every_write_and_recovers_unaided(site: Site) -> None:
    tree = json.loads(site.config.read_text())
    tree["kubernetes"]["staleAfter"] = 8
    site.config.write_text(json.dumps(tree))
    [_, api_server] = site.here.kube.pids()
    with running(site.config, site.log):
        site.started()
        eventually("it decides", lambda: site.status() == "ok")
        eventually("labels", site.labels_are_right)
        os.kill(api_server, signal.SIGSTOP)
        try:
            [found] = site.stops()
            ordered = site.ordered()
            assert (found["severity"], found["reason"]) == ("unknown-node", "Kubernetes data is too old")
            assert found["message"].startswith("the Kubernetes API has not answered for over 8 s")
            assert site.status() == "stopped"
            assert site.metric(f'underhost_writes_stopped{{site="{SITE}",why="stale"}}') == 1
            vm, host = site.here.vm_of[NODES[0]], site.here.vcenter.host_of(site.here.vm_of[NODES[1]])
            site.here.vcenter.move(vm, host)
            eventually("the move is seen", lambda: newest_hosts(site) == set(site.hosts_of_nodes().values()))
            site.evaluated_again()
            assert site.ordered() == ordered
        finally:
            os.kill(api_server, signal.SIGCONT)
        eventually("it recovers unaided", lambda: not site.stopped() and site.labels_are_right())
