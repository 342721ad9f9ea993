"""Repairs that are carried out on real parts: VMs move, a pod is evicted, and nothing else is touched.

kube-apiserver with ReplicaSets, KWOK and vcsim; `underhost run` on Kafka, on the embedded log where vCenter refuses.
Two pairs of replicas share a host each, and one pod is on a node that it does not ask for any more: two vMotions and
one eviction. One host is full, and a foreign DRS rule forbids another.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.processes.kwok import kwok_pod
from support.processes.underhost import Worker, running
from support.processes.world import world
from support.workers.mover import PATIENCE, Moving, eventually, moving

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

GRAVE = {"violation", "physical", "quorum"}


class Story(Moving):
    """A world that is about to break."""

    def pairs(self) -> list[tuple[str, str]]:
        """The VMs that will share a host, two and two."""
        of = self.here.vm_of
        return [(of["node-1"], of["node-2"]), (of["node-3"], of["node-4"])]

    def break_it(self) -> None:
        """Both pairs share a host, and node-5 loses the label that `fast` asks for, which node-7 gets."""
        for stays, comes in self.pairs():
            self.here.vcenter.move(comes, self.here.vcenter.host_of(stays))
        self.label("node-7", disk="fast")
        self.label("node-5", disk=None)

    def label(self, node: str, **labels: str | None) -> None:
        self.here.api.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})

    def broken(self) -> Counter[str]:
        """The grave findings that are open, by rule."""
        return Counter(one["rule"] for one in self.topics.open_findings().values() if one["severity"] in GRAVE)

    def evictions(self) -> list[int]:
        return [code for _, path, code in self.here.audit.product_writes() if path.endswith("/eviction")]

    def begun(self, worker: Worker) -> None:
        """All pods run, on a whole site; then it breaks."""
        self.replicas()
        eventually("all pods are bound", lambda: len(self.here.api.bound()) == 6)
        eventually("nothing is broken", lambda: not self.broken())
        self.break_it()
        eventually("three findings", lambda: self.broken() == Counter(InterPodAffinity=2, NodeAffinity=1))

    def replicas(self) -> None:
        """Two pairs that must be apart, each on its nodes, and two replicas on a fast disk."""
        for app, nodes in (("a", ("node-1", "node-2")), ("b", ("node-3", "node-4"))):
            for node in nodes:
                pod = kwok_pod(f"{app}-{node}", "underhost", app=app, nodeSelector={"kubernetes.io/hostname": node})
                self.here.api.ask("POST", "/api/v1/namespaces/default/pods", pod)
        pod = kwok_pod("fast", "underhost", nodeSelector={"disk": "fast"})
        template = {"metadata": {"labels": {"app": "fast"}}, "spec": pod["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "fast"}}, "template": template}
        body = {"metadata": {"name": "fast"}, "spec": spec}
        for node in ("node-5", "node-6"):
            self.label(node, disk="fast")
        self.here.api.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", body)

    def is_mended(self) -> bool:
        """Nothing is broken, and each node's label names its host."""
        labels = {node: self.here.vcenter.host_of(vm) for node, vm in self.here.vm_of.items()}
        return not self.broken() and self.here.api.node_labels() == labels

    def check_moves(self, before: dict[str, str]) -> None:
        """One VM of each pair has moved, to a host that may take it; all others are where they were."""
        after = self.where()
        moved = {vm for vm in before if before[vm] != after[vm]}
        assert [len(moved & set(pair)) for pair in self.pairs()] == [1, 1]
        assert len(moved) == 2
        home = sorted(self.here.vcenter.hosts)
        assert {after[vm] for vm in moved}.isdisjoint({home[1], home[3]})  # the full one, and the forbidden one
        assert len({vm for vm, _ in self.proxy.relocations}) == len(self.proxy.relocations) == 2


