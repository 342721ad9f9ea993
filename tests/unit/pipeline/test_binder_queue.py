"""The binder's queue against an API server that loses races: no room counted twice, nobody starved, no try too many.

The real evaluator and the real memory of placements, cycle by cycle, over a cluster in memory whose bindings meet every
fate, and whose watch shows them late.
"""

import random
from dataclasses import dataclass, field

import msgspec
import pytest
from support.build import a_node, a_pod

from underhost.agents.pipeline.decide.evaluator import LazyEvaluator
from underhost.agents.pipeline.decide.placements import BindingQueue, placement_of
from underhost.agents.sinks.bindings import action_of
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import Outcome, Placement

OURS, FOREIGN = [f"n{number}" for number in range(5)], "foreign"
ROOM = 4
"""Pods that a node of ours holds, by cpu. The foreign node, where other schedulers put pods, is closed to us."""
FATES = ("bound", "bound", "bound", "conflict", "stolen", "deleted", "lost", "lost but bound", "denied")


def room_for_four(name: str) -> Node:
    node = a_node(name).has(cpu="4", memory="64Gi")
    return (node.tainted("foreign:NoSchedule") if name == FOREIGN else node).build()


def waiting(name: str, number: int, priority: int, cpu: str = "1") -> Pod:
    pod = a_pod(name).needs(cpu=cpu).created(f"2026-01-01T00:00:{number:02d}Z")
    return pod.spec(schedulerName="underhost", priority=priority).build()


@dataclass
class Server:
    """The truth, and what a watch has shown of it: a change is seen a few cycles late."""

    nodes: dict[str, Node]
    pods: dict[str, Pod]
    seen: dict[str, Pod] = field(default_factory=dict)
    pending: list[tuple[int, str, Pod | None]] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)

    def change(self, at: int, key: str, pod: Pod | None) -> None:
        """The truth changes; the watch shows it at the cycle `at`."""
        if pod is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
        self.pending.append((at, key, pod))

    def show(self, cycle: int) -> Snapshot:
        """What can be seen by now, in the order in which it happened."""
        while self.pending and self.pending[0][0] <= cycle:
            _, key, pod = self.pending.pop(0)
            if pod is None:
                self.seen.pop(key, None)
            else:
                self.seen[key] = pod
        return Snapshot(nodes=self.nodes, pods=dict(self.seen), offsets={"pods": cycle})

    def load(self) -> dict[str, int]:
        """Pods by node, in truth."""
        load = dict.fromkeys(self.nodes, 0)
        for pod in self.pods.values():
            if pod.spec.node_name:
                load[pod.spec.node_name] += 1
        return load

    def bind(self, order: Placement, fate: str, at: int) -> str | None:
        """Carry an order out; the result of its outcome, None where the answer is lost for ever (a killed sink)."""
        assert order.node is not None
        pod = self.pods.get(order.pod)
        if pod is None or pod.metadata.uid != order.uid:
            return "refused"
        if pod.spec.node_name:
            return "applied" if pod.spec.node_name == order.node else "refused"
        if fate == "denied" or order.pod in self.denied:
            self.denied.add(order.pod)
            return "refused"
        if fate == "conflict":
            return "refused"
        if fate == "deleted":
            self.change(at, order.pod, None)
            return "refused"
        if fate == "lost":
            return "failed"
        where = FOREIGN if fate == "stolen" else order.node
        spec = msgspec.structs.replace(pod.spec, node_name=where)
        self.change(at, order.pod, msgspec.structs.replace(pod, spec=spec))
        return {"stolen": "refused", "lost but bound": "failed"}.get(fate, "applied")


def order_id(row: Placement) -> str:
    order = action_of(row, "prod")
    return order.id if order is not None else ""


def run(server: Server, rng: random.Random, cycles: int, fates: tuple[str, ...]) -> dict[str, list[int]]:
    """Cycles of a second; the cycles in which each pod was ordered."""
    options = Options(scheduler_names=("underhost",))
    evaluator, placements, now = LazyEvaluator(options), BindingQueue("prod", []), 0.0
    tries: dict[str, list[int]] = {}
    outcomes: list[Outcome] = []
    for cycle in range(cycles):
        now += 1.0
        for outcome in outcomes:
            placements.observe(outcome, now - 0.5)
        outcomes = []
        snapshot = server.show(cycle)
        assumed = placements.assumed(snapshot, now)
        decided = evaluator.decide(snapshot, assumed)
        rows = [placement_of(each, snapshot.offsets, {}) for each in decided] + placements.overdue(now)
        change = placements.diff(rows, now)
        placements.commit(change)
        for row in change.placements:
            if row.node is None:
                continue
            tries.setdefault(row.pod, []).append(cycle)
            result = server.bind(row, rng.choice(fates), cycle + rng.randint(1, 3))
            outcomes.append(Outcome(order_id(row), "bind", f"pod/{row.pod}", result or "failed", ""))
        over = {node: count for node, count in server.load().items() if node != FOREIGN and count > ROOM}
        assert over == {}, f"cycle {cycle}"
    return tries


def a_server(pods: int) -> Server:
    server = Server({name: room_for_four(name) for name in (*OURS, FOREIGN)}, {})
    for number in range(pods):
        pod = waiting(f"p{number:02}", number, priority=number % 3)
        server.change(0, f"shop/{pod.metadata.name}", pod)
    return server


@pytest.mark.parametrize("seed", range(20))
def test_whatever_becomes_of_bindings_no_room_counts_twice_and_what_fits_is_bound(seed: int) -> None:
    server, rng = a_server(30), random.Random(seed)
    run(server, rng, 60, FATES)
    left = [key for key, pod in server.pods.items() if not pod.spec.node_name and key not in server.denied]
    free = sum(ROOM - count for node, count in server.load().items() if node != FOREIGN)
    assert not (left and free), f"{left} wait while there is room for {free}"


def test_a_hundred_conflicts_are_decided_again_in_the_next_cycle() -> None:
    server = a_server(20)
    first = run(server, random.Random(1), 1, ("conflict",))
    again = run(a_server(20), random.Random(1), 2, ("conflict",))
    assert sorted(first) == [f"shop/p{number:02}" for number in range(20)]
    assert {key: cycles for key, cycles in again.items() if cycles != [0, 1]} == {}


def test_a_pod_that_may_never_be_bound_keeps_no_other_from_its_place() -> None:
    """The highest priority, refused for ever, on the only node: the others take the room while it waits."""
    server = Server({"n0": room_for_four("n0")}, {})
    server.change(0, "shop/first", waiting("first", 0, priority=100, cpu="4"))
    server.change(0, "shop/second", waiting("second", 1, priority=0, cpu="4"))
    server.denied.add("shop/first")
    tries = run(server, random.Random(1), 10, ("bound",))
    assert server.pods["shop/second"].spec.node_name == "n0"
    assert tries["shop/second"] == [2], "the first has been tried twice at once, then it waits"
