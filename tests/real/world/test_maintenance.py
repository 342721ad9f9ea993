"""Maintenance that is carried out on real parts: hosts are emptied one after another, and nothing else moves.

kube-apiserver, KWOK and vcsim; `underhost run` on the embedded default. Seven hosts with a node each, two of which
hold replicas that must be apart; three hosts have their turn.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.fakes.soap_proxy import SoapProxy
from support.processes.kwok import kwok_pod
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST, running
from support.processes.world import World, world
from support.processes.world import eventually as soon_or_later

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

TOKEN = "correct-horse-battery-staple"
PATIENCE = 300.0
"""Seconds that anything is waited for: a machine may be busy."""


def eventually(what: str, ask: Callable[[], object]) -> None:
    """Until `ask` answers something true."""
    soon_or_later(what, lambda: ask() or None, within=PATIENCE)


@dataclass
class Story:
    """A world whose hosts have their turn; `proxy` is how the product reaches the vCenter."""

    here: World
    proxy: SoapProxy
    topics: Listener
    config: Path
    port: int
    log: Path

    @property
    def turns(self) -> list[str]:
        """The hosts that have their turn, by name."""
        return sorted(self.here.vcenter.hosts)[:3]

    def where(self) -> dict[str, str]:
        """The host of each VM."""
        return {vm: self.here.vcenter.host_of(vm) for vm in self.here.vcenter.vms}

    def ready(self) -> None:
        """Two replicas that must be apart run on the first two nodes, and the worker has placed them."""
        for node in ("node-1", "node-2"):
            pod = kwok_pod(f"a-{node}", "underhost", app="a", nodeSelector={"kubernetes.io/hostname": node})
            self.here.api.ask("POST", "/api/v1/namespaces/default/pods", pod)
        eventually("all pods are bound", lambda: len(self.here.api.bound()) == 2)

    def command(self, *more: str) -> list[str]:
        """`underhost maintain --rolling --apply --yes`."""
        hosts = [f"host/{name}" for name in self.turns]
        command = [UNDERHOST, "maintain", *hosts, "--rolling", "--apply", "--yes", *more]
        asked = ["--server", f"http://127.0.0.1:{self.port}", "--token-file", str(self.config.with_name("token"))]
        return [*command, *asked]

    def apply(self, *more: str) -> "subprocess.CompletedProcess[str]":
        """It, to its end."""
        return subprocess.run(self.command(*more), capture_output=True, text=True, timeout=PATIENCE, check=False)

    def outcomes(self, kind: str) -> list[tuple[str, str]]:
        """Result and reason of each command of this kind."""
        heard = [record.value for record in self.topics.records("underhost.outcomes")]
        return [(one["result"], one["reason"]) for one in heard if one["kind"] == kind]


@pytest.fixture
def story(parts: Path, tmp_path: Path) -> Iterator[Story]:
    """A worker's configuration with the sinks that maintenance needs."""
    with world(tmp_path, parts) as here:
        kafka = {"embedded": str(tmp_path / "topics.db")}
        port = free_ports(1)[0]
        config, proxy = here.config(kafka, port), SoapProxy(here.vcsim, tmp_path)
        (tmp_path / "token").write_text(TOKEN)
        with proxy.running():
            tree = json.loads(config.read_text())
            tree["vsphere"] |= {"url": proxy.url, "caFile": str(proxy.ca)}
            tree["sinks"] = {"labels": True, "bindings": True, "moves": True, "maintenance": True}
            tree["moves"] = {"automatic": False, "perMinute": 60}
            tree["web"] |= {"tokenFile": str(tmp_path / "token")}
            config.write_text(json.dumps(tree))
            yield Story(here, proxy, Listener(kafka), config, port, tmp_path / "underhost.log")


def test_three_hosts_are_emptied_and_have_their_turn_one_after_another(story: Story) -> None:
    with running(story.config, story.log) as worker:
        story.ready()
        before, held = story.where(), list[tuple[str, str]]()
        refs = {ref: name for name, ref in story.here.vcenter.host_refs().items()}

        def look(host: str, mode: str) -> None:
            held.extend((vm, at) for vm, at in story.where().items() if at == refs[host])

        story.proxy.on_mode = look
        done = story.apply("--exit")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert worker.end(signal.SIGTERM) == 0
    assert done.stdout.rstrip().endswith("3 hosts done")
    modes = [(refs[host], mode) for host, mode in story.proxy.modes]
    assert sorted(modes) == sorted((name, mode) for name in story.turns for mode in ("Enter", "Exit"))
    for number in range(0, len(modes), 2):  # each is out before the next one begins
        assert [mode for _, mode in modes[number : number + 2]] == ["Enter", "Exit"]
        assert modes[number][0] == modes[number + 1][0]
    assert held == []  # each was empty as it entered, and as it left
    after = story.where()
    assert {before[vm] for vm in before if before[vm] != after[vm]} <= set(story.turns)
    assert {vm: host for vm, host in after.items() if before[vm] not in story.turns} == {
        vm: host for vm, host in before.items() if host not in story.turns
    }
    assert {result for result, _ in story.outcomes("maintenance")} == {"applied"}
    first, second = (after[story.here.vm_of[node]] for node in ("node-1", "node-2"))
    assert first != second


def test_a_task_that_fails_stops_it_with_one_line(story: Story) -> None:
    with running(story.config, story.log) as worker:
        story.ready()
        story.proxy.mode_refusals = 1
        stopped = story.apply("--exit")
        assert worker.end(signal.SIGTERM) == 0
    assert (stopped.returncode, stopped.stderr) == (1, ""), stopped.stdout
    last = stopped.stdout.rstrip().splitlines()[-1]
    assert last.startswith("stopped: host ")
    assert "it could not be put into maintenance mode: vCenter 127.0.0.1:" in last
    assert "permission Host.Config.Maintenance is missing" in last
    assert story.proxy.modes == []
    assert last.removeprefix("stopped: ") in [reason for _, reason in story.outcomes("maintenance")]


def test_a_worker_that_is_killed_moves_nothing_twice_and_its_end_is_said(story: Story) -> None:
    story.proxy.holding = True
    with running(story.config, story.log) as worker:
        story.ready()
        asking = subprocess.Popen(story.command("--exit"), stdout=subprocess.PIPE, text=True)
        assert story.proxy.held.wait(PATIENCE)  # the first VM is on its way
        worker.end(signal.SIGKILL)
        story.proxy.holding = False
        story.proxy.free.set()
        worker.start()
        said, _ = asking.communicate(timeout=PATIENCE)
        labels = {node: story.here.vcenter.host_of(vm) for node, vm in story.here.vm_of.items()}
        eventually("each node's label names its host", lambda: story.here.api.node_labels() == labels)
        assert worker.end(signal.SIGTERM) == 0
    assert asking.returncode == 1
    first, *others = story.turns
    assert said.rstrip().splitlines()[-1] == (
        "stopped: the worker that carried it out has ended, or has lost the site, and nobody goes on with it;"
        f" {first} may be in maintenance mode; {', '.join(others)} had no turn"
    )
    assert len({vm for vm, _ in story.proxy.relocations}) == len(story.proxy.relocations) == 1
    assert story.proxy.modes == []