@pytest.fixture
def story(parts: Path, tmp_path: Path, transport: Mapping[str, str]) -> Iterator[Story]:
    """A worker's configuration with every sink; repairs are made where a person asks."""
    with world(tmp_path, parts, 2, "replicaset-controller") as here:
        vms, home = list(here.vcenter.vms), sorted(here.vcenter.hosts)
        here.vcenter.give_memory(vms[7], 4090)
        here.vcenter.move(vms[7], home[1])  # which is left with no room
        here.vcenter.move(vms[8], home[3])
        here.vcenter.keep_apart("licences", vms[0], vms[1], vms[8])
        here.vcenter.keep_apart("more-licences", vms[2], vms[3], vms[8])
        with moving(Story, here, transport, tmp_path, evictions=True) as story:
            story.set(evictions={"wait": 3600})
            yield story


@pytest.mark.parametrize("transport", ["kafka"], indirect=True)
def test_a_repair_moves_two_vms_and_evicts_one_pod_and_nothing_else(story: Story) -> None:
    with running(story.config, story.log) as worker:
        story.begun(worker)
        before, bound = story.where(), story.here.api.bound()
        done = story.ask("repair", "--apply", "--yes")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        eventually("all is mended", story.is_mended)
        assert worker.end(signal.SIGTERM) == 0
    story.check_moves(before)
    assert story.evictions() == [201]
    after = story.here.api.bound()
    gone = bound.keys() - after.keys()
    assert [bound[pod] for pod in gone] == ["node-5"]
    assert {pod: node for pod, node in after.items() if pod in bound} == {
        pod: node for pod, node in bound.items() if pod not in gone
    }
    assert done.stdout.rstrip().endswith("nothing left")
    assert story.outcomes("move") and {result for result, _ in story.outcomes("move")} == {"applied"}


@pytest.mark.parametrize("transport", ["kafka"], indirect=True)
def test_a_worker_that_is_killed_in_the_middle_moves_nothing_twice(story: Story) -> None:
    story.set(moves={"wait": 0, "perMinute": 60, "perCluster": 1}, evictions={"wait": 0})
    story.proxy.holding = True
    with running(story.config, story.log) as worker:
        story.replicas()
        eventually("all pods are bound", lambda: len(story.here.api.bound()) == 6)
        before = story.where()
        story.break_it()
        for stays, comes in story.pairs():
            before[comes] = before[stays]
        assert story.proxy.held.wait(PATIENCE)
        worker.end(signal.SIGKILL)
        story.proxy.holding = False
        story.proxy.free.set()
        worker.start()
        eventually("all is mended", story.is_mended)
        assert worker.end(signal.SIGTERM) == 0
    story.check_moves(before)
    assert story.evictions() == [201]


def test_a_relocation_that_is_refused_or_fails_leads_to_another_plan(story: Story) -> None:
    story.set(moves={"wait": 0, "perMinute": 60}, evictions={"wait": 0})
    with running(story.config, story.log) as worker:
        story.replicas()
        eventually("all pods are bound", lambda: len(story.here.api.bound()) == 6)
        story.proxy.refusals = story.proxy.failures = 1
        before = story.where()
        story.break_it()
        for stays, comes in story.pairs():
            before[comes] = before[stays]
        eventually("all is mended", story.is_mended)
        eventually("both are told", lambda: len(in_vain(story)) == 2)
        assert worker.end(signal.SIGTERM) == 0
    (first, refusal), (second, failure) = sorted(in_vain(story), reverse=True)
    assert (first, second) == ("refused", "failed")
    assert refusal.startswith("the vMotion failed: vCenter 127.0.0.1:")
    assert refusal.endswith("permission Resource.HotMigrate is missing")
    assert failure.startswith("the vMotion failed: vCenter 127.0.0.1:")
    assert len(story.proxy.in_vain) == 2
    assert set(story.proxy.in_vain).isdisjoint(story.proxy.relocations)
    story.check_moves(before)


def in_vain(story: Story) -> list[tuple[str, str]]:
    return [one for one in story.outcomes("move") if one[1].startswith("the vMotion failed: ")]
