"""A worker over a cluster whose pods, nodes and VMs come and go holds no more at the end than at the beginning."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.fakes.pipeline import FakeCluster
from support.reachable import grown, sizes
from support.workers.pipeline import SECONDS, Running, running, settings_in

from underhost.agents import worker as worker_module
from underhost.agents.http import activity, details, feed
from underhost.agents.pipeline.decide import placements
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.pipeline.gates import wanted
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.pipeline.tables import orphans
from underhost.agents.sinks import bindings
from underhost.agents.sinks.events import sink as events
from underhost.agents.sinks.labels import last_write
from underhost.schemas.keys import object_key
from underhost.schemas.topics import HOSTS, NODES, PLACEMENTS, VMS
from underhost.streams.settings.model import WebSettings

PODS, NODES_OF_ROUND, WARM_UP, ROUNDS, LASTING = 150, 20, 3, 8, 4
SLACK = 100
"""Items by which a container may differ from one round to another; one of each node would be 160, of each pod 1,200."""
BOUNDS = (
    (activity, "EACH"),
    (activity, "MOST"),
    (activity, "LATEST"),
    (details, "REMEMBERED"),
    (bindings, "REMEMBERED"),
    (events, "REMEMBERED"),
    (last_write, "MOST"),
    (feed, "KEPT"),
    (placements, "REMEMBERED"),
    (wanted, "REMEMBERED"),
)
"""What is bounded by a number: made small, so that it is full before anything is compared."""
OTHERWISE = (
    ".tail",
    "._rates[*]._made",
    ".own_writes._writes",
    ".in_flight._rows",
    "._steps",
    ".findings.records",
    "._shown.placements",
    ".published",
    ".watchers._make.self",
    "._writers.kubernetes",
)
"""What is bounded by its bytes, by the minute that it covers, by twice what was on its way (`test_in_flight.py`), or is
of the last decision alone; and what the test and its cluster keep."""


class Churn:
    """A cluster, the worker over it and its page, round after round."""

    def __init__(self, cluster: FakeCluster, pipeline: Pipeline, worker: Running, page: str) -> None:
        self.cluster, self.pipeline, self.worker, self.page = cluster, pipeline, worker, page
        self.rounds = 0

    async def round(self, *, binds: bool) -> None:
        """Pods, nodes and hosts come, are dealt with and looked at, and go; `binds` says whether the worker binds."""
        self.rounds += 1
        names = [f"p{self.rounds}-{number}" for number in range(PODS)]
        self._come(names)
        if binds:
            await until(lambda: all(self.cluster.live(name).spec.node_name for name in names), "all are bound")
        else:
            pods = {f"shop/{name}" for name in names}
            await until(lambda: pods <= {row["pod"] for _, row in self.worker.records(PLACEMENTS)}, "all are placed")
        await self._look(names[0])
        self._go(names)
        counts = self.pipeline.sites.state(self.cluster.site).counts
        await until(lambda: (counts()["pods"], counts()["nodes"]) == (0, LASTING), "all are gone")
        self.worker.published.clear()

    def _come(self, names: list[str]) -> None:
        for number in range(NODES_OF_ROUND):
            self.cluster.node(f"n{self.rounds}-{number}", f"h{self.rounds}-{number}")
        for number, name in enumerate(names):  # most are of a class of their own: their label is their name
            self.cluster.pod(name, app=name if number % 3 else f"app-{number}")

    async def _look(self, pod: str) -> None:
        async with aiohttp.ClientSession() as client:
            for path in ("map", "findings", f"pods/shop/{pod}", f"activity?site=unknown-{pod}"):
                async with client.get(f"{self.page}api/v1/{path}") as answer:
                    await answer.read()

    def _go(self, names: list[str]) -> None:
        for name in names:
            self.cluster.delete_pod(name)
        for number in range(NODES_OF_ROUND):
            node, host = f"n{self.rounds}-{number}", f"moref-h{self.rounds}-{number}"
            self.cluster.put(NODES, object_key(self.cluster.site, "node", node), None)
            self.cluster.put(VMS, object_key(self.cluster.site, "vm", f"vm-{node}"), None)
            self.cluster.put(HOSTS, object_key(self.cluster.site, "host", host), None)


async def until(true: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Pipeline]:
    """The pipelines that workers make."""
    pipelines: list[Pipeline] = []

    class Kept(Pipeline):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            pipelines.append(self)

    monkeypatch.setattr(worker_module, "Pipeline", Kept)
    return pipelines


@pytest.mark.parametrize(
    "roles",
    [
        pytest.param(None, id="a worker of all roles"),
        pytest.param(("kubernetes", "vsphere", "evaluator", "web"), id="without the sinks, which other workers are"),
    ],
)
async def test_what_a_worker_holds_does_not_grow_with_the_pods_that_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[Pipeline], roles: tuple[str, ...] | None
) -> None:
    monkeypatch.setattr(orphans, "KEPT", 0.0)
    for module, name in BOUNDS:
        monkeypatch.setattr(module, name, 20)
    settings = settings_in(tmp_path).model_copy(update={"web": WebSettings(listen="127.0.0.1:0")})
    cluster, pages = FakeCluster(), list[str]()
    for number in range(LASTING):
        cluster.node(f"n{number}", f"h{number}")
    evaluator: Any = LazyEvaluator(options_of(settings))
    async with running(settings, cluster, evaluator=evaluator, roles=roles, on_listening=pages.append) as worker:
        await until(lambda: bool(made and pages), "it runs")
        churn = Churn(cluster, made[0], worker, pages[0])
        for _ in range(WARM_UP):
            await churn.round(binds=roles is None)
        before = sizes(made[0])
        for _ in range(ROUNDS):
            await churn.round(binds=roles is None)

        def more() -> dict[str, tuple[int, int]]:
            found = grown(before, sizes(made[0]), SLACK)
            return {path: each for path, each in found.items() if not any(part in path for part in OTHERWISE)}

        with contextlib.suppress(AssertionError):
            await until(lambda: not more(), "what is on its way has an end", seconds=20)
        assert more() == {}
    assert len(made) == 1
