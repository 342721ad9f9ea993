"""From a write at a real API server to the finding on its topic, on Apache Kafka, at a steady rate.

`bench.cluster.latency PARTS SERVER NODES APPS HOSTS [ROUNDS]`. Prints `name<TAB>value` lines, those of each round
behind `run`. The site is that of `worker`, with guards: pods that required anti-affinity keeps apart from whoever
carries a label. Writes are merge patches of pods: an annotation, and every tenth a label of a guest on a guard's node,
which opens or resolves a finding. The clock runs from before the patch is sent until this program has read the
finding's record.
"""

import asyncio
import random
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiokafka import AIOKafkaConsumer
from bench.cluster.worker import command, objects, server_with, start
from bench.rounds import tell
from bench.usage import cpu_of
from support.processes.kube import ADMIN_TOKEN, Kube
from support.processes.ports import free_ports
from support.sites.large import HOSTNAME, LargeSite, pod
from support.sites.real_size import real_pod

from underhost.schemas.topics import VIOLATIONS

GUARDS, TENTH, SPACE = 50, 10, "team-0"
BUSY = "bench/busy"
RATE, SECONDS = 100, 60
"""Writes a second, and for how long: each guest has its turn an even number of times, and ends as it began."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SETTLED, LATE = 15.0, 60.0
"""Seconds after it is ready in which what a start leaves behind is done; seconds after which a finding is missing."""
Found = dict[str, list[float]]
"""When records of a finding were read, by the guard that they name."""


def guards(site: LargeSite) -> Iterator[dict[str, Any]]:
    """Pairs of a guard and a guest on one node each; a guest says whose it is only once it is patched."""
    for number in range(GUARDS):
        app, node = site.apps + number, f"n{number * 7 % site.nodes:04d}"
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {BUSY: f"guard-{number}"}}}
        spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        for name, rules in ((f"a-guard-{number}", spec), (f"b-guest-{number}", {})):
            made = pod(app, 0, node, rules)
            metadata = {"name": name, "namespace": SPACE, "uid": f"uid-{name}", "labels": {"app": name}}
            yield real_pod({**made, "metadata": metadata})


class Writer:
    """Patches pods of the API server, one after another at a steady rate; each takes its time beside the others."""

    def __init__(self, kube: Kube, session: aiohttp.ClientSession, others: list[str]) -> None:
        self._kube, self._session, self._others = kube, session, others
        self.sent: list[tuple[float, str]] = []
        """When a patch that opens or resolves a finding was sent, and the guard."""
        self.answered: list[float] = []
        """Seconds that each patch took."""

    async def write(self, rate: int, seconds: int) -> None:
        """So many patches a second for so long."""
        started = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(rate * seconds):
                await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
                turn, rest = divmod(number, TENTH)
                if rest:
                    other = self._others[number % len(self._others)]
                    tasks.create_task(self._patch(other, {"annotations": {"bench/turn": str(number)}}))
                else:
                    at, again = turn % GUARDS, turn // GUARDS % 2
                    self.sent.append((time.time(), f"{SPACE}/a-guard-{at}"))
                    label = None if again else f"guard-{at}"
                    tasks.create_task(self._patch(f"{SPACE}/b-guest-{at}", {"labels": {BUSY: label}}))

    async def _patch(self, key: str, metadata: dict[str, Any]) -> None:
        namespace, _, name = key.partition("/")
        url = f"{self._kube.server}/api/v1/namespaces/{namespace}/pods/{name}"
        body, began = msgspec.json.encode({"metadata": metadata}), time.perf_counter()
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(url, data=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        self.answered.append(time.perf_counter() - began)


async def listen(consumer: AIOKafkaConsumer, found: Found) -> None:
    """Keep when each finding's record was read; one about no pod has no such field."""
    async for record in consumer:
        if record.value is not None:
            said = msgspec.json.decode(record.value)
            found.setdefault(said.get("pod") or "", []).append(time.time())


async def measure(kube: Kube, server: str, pid: int, others: list[str]) -> dict[str, float]:
    """Write, and listen: the figures by the name of their line."""
    context = ssl.create_default_context(cafile=str(kube.ca))
    headers, found = {"Authorization": f"Bearer {ADMIN_TOKEN}"}, Found()
    consumer = AIOKafkaConsumer(VIOLATIONS.name, bootstrap_servers=server, auto_offset_reset="latest")
    await consumer.start()
    listening = asyncio.create_task(listen(consumer, found))
    connector = aiohttp.TCPConnector(limit=64, ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.sleep(SETTLED)
        writer, before = Writer(kube, session, others), cpu_of(pid)
        await writer.write(RATE, SECONDS)
        used = (cpu_of(pid) - before) / SECONDS
    waits = sorted([await until(found, guard, sent) - sent for sent, guard in writer.sent])
    listening.cancel()
    await consumer.stop()
    title, figures = f"{RATE} writes a second", {}
    for what, took in (("to the finding", waits), ("the API server's answer", sorted(writer.answered))):
        figures[f"{title}: {what}, p50, ms"] = took[len(took) // 2] * 1e3
        figures[f"{title}: {what}, p99, ms"] = took[int(len(took) * 0.99)] * 1e3
    return {**figures, f"{title}: processors of the worker": used}


async def until(found: Found, guard: str, sent: float) -> float:
    """When the first record of the guard's finding was read after this time."""
    for _ in range(int(LATE / 0.05)):
        for at in found.get(guard, ()):
            if at > sent:
                return at
        await asyncio.sleep(0.05)
    sys.exit(f"no finding of {guard} within {LATE:.0f} s")


def some_pods(site: LargeSite, pick: random.Random) -> list[str]:
    """Pods that are written to and are no guards, nor guests."""
    apps = pick.sample(range(1, site.apps), min(500, site.apps - 1))
    return [f"team-{app % 40}/app-{app}-{pick.randrange(20)}" for app in apps]


def main() -> None:
    """Measure and print."""
    parts, server = Path(sys.argv[1]), sys.argv[2]
    site, rounds, pick = LargeSite(*map(int, sys.argv[3:6])), int((sys.argv[6:] or ["1"])[0]), random.Random(3)
    stored = chain(objects(site), guards(site))
    with tempfile.TemporaryDirectory() as name, server_with(Path(name), parts, stored) as (kube, _):
        folder, [web] = Path(name), free_ports(1)
        running, _ = start(command(folder, kube, server, site, web), folder / "log", web)
        try:
            tell([asyncio.run(measure(kube, server, running.pid, some_pods(site, pick))) for _ in range(rounds)])
        finally:
            running.kill()


if __name__ == "__main__":
    main()
