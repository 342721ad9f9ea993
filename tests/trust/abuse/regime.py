"""The abuse of a worker's HTTP: everybody who means harm at once, while a probe asks whether it lives.

In: how long. Out: a tally of one run, whatever its length. A real worker, in a process of its own, on its embedded log
and over files: no real parts are needed. `python -m trust.abuse.regime MINUTES` runs one without a row.

Those who mean harm are on other machines in life; here they share this one's processors with the worker. So they are
nicer than it (`NICE`): what is measured is what their requests cost the worker, not what making them costs. The worker
and the probe are as nice as any program is; a machine that is busy with other work makes the probe slow all the same:
the figures say for how much of the time the worker's event loop had no processor.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp
from support.processes.ports import free_ports
from support.processes.underhost import Worker, running
from support.sites.big import big_site
from trust.abuse.crowd import Crowd
from trust.abuse.generated import KINDS
from trust.abuse.promises import Measured
from trust.installation import starved
from trust.regime import Tally

from underhost.agents.snapshots.dump import documents

NODES, PODS = 200, 2000
READY, SAMPLE = 120.0, 0.25
NICE = 10
"""How much nicer the clients are than the worker."""
TESTS = Path(__file__).parents[2]
PAGE_SIZE = resource.getpagesize()
AGAIN = "the pipeline is started again"


def run(until: float, state: Path) -> Tally:
    """See `trust.regime.Regime`."""
    seconds = until - time.monotonic()
    folder = state / f"at-{time.time():.0f}"
    folder.mkdir(parents=True)
    measured = asyncio.run(abused(folder.resolve(), seconds))
    broken = measured.broken()
    minutes = seconds / 60
    replay = f" — replay: make trust ARGS='abuse --minutes {minutes:.0f}'"
    return Tally(1, int(bool(broken)), f"{minutes:.0f} min: {measured.told()}", [one + replay for one in broken], True)


async def abused(folder: Path, seconds: float) -> Measured:
    """What was seen of a worker that was abused for so long."""
    port, measured = free_ports(1)[0], Measured()
    with running(_config(folder, port), folder / "underhost.log") as worker:
        await _ready(port)
        with _beside("probing", str(port), str(folder / "probes")), _generating(port, folder) as generated:
            await _begun(generated.values())
            crowd, memory, before = Crowd(port), [_memory(worker)], starved(worker.pid)
            sampling = asyncio.ensure_future(_sample(worker, memory))
            with _nice():
                await crowd.run(seconds)
            measured.starved = (starved(worker.pid) - before) / seconds
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
        await _ready(port)
        (folder / "memory").write_text("\n".join(f"{size >> 20}" for size in memory))
        measured.memory, measured.answers = memory, crowd.answers
        for kind, file in generated.items():
            measured.answers.update((kind, int(line)) for line in file.read_text().splitlines())
        measured.probes = [float(line) for line in (folder / "probes").read_text().split()]
        measured.restarts = worker.log().count(AGAIN)
    return measured


@contextmanager
def _beside(module: str, *given: str) -> Iterator[None]:
    """A module of this room in a process of its own, until the end of the block. Raises RuntimeError if it ended."""
    program = subprocess.Popen([sys.executable, "-m", f"trust.abuse.{module}", *given], cwd=TESTS)
    try:
        yield
        if program.poll() is not None:
            raise RuntimeError(f"{module} {' '.join(given)} ended with {program.returncode}")
    finally:
        program.kill()
        program.wait()


@contextmanager
def _generating(port: int, folder: Path) -> Iterator[Mapping[str, Path]]:
    """Clients whose requests are generated, until the end of the block; by kind, the file of their answers."""
    files = {kind: folder / kind.replace(" ", "-") for kind in KINDS}
    with ExitStack() as stack:
        for kind, file in files.items():
            stack.enter_context(_beside("generated", kind, str(port), str(file)))
        yield files


@contextmanager
def _nice() -> Iterator[None]:
    """This process gives way to the worker during the block; nobody but root may take that back."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(before + NICE, 19))
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _config(folder: Path, port: int) -> Path:
    """The configuration of the worker, over files."""
    dump, inventory, config = folder / "dump.json", folder / "inventory.json", folder / "underhost.yaml"
    *objects, hosts = documents(big_site(NODES, PODS))
    dump.write_bytes(b"".join(objects))
    inventory.write_bytes(hosts)
    tree = {
        "site": "prod",
        "kafka": {"embedded": str(folder / "underhost.db")},
        "kubernetes": {"files": [str(dump)]},
        "vsphere": {"inventory": str(inventory)},
        "web": {"listen": f"127.0.0.1:{port}"},
    }
    config.write_text(json.dumps(tree))
    return config


async def _ready(port: int) -> None:
    """Wait until the worker has decided. Raises RuntimeError where it never does."""
    deadline = time.monotonic() + READY
    async with aiohttp.ClientSession() as client:
        while time.monotonic() < deadline:
            try:
                async with client.get(f"http://127.0.0.1:{port}/extender/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError(f"after {READY:.0f} s the worker is still not ready")


async def _begun(files: Collection[Path]) -> None:
    """Wait until each client has had an answer. Raises RuntimeError where one never has."""
    deadline = time.monotonic() + READY
    while not all(file.exists() and file.stat().st_size for file in files):
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {READY:.0f} s a client has still not had an answer")
        await asyncio.sleep(0.1)


async def _sample(worker: Worker, memory: list[int]) -> None:
    while True:
        await asyncio.sleep(SAMPLE)
        memory.append(_memory(worker))


def _memory(worker: Worker) -> int:
    """Bytes that its process has in memory. Raises FileNotFoundError where it has ended."""
    return int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1]) * PAGE_SIZE


if __name__ == "__main__":
    print(run(time.monotonic() + 60 * float(sys.argv[1]), Path("/tmp") / "trust-abuse"))
