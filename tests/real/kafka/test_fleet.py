"""Workers of one site on a Kafka that many sites share: what is of other sites costs them nothing."""

import asyncio
from contextlib import suppress

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from support.processes.kafka import KafkaProcess
from support.workers.fleet import SITES, Fleet, Worker, topics_of_the_fleet, until

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


async def without_end(publisher: KafkaPublisher) -> None:
    """Changes of another site, as fast as Kafka takes them."""
    number = 0
    while True:
        key = f"{FOREIGN}/pod/shop/db-{number % 1000}"
        await publisher.publish(*(Outgoing(PODS, key, b"{}", f"{number}") for _ in range(200)))
        number += 1


async def read_by_group(settings: Settings) -> set[int]:
    """The partitions of the topic of pods of which the workers' group has read anything."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    await admin.start()
    try:
        committed = await admin.list_consumer_group_offsets(app_id(ROLES, SITE))
    finally:
        await admin.close()
    return {tp.partition for tp, place in committed.items() if tp.topic == PODS.name and place.offset > 0}


async def test_a_worker_of_one_site_reads_nothing_of_the_others_and_is_ready_while_they_never_rest(
    broker: KafkaProcess,
) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker.address, partitions=COUNT, session_timeout=6)
    settings = Settings(site=SITE, kafka=kafka)
    await topics_of_the_fleet(settings, ROLES)
    async with KafkaPublisher(kafka, COUNT) as publisher:
        fleet = Fleet(publisher)
        for cluster in fleet.clusters.values():
            cluster.node("n1")
            cluster.pod("stays", "n1")
        await fleet.publish()
        endless = asyncio.ensure_future(without_end(publisher))
        owner = Worker(settings, ROLES)
        await until(lambda: owner.held == {SITE} and not owner.pipeline.readiness.unready())
        async with asyncio.timeout(60):
            while True:
                if OURS in await read_by_group(settings):
                    break
                await asyncio.sleep(0.2)
        standby = Worker(settings, ROLES)
        await until(lambda: standby.pipeline.app.consumer_generation_id >= 2)
        await until(lambda: owner.held == {SITE})
        await owner.stop()
        await until(lambda: standby.held == {SITE} and standby.pods(SITE) == {"shop/stays"})
        assert {tp.partition for tp in standby.pipeline.app.consumer.assignment()} == {OURS}
        assert not endless.done()
        endless.cancel()
        with suppress(asyncio.CancelledError):
            await endless
        await standby.stop()
    assert await read_by_group(settings) == {OURS}
