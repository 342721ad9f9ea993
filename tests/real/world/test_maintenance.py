"""Maintenance that is carried out on real parts: hosts are emptied one after another, and nothing else moves.

kube-apiserver, KWOK and vcsim; `underhost run` on the embedded default. Seven hosts with a node each, two of which
hold replicas that must be apart; three hosts have their turn.
"""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.kwok import kwok_pod
from support.processes.underhost import running
from support.processes.world import world
from support.workers.mover import PATIENCE, Moving, eventually, moving

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


class Story(Moving):
    """A world whose hosts have their turn."""

    @property
    def turns(self) -> list[str]:
        """The hosts that have their turn, by name."""
        return sorted(self.here.vcenter.hosts)[:3]

    def ready(self) -> None:
        """Two replicas that must be apart run on the first two nodes, and the worker has placed them."""
        for node in ("node-1", "node-2"):
            pod = kwok_pod(f"a-{node}", "underhost", app="a", nodeSelector={"kubernetes.io/hostname": node})
            self.here.api.ask("POST", "/api/v1/namespaces/default/pods", pod)
        eventually("all pods are bound", lambda: len(self.here.api.bound()) == 2)

    def maintain(self) -> list[str]:
        """The words of the command."""
        hosts = [f"host/{name}" for name in self.turns]
        return ["maintain", *hosts, "--rolling", "--apply", "--exit", "--yes"]


@pytest.fixture
def story(parts: Path, tmp_path: Path) -> Iterator[Story]:
    """A worker's configuration with the sinks that maintenance needs."""
    with world(tmp_path, parts) as here:
        kafka = {"embedded": str(tmp_path / "topics.db")}
        with moving(Story, here, kafka, tmp_path, maintenance=True) as story:
            yield story


def test_three_hosts_are_emptied_and_have_their_turn_one_after_another(story: Story) -> None:
    with running(story.config, story.log) as worker:
        story.ready()
        before, held = story.where(), list[tuple[str, str]]()
        refs = {ref: name for name, ref in story.here.vcenter.host_refs().items()}

        def look(host: str, mode: str) -> None:
            held.extend((vm, at) for vm, at in story.where().items() if at == refs[host])

        story.proxy.on_mode = look
        done = story.ask(*story.maintain())
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
        stopped = story.ask(*story.maintain())
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
        asking = subprocess.Popen(story.command(*story.maintain()), stdout=subprocess.PIPE, text=True)
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
