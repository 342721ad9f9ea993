"""The soak: one worker under a steady load; after a warm-up of a third of the time it may not grow any more.

In: how long. Out: a tally of one soak. Real Kafka, kube-apiserver and vcsim. It cannot be gone on with: a run is a case
of its own, whatever its length. `python -m trust.soak.regime MINUTES` runs one without a row.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from support.processes.kube import start_kube
from support.processes.kwok import kwok_node
from support.processes.parts import built_parts
from support.processes.underhost import config_of, running
from support.processes.vcsim import start_vcsim
from support.processes.world import VCenter, helpers
from trust.jepsen.api import Api
from trust.jepsen.transports import OneBroker
from trust.regime import Tally
from trust.soak.growth import Sample, growths, told
from trust.soak.load import Serving, Soak

HOSTS, NODES = 5, 10
WARM = 1 / 3
READY = 180.0


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`. Raises RuntimeError where the real parts are not built."""
    parts, why = built_parts()
    if parts is None:
        raise RuntimeError(f"needs the real parts: {why}")
    seconds = until - time.monotonic()
    folder = state / f"at-{time.time():.0f}"
    folder.mkdir(parents=True)
    samples, changes = asyncio.run(soaked(folder, parts, seconds))
    found = growths(samples)
    grown = [str(one) for one in found if one.too_much]
    minutes = seconds / 60
    return Tally(
        tried=1,
        lost=int(bool(grown)),
        figures=f"{minutes:.0f} min, {changes / seconds:.0f} changes/s: {told(found)}",
        failures=[f"grew: {', '.join(grown)} — replay: make trust ARGS='soak --minutes {minutes:.0f}'"]
        if grown
        else [],
        complete=True,
    )


async def soaked(folder: Path, parts: Path, seconds: float) -> tuple[list[Sample], int]:
    """(samples after the warm-up, changes of pods). Raises what the load met."""
    async with AsyncExitStack() as stack:
        vcsim = start_vcsim(parts, HOSTS, NODES)
        stack.callback(vcsim.stop)
        vcenter = VCenter(vcsim)
        stack.callback(vcenter.close)
        broker = await stack.enter_async_context(OneBroker(folder / "kafka", parts))
        kube = stack.enter_context(start_kube(folder / "kube", parts))
        stack.enter_context(helpers(parts, kube))
        api = await stack.enter_async_context(Api(kube))
        await _until("the namespace is there", lambda: api.exists("/api/v1/namespaces/default"))
        config: dict[str, Any] = config_of(folder, kube, vcsim)
        config["kafka"] = {"bootstrapServers": broker.bootstrap, "partitions": 4}
        config["sinks"] = {"labels": True, "bindings": True, "drsRules": True}
        (folder / "underhost.yaml").write_text(json.dumps(config))
        nodes = {f"n{number}": vm for number, vm in enumerate(vcenter.vms)}
        for node, vm in nodes.items():
            await api.ask("POST", "/api/v1/nodes", kwok_node(node, vcenter.uuid_of(vm), cpu="64"))
        worker = stack.enter_context(running(folder / "underhost.yaml", folder / "underhost.log"))
        serving = Serving(worker.pid, f"http://{config['web']['listen']}")
        soak = Soak(api, vcenter, list(nodes), serving)
        await soak.furnish()
        await _until("the worker is ready", lambda: api.answers(f"{serving.url}/extender/readyz"))
        began = time.monotonic()
        await soak.run(seconds)
    return [sample for at, sample in soak.samples if at - began >= seconds * WARM], soak.changes


async def _until(what: str, ask: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + READY
    while not await ask():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {READY:.0f} s still not: {what}")
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    print(run(time.monotonic() + 60 * float(sys.argv[1]), Path("/tmp") / "trust-soak"))
