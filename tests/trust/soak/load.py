"""A load that never ends: pods come and go, labels change, VMs move, the page and the extender are asked.

In: a running world and worker. Out: requests at a steady rate, samples of what the worker holds, and a line every few
minutes. An answer that is an error is a failure of the soak.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from support.processes.kwok import kwok_pod
from support.processes.world import VCenter
from trust.installation import resident
from trust.jepsen.api import Api
from trust.soak.growth import growths, told

APPS, REPLICAS = 60, 3
RATE = 100.0
"""Changes of pods a second: a tenth of the steps make a new pod in the place of one, which is two changes."""
NEW = 0.1
LANES = 6
"""Changes that are on their way at once, each of other pods: one after another they would wait for the API server."""
MOVES, LOOKS, QUESTIONS = 1.0, 1.0, 5.0
"""vMotions, looks at the page and questions of kube-scheduler, a second each."""
SAMPLES, LINES = 5.0, 120.0
"""Seconds between two samples, and between two lines that say how it goes."""
PAGES = ("/", "/api/v1/map", "/api/v1/findings", "/api/v1/activity", "/api/v1/sites")
ROWS = re.compile(r'^underhost_table_rows\{topic="([a-z-]+)"\} (\S+)$', re.M)
TASKS = re.compile(r"^underhost_tasks (\S+)$", re.M)


class Serving(NamedTuple):
    """The worker that is soaked: its process, and the address of its HTTP."""

    pid: int
    url: str


class Soak:
    """The load on one worker.

    Attributes:
        samples: (monotonic seconds, gauges). changes: of pods so far.
    """

    def __init__(self, api: Api, vcenter: VCenter, nodes: list[str], worker: "Serving") -> None:
        self._api, self._vcenter, self._nodes, self._worker = api, vcenter, nodes, worker
        self._dice = random.Random(0)
        self._pods = {number: 0 for number in range(APPS * REPLICAS)}
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.changes = 0
        self._began, self._told = 0.0, (0.0, 0)

    async def furnish(self) -> None:
        """Every pod for the first time."""
        for number in self._pods:
            await self._api.ask("POST", self._api.pods, self._pod(number))

    async def run(self, seconds: float) -> None:
        """Go on for so long. Raises an ExceptionGroup of what went wrong."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
            self._began = time.monotonic()
            end, self._told = self._began + seconds, (self._began, self.changes)
            async with asyncio.TaskGroup() as tasks:
                steady: dict[Callable[[], Awaitable[None]], float] = {
                    **{partial(self._change, lane): RATE / (1 + NEW) / LANES for lane in range(LANES)},
                    self._move: MOVES,
                    lambda: self._look(session): LOOKS,
                    lambda: self._question(session): QUESTIONS,
                    lambda: self._sample(session): 1 / SAMPLES,
                    self._tell: 1 / LINES,
                }
                for what, rate in steady.items():
                    tasks.create_task(steadily(what, rate, end))

    # ----------------------------------------------------------------------------------------------------- one of each
    def _pod(self, number: int) -> dict[str, Any]:
        """With a name that no pod had before, as a ReplicaSet's."""
        return kwok_pod(self._name(number), "underhost", app=f"app-{number // REPLICAS}")

    def _name(self, number: int) -> str:
        return f"p{number}-{self._pods[number]}"

    async def _change(self, lane: int) -> None:
        number = self._dice.randrange(lane, len(self._pods), LANES)
        path = f"{self._api.pods}/{self._name(number)}"
        if self._dice.random() < NEW:
            self._pods[number] += 1
            await self._api.ask("DELETE", path, {"gracePeriodSeconds": 0})
            await self._api.ask("POST", self._api.pods, self._pod(number))
            self.changes += 2
        else:
            await self._api.ask("PATCH", path, {"metadata": {"labels": {"v": str(self.changes)}}})
            self.changes += 1

    async def _move(self) -> None:
        vm, host = self._dice.choice(list(self._vcenter.vms)), self._dice.choice(list(self._vcenter.hosts))
        await asyncio.to_thread(self._vcenter.move, vm, host)

    async def _look(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self._worker.url + self._dice.choice(PAGES)) as answer:
            answer.raise_for_status()
            await answer.read()

    async def _question(self, session: aiohttp.ClientSession) -> None:
        """Of a pod that was never seen, about every node."""
        pod = kwok_pod(f"asked-{self.changes}", "default-scheduler", app=f"app-{self._dice.randrange(APPS)}")
        pod["metadata"] |= {"namespace": "default", "uid": f"asked-{self.changes}"}
        body = {"Pod": pod, "NodeNames": self._nodes}
        async with session.post(f"{self._worker.url}/extender/filter", json=body) as answer:
            answer.raise_for_status()
            await answer.read()

    async def _sample(self, session: aiohttp.ClientSession) -> None:
        async with session.get(f"{self._worker.url}/metrics") as answer:
            text = await answer.text()
        found = {f"rows of {topic}": float(value) for topic, value in ROWS.findall(text)}
        (tasks,) = TASKS.findall(text)
        proc = Path(f"/proc/{self._worker.pid}")
        found |= {
            "tasks": float(tasks),
            "memory": resident(self._worker.pid),
            "descriptors": float(sum(1 for _ in (proc / "fd").iterdir())),
        }
        self.samples.append((time.monotonic(), found))

    async def _tell(self) -> None:
        """One line: when, the rate since the line before, and the newest sample."""
        now, (before, changes) = time.monotonic(), self._told
        if not self.samples or now - before < LINES / 2:
            return  # it has only begun
        self._told = now, self.changes
        rate, held = (self.changes - changes) / (now - before), self.samples[-1][1]
        print(f"{(now - self._began) / 60:.0f} min: {rate:.0f} changes/s, {told(growths([held, held]))}", flush=True)


async def steadily(what: Callable[[], Awaitable[None]], rate: float, end: float) -> None:
    """Begin it so many times a second, one after another; what is late is made up for."""
    due = time.monotonic()
    while due < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await what()
        due += 1 / rate
