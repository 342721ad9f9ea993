"""What a tenant does who may only create objects in its own namespace, and means harm.

In: an API server and the names of its nodes. Out: objects, again and again, at a rate; what the API server refuses is
left out. Nothing here has a right outside the namespace `evil`.
"""

import random
from itertools import cycle, islice
from typing import Any

import aiohttp
from support.build import HOST, ZONE, Json, PodBuilder, a_pod, app, term
from support.processes.kwok import HOST_LABEL
from trust.jepsen.api import Api

NAMESPACE = "evil"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
EVERYTHING: Json = {"matchLabels": {}}
EVERYWHERE: Json = {"namespaceSelector": {}}
KEYS = (HOST, ZONE, HOST_LABEL)
TERMS = 5000
KEPT, FEW = 40, 8
"""Pods of one kind of attack that are there at a time; the oldest goes for a new one."""


class Attacker:
    """The tenant. `waiting`: how many pods with long names wait for a node."""

    def __init__(self, api: Api, nodes: list[str], waiting: int) -> None:
        self._api, self._nodes, self._waiting = api, cycle(nodes), waiting
        self._all, self._dice = nodes, random.Random(0)
        self._there: dict[str, list[str]] = {}
        self.made = 0

    async def furnish(self) -> None:
        """Two budgets over everything, thousands of pods with long names, and a pod with 5,000 terms."""
        for name in ("one", "two"):
            spec = {"maxUnavailable": 0, "selector": {}}
            await self._send(BUDGETS, {"metadata": {"name": name}, "spec": spec, "apiVersion": "policy/v1"})
        for at in range(self._waiting):
            await self._pod(a_pod(f"{'long-' * 45}{at}", NAMESPACE).spec(schedulerName="nobody"))
        many = [term(HOST, {f"k{at}": "1"}, **EVERYWHERE) for at in range(TERMS)]
        await self._pod(a_pod("terms", NAMESPACE).spec(nodeName=next(self._nodes)).apart(*many))

    async def select_everything(self) -> None:
        """A pod bound by hand that wants to be apart from everything, by every key."""
        terms = [term(key, EVERYTHING, **EVERYWHERE) for key in KEYS]
        await self._again("all", a_pod(self._name("all"), NAMESPACE).apart(*terms))

    async def star(self) -> None:
        """A pod bound by hand that wants its own namespace's pods on other hosts: a DRS rule for each of their VMs."""
        await self._again("star", a_pod(self._name("star"), NAMESPACE).apart(term(HOST_LABEL, EVERYTHING)))

    async def stir(self) -> None:
        """Two pods bound by hand to any two nodes, on whose hosts no two of theirs may be: a vMotion parts them."""
        name = self._name("stir")
        for node in self._dice.sample(self._all, 2):
            pod = a_pod(self._name("stir"), NAMESPACE).labels(app=name).apart(term(HOST_LABEL, app(name)))
            await self._again("stir", pod, node, FEW)

    async def crowd(self) -> None:
        """A pod bound by hand that takes all room of its node, and a port of it."""
        port = {"ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "63"}}}
        await self._again("crowd", a_pod(self._name("crowd"), NAMESPACE).containers(port))

    async def name_a_label(self) -> None:
        """A label that nobody has named before, in a term and in a Service."""
        key = {f"key-{self.made}": "1"}
        await self._again("key", a_pod(self._name("key"), NAMESPACE).apart(term(HOST, key, **EVERYWHERE)))
        spec = {"selector": {f"service-{self.made}": "1"}, "ports": [{"port": 80}]}
        await self._send(SERVICES, {"metadata": {"name": f"s{self.made}"}, "spec": spec})

    async def imitate(self) -> None:
        """A pod bound by hand with the very terms of the victim."""
        pod = a_pod(self._name("like"), NAMESPACE).labels(app="db")
        await self._again("like", pod.apart(term(HOST_LABEL, app("db"), namespaces=["shop"])))

    def _name(self, kind: str) -> str:
        return f"{kind}-{self.made}"

    async def _again(self, kind: str, pod: PodBuilder, node: str = "", kept: int = KEPT) -> None:
        await self._pod(pod.spec(nodeName=node or next(self._nodes)))
        there = self._there.setdefault(kind, [])
        there.append(pod.name)
        for name in list(islice(there, max(0, len(there) - kept))):
            there.remove(name)
            await self._send(f"{PODS}/{name}", {"gracePeriodSeconds": 0}, "DELETE")

    async def _pod(self, pod: PodBuilder) -> None:
        self.made += 1
        await self._send(PODS, pod.spec(terminationGracePeriodSeconds=0).sent())

    async def _send(self, path: str, body: dict[str, Any], method: str = "POST") -> None:
        try:
            await self._api.ask(method, path, body)
        except aiohttp.ClientResponseError as error:
            if error.status >= 500:
                raise
