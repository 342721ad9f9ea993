"""A site's partition moves to another worker and back, on a real Kafka broker: no row of the past is left."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_pipeline import FakeCluster, FakeEngine
from kafka_process import KafkaProcess

from underhost.agents.metrics import Metrics
from underhost.agents.outside import Outside
from underhost.agents.pipeline import Pipeline
from underhost.schemas.keys import listed_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, NODES, PODS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings import KafkaSettings, Settings

pytestmark = pytest.mark.real

SITES = [f"site-{number}" for number in range(8)]
EVALUATOR = frozenset({"evaluator"})


@pytest.fixture
def settings(parts: Path, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a broker of the test's own."""
    broker = KafkaProcess(tmp_path, parts)
    broker.start()
    yield Settings(kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=8, session_timeout=6))
    broker.kill()


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
    """An evaluator in this process, and the newest snapshot that it decided from, by site."""

    def __init__(self, settings: Settings) -> None:
        self.engine = FakeEngine()
        outside = Outside(lambda site, publisher, reader: [])
        self.pipeline = Pipeline(settings, EVALUATOR, outside, Metrics(), engine=self.engine, on_event=None)
        self.running = asyncio.create_task(self.pipeline.run())

    @property
    def held(self) -> set[str]:
        """The sites that it decides for now."""
        return {site for site in self.pipeline.sites.held() if self.pipeline.sites.unready(site) is None}

    def pods(self, site: str) -> set[str]:
        """The pods of the newest snapshot of the site."""
        return next(set(each.pods) for each in reversed(self.engine.snapshots) if each.site == site)

    async def stop(self) -> None:
        """Leave the group."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.pipeline.close()


async def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition; a worker has no other way to say that Kafka has assigned it something."""
    async with asyncio.timeout(seconds):
        while True:
            if true():
                return
            await asyncio.sleep(0.05)


async def test_a_site_that_moves_away_and_comes_back_shows_exactly_the_present_state(settings: Settings) -> None:
    await ensure_topics(settings.kafka)
    assert settings.kafka.bootstrap_servers is not None
    async with KafkaPublisher(settings.kafka.bootstrap_servers, settings.kafka.partitions) as publisher:
        fleet = Fleet(publisher)
        for cluster in fleet.clusters.values():
            cluster.node("n1")
            cluster.pod("stays", "n1")
            cluster.pod("goes", "n1")
        await fleet.publish()
        first = Worker(settings)
        await until(lambda: first.held == set(SITES))
        await until(lambda: all(any(each.site == site for each in first.engine.snapshots) for site in SITES))
        # Rows that were written live, not recovered: those are the ones that Faust's store would keep for ever.
        for cluster in fleet.clusters.values():
            cluster.pod("live", "n1")
        await fleet.publish()
        everything = {"shop/stays", "shop/goes", "shop/live"}
        await until(lambda: all(first.pods(site) == everything for site in SITES))

        second = Worker(settings)
        await until(lambda: bool(second.held) and first.held | second.held == set(SITES))
        moved = second.held
        assert moved and moved.isdisjoint(first.held)
        # Nothing of them is kept: a tombstone that compaction removes while they are away would never be seen.
        assert {key.split(b"/")[0].decode() for key, _ in first.pipeline.tables.rows(PODS)} == first.held
        assert set(first.pipeline.sites.states) == first.held
        # While they are away, every site changes: what the first worker remembers of the moved ones is wrong now.
        for cluster in fleet.clusters.values():
            cluster.delete_pod("goes")
            cluster.delete_pod("live")
            cluster.pod("new", "n1")
        await fleet.publish()
        present = {"shop/stays", "shop/new"}
        await until(lambda: all(second.pods(site) == present for site in moved))
        await until(lambda: all(first.pods(site) == present for site in first.held))

        await second.stop()
        before = len(first.engine.snapshots)
        await until(lambda: first.held == set(SITES))
        await until(lambda: moved <= {each.site for each in first.engine.snapshots[before:]})
        assert {site: first.pods(site) for site in SITES} == dict.fromkeys(SITES, present)
        ghosts = {key for key, _ in first.pipeline.tables.rows(PODS)} - {
            key.encode() for site in SITES for key in (*fleet.sent[site], listed_key(site, "kubernetes"))
        }
        assert ghosts == set()
        await first.stop()
