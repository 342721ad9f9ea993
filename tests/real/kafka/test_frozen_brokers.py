"""Three real Kafka brokers with replication 3, one of them frozen: the site goes on with the other two."""

import asyncio

import aiohttp
import pytest
from support.fakes.pipeline import FakeCluster
from support.processes.brokers import Brokers
from support.workers.pipeline import running

from underhost.schemas.topics import TOPICS, VIOLATIONS
from underhost.streams.kafka import connect as kafka
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings, WebSettings

pytestmark = pytest.mark.real

FOUND_WITHIN, READY_WITHIN = 30, 60
"""Seconds from a change to its finding, and from the start of a worker to its readiness: what we promise."""


def settings(site: str, servers: str) -> Settings:
    """Of a worker that does everything for this site."""
    kafka = KafkaSettings(bootstrap_servers=servers, partitions=3)
    web = WebSettings(listen="127.0.0.1:0")
    return Settings(site=site, kafka=kafka, vsphere=VSphereSettings(simulated="of the test"), web=web)


def cluster(site: str) -> FakeCluster:
    """Two nodes on two hosts with a replica each; moved to one host, they are a finding."""
    made = FakeCluster(site=site)
    for number in (1, 2):
        made.node(f"n{number}", f"h{number}")
        made.pod(f"db-{number}", f"n{number}", app="db")
    return made


async def ready(site: str, servers: str) -> None:
    """Run a worker of this site until it is ready. Raises TimeoutError after `READY_WITHIN`."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with (
        asyncio.timeout(READY_WITHIN),
        running(settings(site, servers), cluster(site), on_listening=listening.set_result),
        aiohttp.ClientSession() as session,
    ):
        while True:
            async with session.get(f"{await listening}readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.2)


async def test_a_frozen_broker_stops_neither_a_site_nor_the_start_of_a_worker(brokers: Brokers) -> None:
    nodes = cluster("prod")
    async with running(settings("prod", brokers.address), nodes) as worker:
        await worker.until(lambda: len(worker.evaluator.snapshots) > 0)
        for frozen, host in enumerate(("h1", "h2", "h1")):
            await brokers.in_sync()
            known = len(worker.records(VIOLATIONS))
            brokers[frozen].pause()
            async with asyncio.timeout(FOUND_WITHIN):
                nodes.move("n2", host)
                await worker.until(lambda: len(worker.records(VIOLATIONS)) > known)  # noqa: B023
            await ready(f"new-{frozen}", brokers.address_from(frozen))
            brokers[frozen].resume()


async def test_nothing_that_a_worker_needs_is_on_one_broker_only(brokers: Brokers) -> None:
    await ready("copies", brokers.address)
    async with kafka.admin(KafkaSettings(bootstrap_servers=brokers.address)) as admin:
        topics = await admin.describe_topics()
    copies = {topic["topic"]: len(topic["partitions"][0]["replicas"]) for topic in topics}
    needed = {name: count for name, count in copies.items() if name.startswith(("underhost.", "underhost-copies-"))}
    assert len(needed) > len(TOPICS)
    assert set(needed.values()) == {3}
