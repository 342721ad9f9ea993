"""When a worker gives up: what it cannot reach at its start ends it, a Kafka that has answered once never does."""

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from support.fakes.pipeline import FakeCluster, FakeEvaluator
from support.workers.fleet import topics_of_the_fleet, until
from support.workers.pipeline import settings_in

from underhost.agents import worker
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.roles import parse_roles
from underhost.agents.pipeline.run import Pipeline
from underhost.schemas.errors import KafkaAway, Refused, UnderhostError, Unreachable


class Run:
    """A pipeline that fails, or that runs until it is told to stop."""

    def __init__(self, error: UnderhostError | None, *, started: bool = False) -> None:
        self.failure: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.started, self._error = started, error

    async def run(self) -> None:
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing to end."""


async def keep_running(*runs: Run) -> int:
    """How many pipelines were made of these, the last of which is told to stop."""
    stopping, made = asyncio.Event(), list[Run]()

    def new() -> Any:
        made.append(runs[len(made)])
        if len(made) == len(runs):
            asyncio.get_running_loop().call_soon(stopping.set)
        return made[-1]

    await worker._keep_running(new, stopping, lambda pipeline: asyncio.sleep(0))
    return len(made)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(worker, "LONGEST_PAUSE", 0.02)


async def test_a_worker_that_has_never_been_up_waits_for_a_kafka_that_went_away() -> None:
    assert await keep_running(*(Run(KafkaAway("frozen")) for _ in range(5)), Run(None)) == 6


@pytest.mark.parametrize("error", [Unreachable("no vCenter"), Refused("wrong password")], ids=["away", "refused"])
async def test_a_cluster_that_fails_before_its_first_success_ends_the_worker(error: UnderhostError) -> None:
    with pytest.raises(type(error)) as raised:
        await keep_running(Run(KafkaAway("frozen")), Run(error), Run(None))
    assert raised.value is error


async def test_after_its_first_success_a_cluster_is_tried_again_for_ever() -> None:
    away = Unreachable("no vCenter")
    assert await keep_running(Run(away, started=True), Run(away), Run(away), Run(None)) == 4


async def test_an_error_that_is_no_backends_ends_the_worker_at_any_time() -> None:
    with pytest.raises(UnderhostError, match="a bug"):
        await keep_running(Run(KafkaAway("frozen"), started=True), Run(UnderhostError("a bug")), Run(None))


async def test_of_a_pipeline_that_has_ended_nothing_is_held_in_memory(tmp_path: Path) -> None:
    """A worker whose Kafka is away for a night begins hundreds of them, each with the tables of its site."""
    cluster, settings, roles = FakeCluster(), settings_in(tmp_path), parse_roles(None)
    cluster.node("n1", "h1")
    await topics_of_the_fleet(settings, roles)

    async def ended() -> "weakref.ref[Pipeline]":
        pipeline = Pipeline(settings, roles, cluster.connections(), Metrics(), evaluator=FakeEvaluator(), on_event=None)
        running = asyncio.ensure_future(pipeline.run())
        await until(lambda: pipeline.started)
        running.cancel()
        await asyncio.wait([running])
        await pipeline.close()
        return weakref.ref(pipeline)

    kept = await ended()

    def is_gone() -> bool:
        gc.collect()
        return kept() is None

    await until(is_gone)
