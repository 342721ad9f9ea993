"""One plan's part of the world: its namespace, its nodes on the VMs of a lane, its pods; and how they stand.

In: the shared parts, a lane, the plan's name. Out: what a person, a controller or vSphere does there, and the `State`
of it, in names that are the same in every plan (`n1` on `v1`, which begins on `h1`). The worker has no part in this; of
what it says only that is read which people are told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod
from trust.sieve import topics
from trust.sieve.parts import VMS, Lane, Refusal, Shared

STARTING = "underhost.io/starting"
"""The start-up taint, which goes with the last label."""
FILLERS = 6
"""Pods that nothing happens to: where two of three pods vanish a watcher rightly asks a person."""
BY_HAND = "kubectl"
LOOK = 0.05
"""Seconds between two looks: real parts announce nothing to a test."""


@dataclass(frozen=True)
class State:
    """How a scene stands.

    Attributes:
        labels: the host that each node's label names. tainted: nodes with the start-up taint.
        pods: the node of each replica that is ready. rules: the VMs of each DRS rule of ours.
    """

    labels: Mapping[str, str]
    pods: Mapping[str, str] = field(default_factory=dict)
    rules: frozenset[frozenset[str]] = frozenset()
    tainted: frozenset[str] = frozenset()


async def until(what: str, true: Callable[[], Awaitable[bool]], within: float = 60.0) -> None:
    """Look until it is true. Raises TimeoutError with `what`."""
    try:
        async with asyncio.timeout(within):
            while not await true():  # noqa: ASYNC110 (real parts announce nothing)
                await asyncio.sleep(LOOK)
    except TimeoutError:
        raise TimeoutError(f"after {within:.0f} s still not: {what}") from None


class Scene:
    """The scene of the plan `scope` on a lane. `log` is where the worker keeps its topics.

    Attributes:
        visited: by node, every host that a VM of the node's name has been on.
    """

    def __init__(self, shared: Shared, lane: Lane, scope: str, log: Path) -> None:
        self._admin, self._lane, self.scope, self._log = shared.admin, lane, scope, log
        self._vms = {f"v{number}": vm for number, vm in enumerate(lane.homes, 1)}
        self._hosts = {f"h{number}": host for number, host in enumerate(lane.homes.values(), 1)}
        self._named = {host: short for short, host in self._hosts.items()}
        self._vm_named = {vm: short for short, vm in self._vms.items()}
        self._on: dict[str, str] = {}
        self._at = {f"v{number}": f"h{number}" for number in range(1, VMS + 1)}
        self.visited: dict[str, set[str]] = {}

    # --------------------------------------------------------------------------------------------------- what is done
    async def set_up(self, nodes: int, *, tainted: bool) -> None:
        """The namespace, so many nodes on the first VMs, and pods on the first node that nothing happens to."""
        await self.go_home()
        await self._admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.scope}})
        for number in range(1, nodes + 1):
            await self.add_node(f"n{number}", f"v{number}", tainted=tainted)
        for number in range(FILLERS):
            body = kwok_pod(
                f"still-{number}", "nobody", nodeName=self._full("n1"), tolerations=[{"operator": "Exists"}]
            )
            await self._admin.ask("POST", f"/api/v1/namespaces/{self.scope}/pods", body)

    async def add_node(self, node: str, vm: str, *, tainted: bool = True) -> None:
        """A node on a VM, as its kubelet registers it, with the start-up taint or not."""
        uuid = await asyncio.to_thread(self._lane.vcenter.uuid_of, self._vms[vm])
        taints = [{"key": STARTING, "effect": "NoSchedule"}] if tainted else []
        self._on[node] = vm
        self.visited.setdefault(node, set()).add(self._hosts[self._at[vm]])
        await self._admin.ask("POST", "/api/v1/nodes", kwok_node(self._full(node), uuid, taints=taints))

    async def delete_node(self, node: str) -> None:
        """The node goes; its VM stays."""
        await self._admin.ask("DELETE", f"/api/v1/nodes/{self._full(node)}")

    async def deploy(self, replicas: int, *, unavailable: int = 1) -> None:
        """A StatefulSet, no two of whose pods may share a host, and the budget of so many that may be unavailable."""
        template = kwok_pod("db", "underhost", app="db")
        body = {
            "metadata": {"name": "db"},
            "spec": {
                "replicas": replicas,
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
            },
        }
        budget = {
            "metadata": {"name": "db"},
            "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": "db"}}},
        }
        await self._admin.ask("POST", f"/apis/policy/v1/namespaces/{self.scope}/poddisruptionbudgets", budget)
        await self._admin.ask("POST", f"/apis/apps/v1/namespaces/{self.scope}/statefulsets", body)

    async def scale(self, replicas: int) -> None:
        """So many replicas from now on."""
        path = f"/apis/apps/v1/namespaces/{self.scope}/statefulsets/db"
        await self._admin.ask("PATCH", path, {"spec": {"replicas": replicas}})

    async def delete_pod(self, pod: str) -> str:
        """A person deletes a pod; its uid."""
        path = f"/api/v1/namespaces/{self.scope}/pods/{pod}"
        uid = (await self._admin.ask("GET", path))["metadata"]["uid"]
        await self._admin.ask("DELETE", path, {"gracePeriodSeconds": 0})
        return str(uid)

    async def replaced(self, pod: str, before: str) -> None:
        """Until another pod than that with the uid `before` has the name."""

        async def found() -> bool:
            return any(
                (one["metadata"]["name"], one["metadata"]["uid"] != before) == (pod, True) for one in await self.pods()
            )

        await until(f"another {pod} is there", found)

    async def replicas(self, least: int, most: int = 99) -> None:
        """Until there are so many replicas, ready or not."""

        async def found() -> bool:
            return least <= len(await self.pods()) <= most

        await until(f"there are {least} replicas", found)

    async def move(self, vm: str, host: str) -> None:
        """A vMotion."""
        self._at[vm] = host
        for node, on in self._on.items():
            if on == vm:
                self.visited[node].add(self._hosts[host])
        await asyncio.to_thread(self._lane.vcenter.move, self._vms[vm], self._hosts[host])

    async def go_home(self, *but: str) -> None:
        """Every VM but these moves to the host that it began on."""
        for number in range(1, VMS + 1):
            if f"v{number}" not in but:
                await self.move(f"v{number}", f"h{number}")

    async def follow(self, pod: str, other: str) -> None:
        """A vMotion brings the VM under one pod onto the host of another; the VMs under neither go home before."""
        nodes = (await self.state()).pods
        vm, there = self._on[nodes[pod]], self._on[nodes[other]]
        await self.go_home(vm, there)
        await self.move(vm, self._at[there])

    async def apart(self, replicas: int, otherwise: str) -> bool:
        """Until so many replicas are ready, each on a host of its own; False where people are told `otherwise`."""

        async def over() -> bool:
            nonlocal told
            nodes = (await self.state()).pods.values()
            if len({self._at[self._on[node]] for node in nodes}) == replicas:
                return True
            told = await self._are_told(otherwise)
            return told

        told = False
        await until(f"{replicas} replicas are apart, or people are told", over)
        return not told

    async def told(self, text: str) -> None:
        """Until people are told this of a command."""
        await until(f"people are told: {text}", lambda: self._are_told(text))

    async def _are_told(self, text: str) -> bool:
        return await asyncio.to_thread(topics.has_said, self._log, "underhost.outcomes", text)

    async def bound(self, pod: str) -> None:
        """Until the pod has a node."""

        async def found() -> bool:
            return any(one["metadata"]["name"] == pod and one["spec"].get("nodeName") for one in await self.pods())

        await until(f"{pod} is bound", found)

    async def label(self, node: str, value: str) -> None:
        """A person sets the host label by hand."""
        body = {"metadata": {"labels": {HOST_LABEL: self._hosts.get(value, value)}}}
        await self._admin.ask("PATCH", f"/api/v1/nodes/{self._full(node)}", body, manager=BY_HAND)

    async def cordon(self, node: str, unschedulable: bool) -> None:
        """A person cordons the node, or ends that."""
        body = {"spec": {"unschedulable": unschedulable}}
        await self._admin.ask("PATCH", f"/api/v1/nodes/{self._full(node)}", body, manager=BY_HAND)

    async def tear_down(self) -> None:
        """Nothing of the plan is left but its empty namespace."""
        space = f"namespaces/{self.scope}"
        for path in (f"/apis/apps/v1/{space}/statefulsets", f"/apis/policy/v1/{space}/poddisruptionbudgets"):
            await self._admin.ask("DELETE", path)
        await self._admin.ask("DELETE", f"/api/v1/{space}/pods", {"gracePeriodSeconds": 0})
        for node in self._on:
            with suppress(Refusal):
                await self.delete_node(node)
        await asyncio.to_thread(self._remove_rules)

    def _remove_rules(self) -> None:
        for name in list(self._lane.vcenter.rules()):
            self._lane.vcenter.remove_rule(name)

    # -------------------------------------------------------------------------------------------------- how it stands
    async def state(self) -> State:
        """How it stands now."""
        nodes = await self._nodes()
        pods, rules = await asyncio.gather(self.pods(), asyncio.to_thread(self._lane.vcenter.rules))
        labels = {name: node["metadata"].get("labels", {}).get(HOST_LABEL, "") for name, node in nodes.items()}
        return State(
            labels={name: self._named.get(value, value) for name, value in labels.items()},
            pods={pod["metadata"]["name"]: self._short(pod["spec"]["nodeName"]) for pod in pods if _is_ready(pod)},
            rules=frozenset(
                frozenset(self._vm_named[vm] for vm in vms)
                for name, (_, vms) in rules.items()
                if name.startswith(f"underhost-{self.scope}-")
            ),
            tainted=frozenset(name for name, node in nodes.items() if STARTING in _taints(node)),
        )

    async def pods(self) -> list[dict[str, Any]]:
        """The replicas of the StatefulSet."""
        path = f"/api/v1/namespaces/{self.scope}/pods?labelSelector=app%3Ddb"
        return list((await self._admin.ask("GET", path))["items"])

    async def uids(self) -> dict[str, str]:
        """The uid of each node and pod, by the name that its record's key ends with."""
        pods = (await self._admin.ask("GET", f"/api/v1/namespaces/{self.scope}/pods"))["items"]
        found = {f"pod/{self.scope}/{pod['metadata']['name']}": pod["metadata"]["uid"] for pod in pods}
        nodes = await self._nodes()
        return found | {f"node//{self._full(name)}": node["metadata"]["uid"] for name, node in nodes.items()}

    async def _nodes(self) -> dict[str, Any]:
        found = {}
        for node in self._on:
            with suppress(Refusal):
                found[node] = await self._admin.ask("GET", f"/api/v1/nodes/{self._full(node)}")
        return found

    def _full(self, node: str) -> str:
        return f"{self.scope}-{node}"

    def _short(self, node: str) -> str:
        return node.removeprefix(f"{self.scope}-")


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _taints(node: Mapping[str, Any]) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints") or ()}
