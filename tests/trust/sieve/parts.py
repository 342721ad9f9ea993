"""The real parts that plans share: an API server with its controllers and KWOK, and a vCenter for each lane.

In: the folder of the built parts. Out: `Shared`, which all plans use at once, and `Lane`s, each for one plan at a time:
plans move VMs, so that each needs a vCenter of its own.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from support.processes.authority import Authority, Certificate
from support.processes.kube import ADMIN_TOKEN, Kube, start_kube
from support.processes.vcsim import Vcsim, start_vcsim
from support.processes.world import Audit, VCenter, helpers
from trust.sieve.nursery import Nursery

VMS = 5
STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat/node-heartbeat.yaml", "pod/fast/pod-ready.yaml")
"""What KWOK plays. Not the end of a pod: pods here go at once, and KWOK would delete the next one of the name."""
CONTROLLERS = ("statefulset-controller", "disruption-controller")


class Refusal(Exception):
    """The API server has refused: its code, and what it said."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Admin:
    """The cluster as an administrator sees it."""

    def __init__(self, kube: Kube, session: aiohttp.ClientSession) -> None:
        self._server, self._session = kube.server, session

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, manager: str = "") -> Any:
        """The decoded answer. Raises Refusal."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": kind, "User-Agent": "Python-urllib"}
        query = {"fieldManager": manager} if manager else {}
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, self._server + path, params=query, headers=headers, data=data
        ) as answer:
            found = await answer.json(content_type=None)
            if answer.status >= 300:
                raise Refusal(answer.status, str(found.get("message")))
            return found

    async def version(self) -> str:
        """The resourceVersion of now."""
        found = await self.ask("GET", "/api/v1/namespaces?limit=1")
        return str(found["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Lane:
    """What one plan at a time has for itself: a vCenter with five VMs on as many hosts."""

    number: int
    vcsim: Vcsim
    vcenter: VCenter
    homes: dict[str, str]
    """The host that each VM begins on."""


@dataclass(frozen=True)
class Shared:
    """What all plans have in common. `tls` is how the views serve, `authority` who vouches for them."""

    folder: Path
    kube: Kube
    audit: Audit
    admin: Admin
    nursery: Nursery
    authority: Authority
    tls: ssl.SSLContext
    trusts_kube: ssl.SSLContext
    lanes: "asyncio.Queue[Lane]"


@asynccontextmanager
async def shared_parts(folder: Path, parts: Path, lanes: int) -> AsyncIterator[Shared]:
    """Everything, until the end of the block."""
    with ExitStack() as stack:
        nursing = asyncio.ensure_future(Nursery.started(folder / "nursery.log"))
        audit = Audit(folder / "audit.log", "Request")
        kube = await asyncio.to_thread(stack.enter_context, start_kube(folder / "kube", parts, *audit.flags()))
        stack.enter_context(helpers(parts, kube, *CONTROLLERS, stages=STAGES))
        free: asyncio.Queue[Lane] = asyncio.Queue()
        for number in range(lanes):
            free.put_nowait(await asyncio.to_thread(stack.enter_context, _lane(number, parts)))
        authority = Authority(folder, "authority")
        certificate = authority.certificate("view", "IP:127.0.0.1")
        trusts_kube = ssl.create_default_context(cafile=str(kube.ca))
        nursery = await nursing
        connector = aiohttp.TCPConnector(ssl=trusts_kube, limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            admin = Admin(kube, session)
            try:
                yield Shared(folder, kube, audit, admin, nursery, authority, _serving(certificate), trusts_kube, free)
            finally:
                await nursery.close()


def _serving(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    return context


@contextmanager
def _lane(number: int, parts: Path) -> Iterator[Lane]:
    vcsim = start_vcsim(parts, VMS, VMS)
    try:
        vcenter = VCenter(vcsim)
        homes = dict(zip(vcenter.vms, sorted(vcenter.hosts), strict=True))
        for vm, host in homes.items():
            vcenter.move(vm, host)
        yield Lane(number, vcsim, vcenter, homes)
        vcenter.close()
    finally:
        vcsim.stop()
