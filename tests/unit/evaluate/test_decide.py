"""A resident evaluator decides on what it keeps: nothing is compiled anew, and nothing of a decision stays behind."""

import json
import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.build import HOST, ZONE, PodBuilder, a_node, a_pod, a_site, app, spread, term
from support.sites.changing import ChangingSite

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.pending import PodDecision, decide
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s


@pytest.mark.parametrize("seed", range(5))
def test_what_is_decided_on_the_kept_state_is_what_is_decided_anew(seed: int) -> None:
    site, options = ChangingSite(random.Random(300 + seed), hosts=seed % 4 > 0), Options()
    resident = Evaluator(options)
    said: list[str] = []
    for _ in range(40):
        waiting = [key for key, pod in site.snapshot.pods.items() if not pod.spec.node_name]
        nodes = sorted(site.snapshot.nodes)
        assumed = {key: site.pick.choice(nodes) for key in waiting if site.pick.random() < 0.3}
        for known in (assumed, {}):
            fresh = decide(replace(site.snapshot), options, known)
            assert resident.decide(site.snapshot, known) == fresh, said[-3:]
        assert resident.update(site.snapshot) == check(replace(site.snapshot), options), said[-3:]
        said.append(site.change())


@pytest.mark.parametrize("seed", range(3))
def test_pods_created_and_bound_as_decided_are_followed_without_compiling_anew(seed: int) -> None:
    pick, options = random.Random(seed), Options()
    zones = [a_node(f"n{at}").zone("abc"[at % 3]).has(pods="12") for at in range(6)]
    snapshot = a_site(*zones, *[burst(pick, 0, at) for at in range(12)], on={f"n{at}": f"h{at % 3}" for at in range(6)})
    resident = Evaluator(options)
    for cycle in range(1, 12):
        decided = resident.decide(snapshot)
        assert decided == decide(replace(snapshot), options)
        snapshot = bound(snapshot, decided)
        new = {pod.key: pod.build() for pod in (burst(pick, cycle, at) for at in range(6))}
        gone = pick.choice(sorted(snapshot.pods))
        snapshot = replace(snapshot, pods={**{k: p for k, p in snapshot.pods.items() if k != gone}, **new})
        assert resident.update(snapshot) == check(replace(snapshot), options)
    assert resident.rebuilt == 1


def burst(pick: random.Random, cycle: int, at: int) -> PodBuilder:
    """A pod of one of three applications, of a cycle's own application, or one that no node can take."""
    name = pick.choice(["web", "db", "even", f"own-{cycle}"])
    pod = a_pod(f"p{cycle}-{at}").labels(app=name, pod=f"p{cycle}-{at}").needs(cpu=pick.choice(["100m", "200m", "9"]))
    if name == "even":
        return pod.spreads(spread(ZONE, app(name)), spread(HOST, app(name), 2))
    return pod.apart(term(HOST, app(name))) if name != "web" else pod.prefers_apart(10, term(ZONE, app(name)))


def bound(snapshot: Snapshot, decided: list[PodDecision]) -> Snapshot:
    """The snapshot once the placed pods are seen on their nodes."""
    pods = dict(snapshot.pods)
    for one in decided:
        if one.node is not None:
            pods[one.pod] = edited(pods[one.pod], spec={"node_name": one.node}, status={"phase": "Running"})
    return replace(snapshot, pods=pods)


def edited(pod: k8s.Pod, **parts: dict[str, Any]) -> k8s.Pod:
    change = {part: msgspec.structs.replace(getattr(pod, part), **fields) for part, fields in parts.items()}
    return msgspec.structs.replace(pod, **change)


