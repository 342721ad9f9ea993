"""A hostile tenant beside a victim: one worker with every sink enabled, on real Kafka, kube-apiserver and vcsim.

In: how long. Out: a tally of one attack. The victim's replicas are placed and its DRS rule is written first; from then
on nothing of it may be moved, ended, labelled or edited, and what breaks a rule of its own is a finding at once, and
ends at once. `python -m trust.tenant.regime MINUTES` runs one without a row.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
from support.build import ZONE, a_pod, app, term
from support.processes.kube import start_kube
from support.processes.kwok import HOST_LABEL, kwok_node
from support.processes.parts import built_parts
from support.processes.underhost import Worker, config_of, running
from support.processes.vcsim import start_vcsim
from support.processes.world import Audit, VCenter, helpers
from trust.jepsen.api import Api
from trust.jepsen.transports import OneBroker
from trust.regime import Tally
from trust.soak.load import PAGE_SIZE, steadily
from trust.tenant.attacks import NAMESPACE as EVIL
from trust.tenant.attacks import Attacker
from trust.tenant.verdict import Seen, faults

VICTIM, HOSTS, NODES, REPLICAS = "shop", 5, 10, 3
READY, LOOK = 180.0, 0.05
WAITING = 3300
SINKS = {"labels": True, "bindings": True, "drsRules": True, "evictions": True, "events": True}
RULES = f"underhost-default-{VICTIM}."


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`. Raises RuntimeError where the real parts are not built."""
    parts, why = built_parts()
    if parts is None:
        raise RuntimeError(f"needs the real parts: {why}")
    seconds = until - time.monotonic()
    folder = state / f"at-{time.time():.0f}"
    folder.mkdir(parents=True)
    seen = asyncio.run(attacked(folder, parts, seconds))
    found, minutes = faults(seen, VICTIM), seconds / 60
    return Tally(
        tried=1,
        lost=int(bool(found)),
        figures=f"{minutes:.0f} min: {seen.figures()}",
        failures=[f"{'; '.join(found[:20])} — replay: make trust ARGS='tenant --minutes {minutes:.0f}'"]
        if found
        else [],
        complete=True,
    )


async def attacked(folder: Path, parts: Path, seconds: float, waiting: int = WAITING) -> Seen:
    """What was seen while the tenant went on for so long. Raises what the load met."""
    async with AsyncExitStack() as stack:
        vcsim = start_vcsim(parts, HOSTS, NODES)
        stack.callback(vcsim.stop)
        vcenter = VCenter(vcsim)
        stack.callback(vcenter.close)
        for number, vm in enumerate(vcenter.vms):
            vcenter.move(vm, sorted(vcenter.hosts)[number % HOSTS])
        broker = await stack.enter_async_context(OneBroker(folder / "kafka", parts))
        audit = Audit(folder / "audit.log")
        kube = stack.enter_context(start_kube(folder / "kube", parts, *audit.flags()))
        stack.enter_context(helpers(parts, kube, "replicaset-controller", "disruption-controller"))
        api = await stack.enter_async_context(Api(kube))
        await until("the namespace is there", lambda: api.exists("/api/v1/namespaces/default"))
        config: dict[str, Any] = config_of(folder, kube, vcsim)
        config |= {"kafka": {"bootstrapServers": broker.bootstrap, "partitions": 4}, "sinks": SINKS}
        config |= {"physicalHost": "required", "evictions": {"wait": 1}}
        (folder / "underhost.yaml").write_text(json.dumps(config))
        nodes = [f"n{number}" for number in range(NODES)]
        for node, vm in zip(nodes, vcenter.vms, strict=True):
            sent = kwok_node(node, vcenter.uuid_of(vm), cpu="64")
            sent["metadata"]["labels"][ZONE] = f"z{nodes.index(node) % 3}"
            await api.ask("POST", "/api/v1/nodes", sent)
        worker = stack.enter_context(running(folder / "underhost.yaml", folder / "underhost.log"))
        site = Site(api, vcenter, audit, worker, f"http://{config['web']['listen']}")
        await site.furnish(nodes)
        return await site.suffer(Attacker(api, nodes, waiting), seconds)


class Site:
    """The victim beside the tenant, and what is seen of both."""

    def __init__(self, api: Api, vcenter: VCenter, audit: Audit, worker: Worker, url: str) -> None:
        self._api, self._vcenter, self._audit, self._worker, self._url = api, vcenter, audit, worker, url
        self._seen = Seen()
        self._nodes: list[str] = []

    async def furnish(self, nodes: list[str]) -> None:
        """The victim's replicas are placed, labels are written, and its DRS rule is there."""
        self._nodes = nodes
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
        await self._sample()
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(attacker.furnish())
            for attack, rate in {
                attacker.select_everything: 2.0,
                attacker.star: 1.0,
                attacker.crowd: 1.0,
                attacker.imitate: 1.0,
                attacker.name_a_label: 1.0,
                self._probe: 0.5,
                self._sample: 1.0,
            }.items():
                tasks.create_task(steadily(attack, rate, end))
        seen.rules = rules, self._rules()
        await until("a finding names the tenant", self._names_the_tenant)
        seen.writes = self._audit.product_writes()[before:]
        seen.answers = await self._api.answers(f"{self._url}/healthz")
        return seen

    async def _probe(self) -> None:
        """A pod of the victim on a node that its own selector excludes: a finding opens, and ends with the pod."""
        number = len(self._seen.opened)
        pods, name = f"/api/v1/namespaces/{VICTIM}/pods", f"probe-{number}"
        node = self._nodes[number % len(self._nodes)]
        pod = a_pod(name, "").spec(nodeName=node, nodeSelector={"probe": "no"}, terminationGracePeriodSeconds=0)
        begin = time.monotonic()
        await self._api.ask("POST", pods, pod.sent())
        await until(f"{name} is a finding", lambda: self._is_found(f"{VICTIM}/{name}"))
        self._seen.opened.append(time.monotonic() - begin)
        begin = time.monotonic()
        await self._api.ask("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})
        await until(f"{name} is no finding any more", lambda: self._is_not_found(f"{VICTIM}/{name}"))
        self._seen.resolved.append(time.monotonic() - begin)

    async def _sample(self) -> None:
        self._seen.memory.append(resident(self._worker.pid))

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


def resident(pid: int) -> float:
    """Bytes of memory that a process holds."""
    return float(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_SIZE)


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


async def until(what: str, ask: Callable[[], Awaitable[bool]]) -> None:
    """Until it is so. Raises RuntimeError after a while."""
    deadline = time.monotonic() + READY
    while not await ask():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {READY:.0f} s still not: {what}")
        await asyncio.sleep(LOOK)


if __name__ == "__main__":
    print(run(time.monotonic() + 60 * float(sys.argv[1]), Path("/tmp") / "trust-tenant"))
