"""Eight sites whose watchers are elsewhere, and workers over them in this process: for tests of rebalances."""

import asyncio
from collections.abc import Callable

from support.fakes.pipeline import FakeCluster, FakeEvaluator

from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.roles import changelog_topics
from underhost.agents.pipeline.run import Pipeline
from underhost.schemas.keys import listed_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, NODES, PODS, TOPICS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.model import Settings

SITES = [f"site-{number}" for number in range(8)]
EVALUATOR = frozenset({"evaluator"})


async def topics_of_the_fleet(settings: Settings, roles: frozenset[str] = EVALUATOR) -> None:
    """Make the topics and the changelogs of a `Worker`, as the program does before its pipeline starts."""
    await ensure_topics(settings.kafka, (*TOPICS, *changelog_topics(roles, settings.site)))


class Fleet:
    """Eight sites whose watchers are elsewhere: their records come straight from the test."""

    def __init__(self, publisher: KafkaPublisher) -> None:
        self.publisher = publisher
        self.clusters = {site: FakeCluster(site=site) for site in SITES}
        self.sent: dict[str, dict[str, bytes]] = {site: {} for site in SITES}

    async def publish(self) -> None:
        """What changed in the clusters since the last time, then the markers of the sources."""
        for site, cluster in self.clusters.items():
            now = {key: (topic, encode(value)) for key, (topic, value) in cluster.objects["kubernetes"].items()}
            before = self.sent[site]
            records = [
                Outgoing(topic, key, data, "state") for key, (topic, data) in now.items() if before.get(key) != data
            ]
            records += [
                Outgoing(NODES if "/node/" in key else PODS, key, None, "gone") for key in before if key not in now
            ]
            if not before:
                marker = encode(Listed(1, len(now)))
                records += [Outgoing(topic, listed_key(site, "kubernetes"), marker, "1") for topic in KUBERNETES_TOPICS]
            await self.publisher.publish(*records)
            self.sent[site] = {key: data for key, (_, data) in now.items()}


class Worker:
    """A worker in this process that evaluates, and the newest snapshot that it decided from, by site."""

    def __init__(self, settings: Settings, roles: frozenset[str] = EVALUATOR) -> None:
        self.evaluator = FakeEvaluator()
        connections = Connections(lambda site, publisher, reader: [])
        self.pipeline = Pipeline(settings, roles, connections, Metrics(), evaluator=self.evaluator, on_event=None)
        self.running = asyncio.create_task(self.pipeline.run())

    @property
    def held(self) -> set[str]:
        """The sites that it decides for now."""
        return {site for site in self.pipeline.sites.held() if self.pipeline.sites.unready(site) is None}

    def pods(self, site: str) -> set[str]:
        """The pods of the newest snapshot of the site."""
        return next(set(each.pods) for each in reversed(self.evaluator.snapshots) if each.site == site)

    def rejoin(self) -> None:
        """Join the group anew, as when another member comes or goes."""
        thread = self.pipeline.app.consumer._thread
        thread.thread_loop.call_soon_threadsafe(thread._consumer._coordinator.request_rejoin)

    async def stop(self) -> None:
        """Leave the group."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.pipeline.close()


async def until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for a condition; a worker has no other way to say that Kafka has assigned it something."""
    async with asyncio.timeout(seconds):
        while True:
            if true():
                return
            await asyncio.sleep(0.05)
