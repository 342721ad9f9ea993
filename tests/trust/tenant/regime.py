"""A hostile tenant beside a victim: one worker with every sink enabled, on real Kafka, kube-apiserver and vcsim.

In: how long. Out: a tally of one attack. The victim's replicas are placed and its DRS rule is written first; from then
on nothing of it may be moved, ended, labelled or edited, and what breaks a rule of its own is a finding at once, and
ends at once. `python -m trust.tenant.regime MINUTES` runs one without a row.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from pydantic.alias_generators import to_camel
from support.build import a_pod, app, term
from support.processes.kwok import HOST_LABEL
from support.processes.world import Audit
from trust.installation import Installation, installed, played, resident, starved, tally, until
from trust.regime import Tally
from trust.soak.load import steadily
from trust.tenant.attacks import NAMESPACE as EVIL
from trust.tenant.attacks import Attacker
from trust.tenant.verdict import Seen, Waited, faults

from underhost.schemas.commands import WRITTEN

VICTIM, REPLICAS = "shop", 3
WAITING = 3300
STIRRED = 0.2
"""The share of the time in which only vMotions are asked for."""
SETTINGS = {
    "sinks": {to_camel(row.setting): True for row in WRITTEN.values()},
    "physicalHost": "required",
    "evictions": {"wait": 1},
    "moves": {"wait": 1, "perMinute": 60},
}
"""Every sink that there is."""
DEFINITIONS = Path(__file__).parents[2] / "data" / "openreports"
REPORTS = "/apis/openreports.io/v1alpha1/reports"
CONTROLLERS = "replicaset-controller", "disruption-controller"
RULES = f"underhost-default-{VICTIM}."


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`. Raises RuntimeError where the real parts are not built."""
    seen, seconds = played(until, state, attacked)
    return tally("tenant", seconds, f": {seen.figures()}", "; ".join(faults(seen, VICTIM)[:20]))


async def attacked(folder: Path, parts: Path, seconds: float, waiting: int = WAITING) -> Seen:
    """What was seen while the tenant went on for so long. Raises what the load met."""
    async with AsyncExitStack() as stack:
        audit = Audit(folder / "audit.log")
        here = await installed(stack, folder, parts, SETTINGS, flags=audit.flags(), controllers=CONTROLLERS)
        site = Site(here, audit)
        await site.furnish()
        return await site.suffer(Attacker(here.api, here.nodes, waiting), seconds)


