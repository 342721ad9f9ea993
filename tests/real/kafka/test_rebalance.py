"""A site's partition moves to another worker and back, on a real Kafka broker: no row of the past is left."""

import pytest
from support.processes.kafka import KafkaProcess
from support.workers.fleet import SITES, Fleet, Worker, topics_of_the_fleet, until

from underhost.schemas.keys import listed_key
from underhost.schemas.topics import PODS
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

pytestmark = pytest.mark.real


@pytest.fixture
def settings(broker: KafkaProcess) -> Settings:
    """Settings of a broker of the test's own."""
    return Settings(kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=8, session_timeout=6))


async def test_a_site_that_moves_away_and_comes_back_shows_exactly_the_present_state(settings: Settings) -> None:
    await topics_of_the_fleet(settings)
    async with KafkaPublisher(settings.kafka, settings.kafka.partitions) as publisher:
        fleet = Fleet(publisher)
        for cluster in fleet.clusters.values():
            cluster.node("n1")
            cluster.pod("stays", "n1")
            cluster.pod("goes", "n1")
        await fleet.publish()
        first = Worker(settings)
        await until(lambda: first.held == set(SITES))
        await until(lambda: all(any(each.site == site for each in first.evaluator.snapshots) for site in SITES))
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
        before = len(first.evaluator.snapshots)
        await until(lambda: first.held == set(SITES))
        await until(lambda: moved <= {each.site for each in first.evaluator.snapshots[before:]})
        assert {site: first.pods(site) for site in SITES} == dict.fromkeys(SITES, present)
        ghosts = {key for key, _ in first.pipeline.tables.rows(PODS)} - {
            key.encode() for site in SITES for key in (*fleet.sent[site], listed_key(site, "kubernetes"))
        }
        assert ghosts == set()
        await first.stop()


async def test_what_nobody_has_committed_is_read_again_after_a_rebalance(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underhost.streams.faust.app.COMMIT_INTERVAL", 3600.0)
    await topics_of_the_fleet(settings)
    async with KafkaPublisher(settings.kafka, settings.kafka.partitions) as publisher:
        fleet = Fleet(publisher)
        for cluster in fleet.clusters.values():
            cluster.node("n1")
            cluster.pod("stays", "n1")
        await fleet.publish()
        worker = Worker(settings)
        try:
            await until(lambda: worker.held == set(SITES))
            for generation in (2, 3, 4):
                worker.rejoin()
                await until(lambda joined=generation: worker.pipeline.app.consumer_generation_id == joined)
                # Ready means that every record that the topics hold has been read since.
                await until(lambda: worker.held == set(SITES))
        finally:
            await worker.stop()
