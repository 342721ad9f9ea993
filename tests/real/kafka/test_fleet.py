"""Workers of one site on a Kafka that many sites share: what is of other sites costs them nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from support.processes.kafka import KafkaProcess
from support.workers.fleet import EVALUATOR, SITES, Fleet, Worker, topics_of_the_fleet, until

from underhost.agents.pipeline.roles import app_id
from underhost.schemas.topics import PODS
from underhost.streams.partition import partition_of
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

pytestmark = pytest.mark.real

SITE, COUNT = SITES[0], 8
OURS = partition_of(SITE, COUNT)
ROLES = frozenset({"evaluator", "labeller"})
FOREIGN = next(site for site in SITES if partition_of(site, COUNT) != OURS)


async def publish_every_site(publisher: KafkaPublisher) -> None:
    """Eight sites of a node and a pod."""
    fleet = Fleet(publisher)
    for cluster in fleet.clusters.values():
        cluster.node("n1")
        cluster.pod("stays", "n1")
    await fleet.publish()


@asynccontextmanager
async def another_site_never_rests(publisher: KafkaPublisher) -> AsyncIterator[None]:
    """A thousand changes of another site each second."""

    async def change() -> None:
        number = 0
        while True:
            keys = [f"{FOREIGN}/pod/shop/db-{each}" for each in range(100)]
            await publisher.publish(*(Outgoing(PODS, key, b"{}", f"{number}") for key in keys))
            number += 1
            await asyncio.sleep(0.1)

    changing = asyncio.ensure_future(change())
    try:
        yield
        assert not changing.done()
    finally:
        changing.cancel()
        await asyncio.wait([changing])


@asynccontextmanager
async def working(settings: Settings, roles: frozenset[str]) -> AsyncIterator[Worker]:
    """A worker; it is stopped at the end, but where the test has."""
    worker = Worker(settings, roles)
    try:
        yield worker
    finally:
        if not worker.running.done():
            await worker.stop()


async def read_by_group(settings: Settings) -> set[int]:
    """The partitions of the topic of pods of which the workers' group has read anything."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    await admin.start()
    try:
        committed = await admin.list_consumer_group_offsets(app_id(ROLES, SITE))
    finally:
        await admin.close()
    return {tp.partition for tp, place in committed.items() if tp.topic == PODS.name and place.offset > 0}


async def test_a_worker_of_one_site_reads_nothing_of_sites_that_never_rest_and_is_ready(
    broker: KafkaProcess,
) -> None:
    settings = Settings(site=SITE, kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=COUNT))
    await topics_of_the_fleet(settings, ROLES)
    async with (
        KafkaPublisher(settings.kafka, COUNT) as publisher,
        another_site_never_rests(publisher),
        working(settings, ROLES) as owner,
    ):
        await publish_every_site(publisher)
        await until(lambda: owner.held == {SITE} and not owner.pipeline.readiness.unready())
        async with asyncio.timeout(60):
            while True:
                if OURS in await read_by_group(settings):
                    break
                await asyncio.sleep(0.2)
        async with working(settings, ROLES) as standby:
            await until(lambda: standby.pipeline.app.consumer_generation_id >= 2 and owner.held == {SITE})
            await owner.stop()
            await until(lambda: standby.held == {SITE} and bool(standby.evaluator.snapshots))
            assert standby.pods(SITE) == {"shop/stays"}
            assert {tp.partition for tp in standby.pipeline.app.consumer.assignment()} == {OURS}
    assert await read_by_group(settings) == {OURS}


async def test_an_evaluator_judges_the_site_that_its_settings_name_and_no_other(broker: KafkaProcess) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker.address, partitions=COUNT)
    ours, theirs = (Settings(site=site, kafka=kafka) for site in (SITE, FOREIGN))
    for settings in (ours, theirs):
        await topics_of_the_fleet(settings)
    async with KafkaPublisher(kafka, COUNT) as publisher:
        await publish_every_site(publisher)
    async with working(ours, EVALUATOR) as one, working(theirs, EVALUATOR) as other:
        await until(lambda: one.held == {SITE} and other.held == {FOREIGN})
        await until(lambda: bool(one.evaluator.snapshots and other.evaluator.snapshots))
        judged = [{each.site for each in worker.evaluator.snapshots} for worker in (one, other)]
    assert judged == [{SITE}, {FOREIGN}]
