"""Seeded random clusters that touch every rule, for tests that hold two answers against each other."""

import random
from typing import Any

from support.build import (
    HOST,
    RACK,
    ZONE,
    NodeBuilder,
    PodBuilder,
    a_namespace,
    a_node,
    a_pod,
    a_service,
    a_site,
    app,
    spread,
    term,
)

from underhost.agents.site.snapshot import Snapshot

APPS = ["web", "db", "cache"]
HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
KEYS = [HOST, HOST, ZONE, ZONE, RACK, HOST_KEY, "nowhere"]


class RandomCluster:
    """The parts of a cluster; `snapshot()` makes one of them."""

    def __init__(self, seed: int, hosts: bool = True, size: int = 7, running: int = 24, pending: int = 6) -> None:
        self.random = random.Random(seed)
        self.nodes = [self._node(f"n{i}") for i in range(size)]
        names = [node.name for node in self.nodes]
        self.running = [self._pod(f"r{i}").on(self.random.choice(names)) for i in range(running)]
        self.running = [pod.deleted() if self._chance(0.1) else pod for pod in self.running]
        self.pending = [self._waiting(f"p{i}", names) for i in range(pending)]
        self.hosts = {name: self.random.choice(["h1", "h2", "h3", ""]) for name in names} if hosts else {}

    def snapshot(self, *pods: PodBuilder) -> Snapshot:
        """All running and pending pods, or the given ones."""
        chosen = pods or (*self.running, *self.pending)
        return a_site(
            *self.nodes,
            *chosen,
            a_namespace("shop", env="prod"),
            a_namespace("other"),
            a_service("shop/web", app="web"),
            on=self.hosts or None,
        )

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _node(self, name: str) -> NodeBuilder:
        pick = self.random.choice
        node = a_node(name).has(cpu=pick(["2", "4", "8"]), pods=pick(["110", "110", "4"]))
        if self._chance(0.85):
            node = node.zone(pick(["a", "b", ""]))
        if self._chance(0.7):
            node = node.labels({RACK: pick(["r1", "r2"]), HOST_KEY: pick(["x", "y"])})
        if self._chance(0.1):
            node = node.labels({HOST: None})
        if self._chance(0.2):
            node = node.tainted(pick(["k=v:NoSchedule", "k=v:NoExecute", "k=v:PreferNoSchedule"]))
        return node.holds("app:1", 700) if self._chance(0.4) else node.cordoned() if self._chance(0.1) else node

    def _selector(self) -> dict[str, Any] | None:
        kind = self.random.random()
        if kind < 0.05:
            return None
        if kind < 0.12:
            return {}
        if kind < 0.25:
            return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [self.random.choice(APPS)]}]}
        return app(self.random.choice(APPS))

    def _term(self) -> dict[str, Any]:
        more = {"namespaceSelector": {}} if self._chance(0.2) else {}
        return term(self.random.choice(KEYS), self._selector(), **more)

    def _pod(self, name: str) -> PodBuilder:
        pick = self.random.choice
        pod = a_pod(name, pick(["shop", "shop", "other"])).labels(app=pick(APPS), pod=name)
        pod = pod.needs(cpu=pick(["100m", "500m", "1"]), memory="256Mi") if self._chance(0.7) else pod
        if self._chance(0.15):
            pod = pod.ports({"containerPort": 80, "hostPort": pick([80, 81])})
        if self._chance(0.3):
            pod = pod.apart(*(self._term() for _ in range(pick([1, 1, 2]))))
        if self._chance(0.2):
            pod = pod.near(*(self._term() for _ in range(pick([1, 1, 2]))))
        if self._chance(0.3):
            pod = pod.prefers_apart(pick([1, 50]), self._term())
        if self._chance(0.35):
            keys = self.random.sample([HOST, ZONE, RACK, HOST_KEY], pick([1, 2]))
            pod = pod.spreads(*(spread(key, self._selector(), pick([1, 2]), self._chance(0.4)) for key in keys))
        if self._chance(0.2):
            pod = pod.spec(nodeSelector={RACK: pick(["r1", "r2"])})
        if self._chance(0.2):
            pod = pod.prefers_nodes((10, {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}))
        return pod.tolerates({"key": "k", "operator": "Exists"}) if self._chance(0.3) else pod

    def _waiting(self, name: str, names: list[str]) -> PodBuilder:
        pod = self._pod(name).spec(priority=self.random.choice([0, 0, 10]))
        return pod.nominated(self.random.choice(names), 10) if self._chance(0.15) else pod
