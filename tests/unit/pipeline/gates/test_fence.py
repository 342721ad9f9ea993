"""The fence: a worker that may have lost its partitions publishes nothing and writes to no cluster."""

import asyncio

import pytest
from support.fakes.pipeline import FakeCluster

from underhost.agents.pipeline.gates.fence import FencedPublisher, fenced
from underhost.agents.sinks.ports import Writers
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import PODS
from underhost.streams.faust.membership import Membership, now
from underhost.streams.ports import Outgoing

RECORD = Outgoing(PODS, "prod/pod/shop/db-0", b"{}", "1")


class Published:
    """A publisher that remembers."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        self.records += records


def lapsed() -> Membership:
    """Of a worker that was frozen for an hour."""
    membership = Membership(10)
    membership.renewed(now() - 3600)
    return membership


async def test_a_member_publishes_at_once() -> None:
    published = Published()
    await FencedPublisher(published, Membership()).publish(RECORD)
    assert published.records == [RECORD]


async def test_what_a_frozen_worker_was_about_to_publish_waits_until_it_is_a_member_again() -> None:
    published, membership = Published(), lapsed()
    publishing = asyncio.create_task(FencedPublisher(published, membership).publish(RECORD))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert published.records == []
    membership.renewed(now())
    await asyncio.wait_for(publishing, 30)
    assert published.records == [RECORD]


async def test_a_frozen_worker_reaches_no_cluster() -> None:
    cluster = FakeCluster()
    cluster.node("n1")
    cluster.pod("db-0")
    writers = fenced(Writers(cluster), lapsed())
    assert writers.kubernetes is not None
    with pytest.raises(Unreachable, match="nothing is written by this worker: its consumer group has not answered"):
        await writers.kubernetes.bind_pod("shop", "db-0", "pod-db-0", "n1")
    with pytest.raises(Unreachable):
        await writers.kubernetes.pod_node("shop", "db-0")
    assert cluster.bound == []


async def test_a_member_reaches_its_cluster_and_is_answered() -> None:
    cluster = FakeCluster()
    cluster.node("n1")
    cluster.pod("db-0")
    writers = fenced(Writers(cluster), Membership())
    assert writers.kubernetes is not None
    await writers.kubernetes.bind_pod("shop", "db-0", "pod-db-0", "n1")
    assert await writers.kubernetes.pod_node("shop", "db-0") == ("pod-db-0", "n1")


def test_a_writer_that_is_not_there_stays_away() -> None:
    assert fenced(Writers(FakeCluster()), Membership()).drs is None