class Deciding:
    """A site under a resident evaluator that never compiles it anew, and decides as a fresh one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.resident = snapshot, Evaluator(Options())
        self.resident.update(snapshot)

    def now(self, **fields: Any) -> dict[str, str | None]:
        """Where the pods go that wait, after a change."""
        self.snapshot = replace(self.snapshot, **fields)
        decided = self.resident.decide(self.snapshot)
        assert decided == decide(replace(self.snapshot), Options())
        assert self.resident.rebuilt == 1
        return {one.pod: one.node for one in decided}


def replica_set(name: str, labels: dict[str, str]) -> k8s.Workload:
    raw = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"namespace": "shop", "name": name}}
    raw["spec"] = {"replicas": 2, "selector": {"matchLabels": labels}}
    return k8s.decode(json.dumps(raw).encode(), k8s.Workload)


def service(name: str, labels: dict[str, str]) -> k8s.Service:
    raw = {"metadata": {"namespace": "shop", "name": name}, "spec": {"selector": labels}}
    return k8s.decode(json.dumps(raw).encode(), k8s.Service)


def owned(pod: PodBuilder, name: str) -> PodBuilder:
    owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": name, "uid": f"u-{name}", "controller": True}
    return pod.metadata(ownerReferences=[owner])


def two_nodes() -> Snapshot:
    """Two equal nodes; the first holds a web pod. The keys that selectors of the tests name are named already."""
    names = a_pod("names").apart(term(HOST, {"matchLabels": {"app": "x", "tier": "x"}})).on("n2")
    web = owned(a_pod("web-1").labels(app="web"), "web").on("n1")
    return a_site(a_node("n1"), a_node("n2"), names, web, owned(a_pod("web-2").labels(app="web"), "web"))


def test_a_new_service_spreads_the_pods_it_selects_and_one_that_is_gone_does_not() -> None:
    site = Deciding(two_nodes())
    assert site.now() == {"shop/web-2": "n1"}
    assert site.now(services={"shop/web": service("web", {"app": "web"})}) == {"shop/web-2": "n2"}
    assert site.now(services={"shop/web": service("web", {"app": "db"})}) == {"shop/web-2": "n1"}
    assert site.now(services={"shop/web": service("web", {"app": "web"})}) == {"shop/web-2": "n2"}
    assert site.now(services={}) == {"shop/web-2": "n1"}


def test_a_workload_seen_after_its_pods_spreads_them_and_those_that_come_later() -> None:
    site = Deciding(two_nodes())
    web = {"ReplicaSet/shop/web": replica_set("web", {"app": "web"})}
    assert site.now(workloads=web) == {"shop/web-2": "n2"}
    assert site.now(workloads={"ReplicaSet/shop/web": replica_set("web", {"app": "other"})}) == {"shop/web-2": "n1"}
    assert site.now(workloads={}) == {"shop/web-2": "n1"}
    third = owned(a_pod("web-3").labels(app="web"), "web").created("2026-01-01T00:00:01Z")
    pods = {**site.snapshot.pods, third.key: third.build()}
    assert site.now(workloads=web, pods=pods) == {"shop/web-2": "n2", "shop/web-3": "n1"}


def test_a_pod_that_another_owner_adopts_is_spread_as_that_one_asks() -> None:
    site = Deciding(two_nodes())
    assert site.now(workloads={"ReplicaSet/shop/web": replica_set("web", {"app": "web"})}) == {"shop/web-2": "n2"}
    adopted = owned(a_pod("web-2").labels(app="web"), "nobody")
    assert site.now(pods={**site.snapshot.pods, adopted.key: adopted.build()}) == {"shop/web-2": "n1"}


def test_a_workload_and_its_pod_may_go_at_once() -> None:
    site = Deciding(two_nodes())
    site.now(workloads={"ReplicaSet/shop/web": replica_set("web", {"app": "web"})})
    left = {key: pod for key, pod in site.snapshot.pods.items() if key != "shop/web-1"}
    assert site.now(workloads={}, pods=left) == {"shop/web-2": "n1"}


def test_an_image_that_a_node_pulls_draws_the_next_replica_there_until_it_is_removed() -> None:
    site = Deciding(a_site(a_node("n1"), a_node("n2"), a_pod("a"), a_pod("z").on("n1")))
    assert site.now() == {"shop/a": "n2"}
    held = {**site.snapshot.nodes, "n1": a_node("n1").holds("app:1", 1900).build()}
    assert site.now(nodes=held) == {"shop/a": "n1"}
    assert site.now(nodes={**held, "n0": a_node("n0").holds("app:1", 1900).build()}) == {"shop/a": "n0"}
    assert site.now(nodes={"n1": a_node("n1").build(), "n2": a_node("n2").build()}) == {"shop/a": "n2"}


def test_waiting_pods_are_taken_in_snapshot_order_though_one_was_created_again() -> None:
    room = a_node("n1").has(pods="1")
    first, second = a_pod("first"), a_pod("second")
    site = Deciding(a_site(room, first, second))
    assert site.now() == {"shop/first": "n1", "shop/second": None}
    again = edited(first.build(), metadata={"uid": "another"})
    assert site.now(pods={second.key: second.build(), first.key: again}) == {"shop/second": "n1", "shop/first": None}


def test_pods_waiting_for_one_reason_see_it_change_when_one_between_them_fits() -> None:
    def needs(name: str, cpu: str) -> PodBuilder:
        return a_pod(name).needs(cpu=cpu)

    pods = [needs("a", "3"), needs("b", "3"), needs("c", "1"), needs("d", "3")]
    site = a_site(a_node("n1").has(cpu="2"), a_node("n2").has(cpu="2", pods="1"), *pods, needs("there", "1").on("n1"))
    found = {one.pod: one.node or one.failed for one in decide(site, Options())}
    short, full = "Insufficient cpu", "Too many pods"
    assert found == {"shop/a": {short: 2}, "shop/b": {short: 2}, "shop/c": "n2", "shop/d": {short: 2, full: 1}}
