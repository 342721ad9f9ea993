"""One worker over real Kafka, kube-apiserver and vcsim, as the regimes that go on for minutes begin: soak and tenant.

In: a folder, the real parts, what the worker is to do. Out: an `Installation`, which ends with the stack it is put on.
"""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from support.build import ZONE
from support.processes.kube import start_kube
from support.processes.kwok import kwok_node
from support.processes.parts import built_parts
from support.processes.underhost import Worker, config_of, running
from support.processes.vcsim import start_vcsim
from support.processes.world import VCenter, helpers
from trust.jepsen.api import Api
from trust.jepsen.transports import OneBroker
from trust.regime import Tally

HOSTS, NODES, ZONES = 5, 10, 3
READY, LOOK = 180.0, 0.05
PAGE_SIZE = resource.getpagesize()
T = TypeVar("T")


@dataclass(frozen=True)
class Installation:
    """What runs. `nodes` are their names, `url` is where the worker serves."""

    api: Api
    vcenter: VCenter
    worker: Worker
    url: str
    nodes: list[str]


async def installed(
    stack: AsyncExitStack,
    folder: Path,
    parts: Path,
    settings: dict[str, Any],
    *,
    flags: Sequence[str] = (),
    controllers: Sequence[str] = (),
) -> Installation:
    """Started, its VMs spread over the hosts and its nodes over zones; the worker may not be ready yet.

    `settings` are the worker's, `flags` kube-apiserver's, `controllers` as in `helpers`.
    """
    vcsim = start_vcsim(parts, HOSTS, NODES)
    stack.callback(vcsim.stop)
    vcenter = VCenter(vcsim)
    stack.callback(vcenter.close)
    for number, vm in enumerate(vcenter.vms):
        vcenter.move(vm, sorted(vcenter.hosts)[number % HOSTS])
    broker = await stack.enter_async_context(OneBroker(folder / "kafka", parts))
    kube = stack.enter_context(start_kube(folder / "kube", parts, *flags))
    stack.enter_context(helpers(parts, kube, *controllers))
    api = await stack.enter_async_context(Api(kube))
    await until("the namespace is there", lambda: api.exists("/api/v1/namespaces/default"))
    config = config_of(folder, kube, vcsim)
    config |= {"kafka": {"bootstrapServers": broker.bootstrap, "partitions": 4}, **settings}
    (folder / "underhost.yaml").write_text(json.dumps(config))
    nodes = [f"n{number}" for number in range(NODES)]
    for number, (node, vm) in enumerate(zip(nodes, vcenter.vms, strict=True)):
        sent = kwok_node(node, vcenter.uuid_of(vm), cpu="64")
        sent["metadata"]["labels"][ZONE] = f"z{number % ZONES}"
        await api.ask("POST", "/api/v1/nodes", sent)
    worker = stack.enter_context(running(folder / "underhost.yaml", folder / "underhost.log"))
    return Installation(api, vcenter, worker, f"http://{config['web']['listen']}", nodes)


def played(end: float, state: Path, play: Callable[[Path, Path, float], Coroutine[Any, Any, T]]) -> tuple[T, float]:
    """(what `play` says of its folder, the parts and the seconds until `end`, those seconds).

    Raises RuntimeError where the real parts are not built.
    """
    parts, why = built_parts()
    if parts is None:
        raise RuntimeError(f"needs the real parts: {why}")
    seconds = end - time.monotonic()
    folder = state / f"at-{time.time():.0f}"
    folder.mkdir(parents=True)
    return asyncio.run(play(folder, parts, seconds)), seconds


def tally(name: str, seconds: float, figures: str, fault: str) -> Tally:
    """Of a regime whose one case is its whole run; `fault` is what it lost by, "" for nothing."""
    minutes = f"{seconds / 60:.0f}"
    failures = [f"{fault} — replay: make trust ARGS='{name} --minutes {minutes}'"] if fault else []
    return Tally(1, len(failures), f"{minutes} min{figures}", failures, complete=True)


def starved(pid: int) -> float:
    """Seconds for which the main thread of a process, its event loop, could run and had no processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def resident(pid: int) -> float:
    """Bytes of memory that a process holds."""
    return float(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_SIZE)


async def until(what: str, ask: Callable[[], Awaitable[bool]]) -> None:
    """Until it is so. Raises RuntimeError after a while."""
    deadline = time.monotonic() + READY
    while not await ask():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {READY:.0f} s still not: {what}")
        await asyncio.sleep(LOOK)
