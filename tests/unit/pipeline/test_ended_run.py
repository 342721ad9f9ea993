"""A run of the pipeline that has ended writes nothing, though not all of it has ended with it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster, FakeEvaluator, FakeSource
from support.workers.fleet import topics_of_the_fleet
from support.workers.pipeline import settings_in

from underhost.agents.pipeline import run as run_module
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.roles import parse_roles
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.sinks.ports import Writers
from underhost.streams.ports import Publisher, Source, TopicReader


class LateCluster(FakeCluster):
    """Binds a pod only once it is told to; `begun` and `ended` say how far the request is."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_bind, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """See `ports.KubernetesWriter`."""
        self.begun.set()
        try:
            await self.may_bind.wait()
            await super().bind_pod(namespace, name, uid, node, labels)
        finally:
            self.ended.set()


class LingeringSource(FakeSource):
    """Ends only once it is told to, as one whose server does not answer its farewell."""

    may_end: asyncio.Event

    async def run(self) -> None:
        """See `ports.Source`."""
        try:
            await super().run()
        finally:
            await self.may_end.wait()


async def test_a_write_under_way_is_not_made_though_a_source_takes_long_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "SUSPEND_WITHIN", 0.1)
    cluster, settings, roles = LateCluster(), settings_in(tmp_path), parse_roles(None)
    may_end = asyncio.Event()
    cluster.node("n1", "h1")
    cluster.pod("db-0", app="db")

    def sources(site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
        made = [LingeringSource(name, cluster, publisher, reader) for name in ("kubernetes", "vsphere")]
        for source in made:
            source.may_end = may_end
        return [*made]

    await topics_of_the_fleet(settings, roles)
    connections = Connections(sources, Writers(kubernetes=cluster))
    pipeline = Pipeline(settings, roles, connections, Metrics(), evaluator=FakeEvaluator(), on_event=None)
    running = asyncio.ensure_future(pipeline.run())
    async with asyncio.timeout(120):
        await cluster.begun.wait()
        running.cancel()
        await asyncio.wait([running])
        await pipeline.close()
        cluster.may_bind.set()
        await cluster.ended.wait()
        may_end.set()
    assert cluster.bound == []
