"""The roles of a site over three workers on a real Kafka broker: watchers, evaluator, and the hands."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fake_pipeline import FakeCluster
from kafka_process import KafkaProcess
from pipeline_harness import running
from typer.testing import CliRunner

from underhost.agents.cli import build
from underhost.agents.records import outgoing
from underhost.schemas.records import Placement
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, OUTCOMES, PLACEMENTS, VIOLATIONS
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings import KafkaSettings, Settings, SinkSettings, VSphereSettings

pytestmark = pytest.mark.real


@pytest.fixture
def settings(parts: Path, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a broker of the test's own."""
    broker = KafkaProcess(tmp_path, parts)
    broker.start()
    yield Settings(
        site="prod",
        kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=4, session_timeout=6),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=True, bindings=True),
    )
    broker.kill()


async def test_each_worker_does_its_part_and_nothing_else(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    for number in (1, 2, 3):
        cluster.node(f"n{number}", f"h{number}")
        cluster.pod(f"db-{number}", app="db")
    async with AsyncExitStack() as stack:
        # The hands come first and find nothing to do; the evaluator finds topics without a listed site.
        hands = await stack.enter_async_context(running(settings, cluster, roles=("labeller", "binder")))
        evaluator = await stack.enter_async_context(running(settings, cluster, roles=("evaluator",)))
        watchers = await stack.enter_async_context(running(settings, cluster, roles=("kubernetes", "vsphere")))
        await hands.until(lambda: len(cluster.bound) == len(cluster.labelled) == 3)
        await hands.until(lambda: len(hands.records_of(OUTCOMES)) == 6)
        cluster.move("n2", "h1")
        await evaluator.until(lambda: len(evaluator.records(VIOLATIONS)) == 1)
        await evaluator.until(lambda: len(evaluator.records(NODE_HOSTS)) == 4)
    assert sorted(cluster.bound) == [("db-1", "n1"), ("db-2", "n2"), ("db-3", "n3")]
    assert {record.topic for record in watchers.published} == set()
    assert {record.topic.short for record in evaluator.published} == {"node-hosts", "placements", "violations"}
    assert {record.topic.short for record in hands.published} == {"actions", "outcomes"}
    assert len(evaluator.records(PLACEMENTS)) == 3
    assert {key for key, _ in hands.records(ACTIONS)} == {f"prod/node//n{number}" for number in (1, 2, 3)}


async def test_what_a_watcher_does_not_believe_stops_every_worker_until_a_person_resumes(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    cluster.node("n1", "h1")
    async with AsyncExitStack() as stack:
        watchers = await stack.enter_async_context(running(settings, cluster, roles=("kubernetes", "vsphere")))
        await cluster.listed["vsphere"].wait()
        binder = await stack.enter_async_context(running(settings, cluster, roles=("binder",)))
        thinker = await stack.enter_async_context(running(settings, cluster, roles=("evaluator", "labeller")))
        await thinker.until(lambda: len(cluster.labelled) == 1)
        cluster.doubt("vsphere", "vms: 39 of 40 are missing")
        await thinker.until(lambda: len(thinker.records(VIOLATIONS)) == 1)
        # Whatever is published for the binder by hand now, or was on its way, it refuses.
        cluster.pod("db-1", app="db")
        order = Placement("shop/db-1", "pod-db-1", "n1", 0, 0, {}, {})
        async with KafkaPublisher(str(settings.kafka.bootstrap_servers), 4) as publisher:
            await publisher.publish(outgoing(PLACEMENTS, "prod/pod/shop/db-1", order))
        await binder.until(lambda: len(binder.records(OUTCOMES)) == 1)
        cluster.move("n1", "h2")
        await thinker.until(lambda: thinker.states(NODE_HOSTS, "hostName")[-1:] == [("prod/node//n1", "h2")])
        assert (len(cluster.labelled), cluster.bound) == (1, [])

        command = ["resume", "prod", "--bootstrap-servers", str(settings.kafka.bootstrap_servers)]
        done = await asyncio.to_thread(CliRunner().invoke, build(), command)
        assert (done.exception, done.output) == (None, "Site prod goes on. Accepted:\n  vms: 39 of 40 are missing\n")
        await thinker.until(lambda: len(cluster.labelled) == 2)
        await binder.until(lambda: cluster.bound == [("db-1", "n1")])
    [refused, *_] = [value for _, value in binder.records(OUTCOMES)]
    assert (refused["result"], refused["reason"]) == ("failed", "writes stop: vms: 39 of 40 are missing")
    assert [value["kind"] for _, value in watchers.records(OUTCOMES)] == ["resume"]


async def test_a_standby_of_the_same_roles_takes_the_site_over(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    cluster.node("n1", "h1")
    cluster.pod("db-1", app="db")
    async with AsyncExitStack() as stack:
        async with running(settings, cluster) as first:
            await first.until(lambda: len(cluster.bound) == 1 and len(first.records(OUTCOMES)) == 2)
            standby = await stack.enter_async_context(running(settings, cluster))
        # However far the second one has come: the first has left, and what happens now is seen by the second.
        cluster.node("n2", "h2")
        cluster.pod("db-2", app="db")
        await standby.until(lambda: len(cluster.bound) == 2)
    assert cluster.bound == [("db-1", "n1"), ("db-2", "n2")]
    assert standby.states(PLACEMENTS, "node") == [("prod/pod/shop/db-2", "n2")]
