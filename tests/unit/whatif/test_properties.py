"""What holds for every plan on every site: budgets, capacity, the order of the input, and what other answers say."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace as with_parts

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.build import a_budget
from support.sites.random_cluster import APPS, RandomCluster

from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.disruption import cover, covered_of
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.budgets import FollowedCoverage
from underhost.agents.whatif.each import each
from underhost.agents.whatif.nodes import cordoned
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.pods import is_replaced_already, successor
from underhost.agents.whatif.steps import Cordon, Delete, Drain, Fail, Label, Step, TaintNode
from underhost.agents.whatif.world import World
from underhost.schemas import kubernetes as k8s
from underhost.schemas.documents import to_json
from underhost.schemas.vsphere import Host, Vm

OWNERS = ("ReplicaSet", "ReplicaSet", "StatefulSet", "Job", "DaemonSet", "")
SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=30)


def a_site(seed: int, *, pending: int = 0, budgets: int = 0) -> Snapshot:
    """A random cluster whose pods have owners and are mostly ready, with budgets, on hosts with VMs."""
    dice = random.Random(seed)
    made = RandomCluster(seed, running=20, pending=pending).snapshot()
    pods = {key: _owned(pod, dice) for key, pod in made.pods.items()}
    found = [_budget(f"b{number}", dice) for number in range(budgets)]
    hosts = {name: Host(name=f"esx-{name}", id=name) for name in ("h1", "h2", "h3")}
    vms = {one.vm: Vm(name=one.vm, id=one.vm, host=one.host) for one in made.node_hosts.values() if one.host}
    return with_parts(
        made, pods=pods, budgets={f"shop/{one.metadata.name}": one for one in found}, hosts=hosts, vms=vms
    )


def _owned(pod: k8s.Pod, dice: random.Random) -> k8s.Pod:
    kind = dice.choice(OWNERS)
    owners = [k8s.OwnerReference(kind, "owner", f"uid-{kind}", controller=True)] if kind else None
    ready = k8s.Condition("Ready", "True" if dice.random() < 0.85 else "False")
    running = bool(pod.spec.node_name)
    return replace(
        pod,
        metadata=replace(pod.metadata, owner_references=owners),
        status=replace(pod.status, conditions=[ready] if running else None),
    )


def _budget(name: str, dice: random.Random) -> k8s.Budget:
    figures = dice.choice(
        [{"min_available": dice.randrange(5)}, {"min_available": "50%"}, {"max_unavailable": dice.randrange(3)}]
    )
    return a_budget(name, {"matchLabels": {"app": dice.choice(APPS)}}, **figures).build()  # type: ignore[arg-type]


def a_plan(site: Snapshot, seed: int) -> list[Step]:
    """One to four steps that name what is there."""
    dice = random.Random(seed)
    nodes, pods = sorted(site.nodes), sorted(site.pods)
    dice.shuffle(pods)  # a pod that a step has lost cannot be deleted after it
    steps: list[Step] = [Delete(pods.pop()) for _ in range(dice.randrange(3))]
    for _ in range(dice.randint(1, 3)):
        node = dice.choice(nodes)
        steps.append(
            dice.choice(
                [
                    Drain((node,)),
                    Fail((f"node/{node}",)),
                    Fail((f"host/{dice.choice(('h1', 'h2', 'h3'))}",), dice.random() < 0.5),
                    Cordon(node, dice.random() < 0.5),
                    TaintNode(node, "k", "v", dice.choice(("NoSchedule", "NoExecute"))),
                    Label(node, "rack", dice.choice(("r1", "r2"))),
                ]
            )
        )
    return steps


@MANY
@given(SEEDS)
def test_a_drain_never_takes_a_pod_that_a_budget_needs(seed: int) -> None:
    site = a_site(seed, budgets=3)
    rounds: list[tuple[Snapshot, Snapshot, list[str]]] = []

    displace = World.displace

    def watched(world: World, keys: Iterable[str]) -> None:
        going, before = list(keys), world.snapshot
        displace(world, going)
        rounds.append((before, world.snapshot, going))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "displace", watched)
        what_if(site, Options(), [Drain(tuple(sorted(site.nodes)[:3]))])
    for before, after, going in rounds:
        covered = cover(before)
        for name, one in cover(after).items():
            was = covered[name].figures
            healthy_gone = was.current - one.figures.current
            assert healthy_gone <= was.allowed, (name, going)
            assert one.figures.current >= min(was.current, was.desired), (name, going)


@MANY
@given(SEEDS)
def test_a_plan_knows_which_budgets_cover_a_pod_whatever_it_has_changed(seed: int) -> None:
    dice, followed = random.Random(seed), FollowedCoverage()
    for number in range(4):
        site = a_site(dice.choice((seed, seed + number)), budgets=dice.randrange(4))
        pods = {key: pod for key, pod in site.pods.items() if dice.random() < 0.8}
        site = with_parts(site, pods=pods)
        coverage = followed.of(site)
        for name, one in cover(site).items():
            assert coverage.pods_of(name).living.listed() == one.pods
            assert covered_of(site, site.budgets[name], coverage.pods_of(name)) == one


@MANY
@given(SEEDS)
def test_every_pod_of_a_drained_node_moves_waits_or_is_blocked_and_its_own_stay(seed: int) -> None:
    site = a_site(seed, budgets=2)
    node = sorted(site.nodes)[0]
    document = what_if(site, Options(), [Drain((node,))]).document
    there = {key: pod for key, pod in site.pods.items() if pod.spec.node_name == node}
    asked = {key for key, pod in there.items() if not pinned(pod) and not is_replaced_already(pod)}
    told = Counter([*(one.pod for one in document.moves), *document.pending, *(one.pod for one in document.blocked)])
    assert told == Counter(asked | {key for key in told if key not in site.pods})
    assert {one.from_ for one in document.moves} <= {node}


@MANY
@given(SEEDS)
def test_a_drain_places_as_schedule_does(seed: int) -> None:
    site = a_site(seed)
    node = sorted(site.nodes)[0]
    leaving = sorted(key for key, pod in site.pods.items() if pod.spec.node_name == node and not pinned(pod))
    pods = {key: pod for key, pod in site.pods.items() if key not in leaving}
    for key in leaving:
        pod = site.pods[key]
        if pod.metadata.owner_references and not is_replaced_already(pod):
            pods[key] = successor(pod, "2026-01-01T00:00:00Z", {})
    emptied = with_parts(site, pods=pods, nodes={**site.nodes, node: cordoned(site.nodes[node], True)})
    placed = schedule(emptied, Options())
    document = what_if(site, Options(), [Drain((node,))]).document
    assert {one.pod: one.to for one in document.moves} == {pod: to for pod, to in placed.placements.items() if to}
    assert {pod: why for pod, why in document.pending.items() if pod in placed.failed} == placed.failed


@MANY
@given(SEEDS)
def test_no_node_that_takes_a_pod_holds_more_than_it_has(seed: int) -> None:
    site = a_site(seed, pending=4, budgets=1)
    worlds: list[World] = []
    fork = World.at_rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "at_rest", lambda *parts: worlds.append(fork(*parts)) or worlds[0])
        document = what_if(site, Options(), a_plan(site, seed)).document
    (world,) = worlds
    model = compile(world.snapshot, Options())
    state = State(model)
    final = {one.pod: one.to for one in document.moves}
    for pod, node in final.items():
        now = world.snapshot.pods.get(pod)
        if now is None or now.spec.node_name != node:
            continue  # a later step has taken it away again
        at = model.nodes.index[node]
        assert state.pods[at] <= model.nodes.pods_allowed[at]
        request = model.requests[int(model.running.requests[model.running.at[pod]])]
        for name, amount in request.held.items():
            row = model.nodes.row(name)
            assert not amount or state.used[row, at] <= model.nodes.allocatable[row, at], (pod, node, name)


@MANY
@given(SEEDS)
def test_the_order_of_the_input_does_not_matter(seed: int) -> None:
    site = a_site(seed, budgets=2)
    dice = random.Random(seed)

    def shuffled(values: dict[str, object]) -> dict[str, object]:
        items = list(values.items())
        dice.shuffle(items)
        return dict(items)

    parts = ("nodes", "pods", "budgets", "vms", "hosts", "node_hosts", "workloads", "namespaces")
    other = with_parts(site, **{name: shuffled(dict(getattr(site, name))) for name in parts})  # type: ignore[arg-type]
    steps = a_plan(site, seed)
    assert to_json(what_if(site, Options(), steps).document) == to_json(what_if(other, Options(), steps).document)


@MANY
@given(SEEDS)
def test_without_steps_nothing_moves_and_nothing_is_new(seed: int) -> None:
    document = what_if(a_site(seed, pending=4, budgets=2), Options(), []).document
    found = msgspec.to_builtins(document)
    assert found == {
        "moves": [],
        "vmMoves": [],
        "pending": {},
        "blocked": [],
        "newFindings": [],
        "resolvedFindings": [],
        "budgets": {},
        "notJudged": found["notJudged"],
        "apiVersion": "underhost/v1",
        "kind": "WhatIf",
    }


@settings(MANY, max_examples=10)
@given(SEEDS, st.sampled_from(["host", "node"]), st.booleans())
def test_each_alone_is_what_the_resident_evaluator_says_of_all(seed: int, kind: str, ha: bool) -> None:
    site = a_site(seed, pending=2)
    for one in each(site, Options(), kind, ha=ha):
        alone = what_if(site, Options(), [Fail((one.target,), ha)]).document
        for part in ("moves", "vm_moves", "pending", "new_findings", "resolved_findings"):
            assert getattr(one, part) == getattr(alone, part), (one.target, part)


@MANY
@given(SEEDS)
def test_a_step_that_is_taken_back_leaves_no_finding(seed: int) -> None:
    site = a_site(seed)
    node = sorted(site.nodes)[0]
    plain = with_parts(site, nodes={**site.nodes, node: cordoned(site.nodes[node], False)})
    document = what_if(plain, Options(), [Cordon(node), Cordon(node, False)]).document
    assert (document.moves, document.new_findings, document.resolved_findings) == ([], [], [])