class Site:
    """The victim beside the tenant, and what is seen of both."""

    def __init__(self, here: Installation, audit: Audit) -> None:
        self._api, self._vcenter, self._worker, self._url = here.api, here.vcenter, here.worker, here.url
        self._nodes, self._audit, self._seen = here.nodes, audit, Seen()
        self._hosts: dict[str, str] = {}

    async def furnish(self) -> None:
        """The victim's replicas are placed, labels are written, and its DRS rule is there."""
        self._vcenter.have_drs_propose()
        for file in sorted(DEFINITIONS.glob("*.yaml")):
            definition = yaml.safe_load(file.read_text())
            await self._api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await until("reports are served", lambda: self._api.exists(REPORTS))
        for name in (VICTIM, EVIL):
            await self._api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        await until("the worker is ready", lambda: self._api.answers(f"{self._url}/extender/readyz"))
        await self._api.ask("POST", f"/apis/apps/v1/namespaces/{VICTIM}/replicasets", replicas())
        await until("the victim runs", self._runs)
        await until("its DRS rule is there", self._has_rule)
        await until("nodes have their labels", self._is_labelled)

    async def suffer(self, attacker: Attacker, seconds: float) -> Seen:
        """Go on for so long. Raises an ExceptionGroup of what went wrong with the load."""
        seen, before = self._seen, len(self._audit.product_writes())
        rules = self._rules()
        self._hosts = await asyncio.to_thread(self._where)
        await self._sample()
        now = time.monotonic()
        # Pods that want everybody apart keep every VM where it is: before they come there is a time for vMotions.
        await self._go_on({attacker.stir: 1.0}, now + STIRRED * seconds)
        attacks = {
            attacker.select_everything: 2.0,
            attacker.star: 1.0,
            attacker.stir: 1.0,
            attacker.crowd: 1.0,
            attacker.imitate: 1.0,
            attacker.name_a_label: 1.0,
        }
        await self._go_on(attacks, now + seconds, attacker.furnish())
        await self._follow()
        seen.rules = rules, self._rules()
        await until("a finding names the tenant", self._names_the_tenant)
        seen.writes = self._audit.product_writes()[before:]
        seen.answers = await self._api.answers(f"{self._url}/healthz")
        return seen

    async def _go_on(
        self,
        attacks: Mapping[Callable[[], Awaitable[None]], float],
        end: float,
        also: Coroutine[Any, Any, None] | None = None,
    ) -> None:
        """The attacks until then, so many of each a second, while the victim is looked at."""
        looks = {self._probe: 0.5, self._sample: 1.0, self._follow: 1.0}
        async with asyncio.TaskGroup() as tasks:
            if also is not None:
                tasks.create_task(also)
            for each, rate in {**attacks, **looks}.items():
                tasks.create_task(steadily(each, rate, end))

    async def _probe(self) -> None:
        """A pod of the victim on a node that its own selector excludes: a finding opens, and ends with the pod."""
        number = len(self._seen.opened)
        pods, name = f"/api/v1/namespaces/{VICTIM}/pods", f"probe-{number}"
        node = self._nodes[number % len(self._nodes)]
        pod = a_pod(name, "").spec(nodeName=node, nodeSelector={"probe": "no"}, terminationGracePeriodSeconds=0)
        before = self._now()
        await self._api.ask("POST", pods, pod.sent())
        await until(f"{name} is a finding", lambda: self._is_found(f"{VICTIM}/{name}"))
        self._seen.opened.append(self._since(before))
        before = self._now()
        await self._api.ask("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})
        await until(f"{name} is no finding any more", lambda: self._is_not_found(f"{VICTIM}/{name}"))
        self._seen.resolved.append(self._since(before))

    def _now(self) -> Waited:
        return Waited(time.monotonic(), starved(self._worker.pid))

    def _since(self, before: Waited) -> Waited:
        now = self._now()
        return Waited(now.seconds - before.seconds, now.starved - before.starved)

    async def _sample(self) -> None:
        self._seen.memory.append(resident(self._worker.pid))

    async def _follow(self) -> None:
        """Which VMs have moved since the last look, and whether the victim's replicas are still apart."""
        hosts = await asyncio.to_thread(self._where)
        moved = {node for node, host in hosts.items() if host != self._hosts[node]}
        if not moved:
            return
        self._hosts, self._seen.vmotions = hosts, self._seen.vmotions + len(moved)
        pods = (await self._api.ask("GET", f"/api/v1/namespaces/{VICTIM}/pods"))["items"]
        at = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
        self._seen.followed |= {f"/api/v1/nodes/{node}" for node in moved}
        self._seen.followed |= {f"/api/v1/namespaces/{VICTIM}/pods/{pod}" for pod, node in at.items() if node in moved}
        replicas = sorted(pod for pod, node in at.items() if pod.startswith("db-") and node)
        self._seen.together += [
            f"{one} and {other} on {hosts[at[one]]}"
            for one, other in combinations(replicas, 2)
            if hosts[at[one]] == hosts[at[other]]
        ]

    def _where(self) -> dict[str, str]:
        """The host of each node."""
        vms = sorted(self._vcenter.vms)
        return {node: self._vcenter.host_of(vm) for node, vm in zip(self._nodes, vms, strict=True)}

    async def _findings(self) -> list[dict[str, Any]]:
        async with aiohttp.request("GET", f"{self._url}/api/v1/findings") as answer:
            answer.raise_for_status()
            found: list[dict[str, Any]] = (await answer.json())["findings"]
            return found

    async def _is_found(self, pod: str) -> bool:
        return any(one.get("pod") == pod and one["rule"] == "NodeAffinity" for one in await self._findings())

    async def _is_not_found(self, pod: str) -> bool:
        return not await self._is_found(pod)

    async def _names_the_tenant(self) -> bool:
        found = [one["message"] for one in await self._findings() if one["rule"] == "Tenant"]
        self._seen.tenants = found
        return any(EVIL in message for message in found)

    async def _runs(self) -> bool:
        pods = (await self._api.ask("GET", f"/api/v1/namespaces/{VICTIM}/pods"))["items"]
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods) == REPLICAS

    async def _has_rule(self) -> bool:
        return bool(self._rules())

    async def _is_labelled(self) -> bool:
        nodes = (await self._api.ask("GET", "/api/v1/nodes"))["items"]
        return all(HOST_LABEL in node["metadata"]["labels"] for node in nodes)

    def _rules(self) -> dict[str, tuple[bool, list[str]]]:
        """The victim's."""
        return {name: rule for name, rule in self._vcenter.rules().items() if name.startswith(RULES)}


def replicas() -> dict[str, Any]:
    """The victim: replicas that no host may hold two of."""
    pod = a_pod("db", "").labels(app="db").needs(cpu="100m", memory="100Mi").apart(term(HOST_LABEL, app("db")))
    template = pod.spec(schedulerName="underhost", terminationGracePeriodSeconds=0).sent()
    spec = {
        "replicas": REPLICAS,
        "selector": app("db"),
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": template["spec"]},
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "db"}, "spec": spec}


if __name__ == "__main__":
    print(run(time.monotonic() + 60 * float(sys.argv[1]), Path("/tmp") / "trust-tenant"))
