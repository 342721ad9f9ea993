"""The fence: a worker that may have lost its partitions publishes nothing and writes to no cluster."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from support.fakes.pipeline import FakeCluster

from underhost.agents.pipeline.gates.fence import FencedPublisher, LeasedPublisher, fenced
from underhost.agents.pipeline.leases.election import Election
from underhost.agents.pipeline.leases.roles import RoleLease
from underhost.agents.sinks.ports import Writers
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import PODS
from underhost.streams.before_write import before_write
from underhost.streams.faust.membership import Membership, now
from underhost.streams.kubernetes.leases import Lease
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
    writers = fenced(Writers(cluster), lapsed(), RoleLease())
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
    writers = fenced(Writers(cluster), Membership(), RoleLease())
    assert writers.kubernetes is not None
    await writers.kubernetes.bind_pod("shop", "db-0", "pod-db-0", "n1")
    assert await writers.kubernetes.pod_node("shop", "db-0") == ("pod-db-0", "n1")


class LeaseAt:
    """A lease of fifteen seconds that was taken at the moment 0, in term 7; `at` is the time."""

    def __init__(self) -> None:
        self.at = 0.0
        self.election = Election("underhost-prod-binder", "a", 15, clock=lambda: self.at, wall=lambda: 0.0)
        self.election.observe(None)
        self.take(7)
        self.lease = RoleLease(self.election)

    def take(self, term: int) -> None:
        """Hold it from now on, in this term."""
        self.election.wrote(Lease("a", term, 15, "", str(term)), self.at)


async def test_a_worker_whose_lease_is_too_old_reaches_no_cluster_though_it_is_a_member() -> None:
    cluster, held = FakeCluster(), LeaseAt()
    cluster.node("n1")
    cluster.pod("db-0")
    writers = fenced(Writers(cluster), Membership(), held.lease)
    assert writers.kubernetes is not None
    await writers.kubernetes.pod_node("shop", "db-0")
    held.at = 10.0
    with pytest.raises(Unreachable, match="nothing is written by this worker: lease underhost-prod-binder is not held"):
        await writers.kubernetes.bind_pod("shop", "db-0", "pod-db-0", "n1")
    assert cluster.bound == []


class SlowCluster(FakeCluster):
    """A cluster whose client takes its time before it sends."""

    before: Callable[[], None]

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """See `ports.KubernetesWriter`."""
        self.before()
        before_write()
        await super().bind_pod(namespace, name, uid, node, labels)


async def test_a_write_that_began_in_time_is_not_sent_once_the_lease_is_too_old() -> None:
    cluster, held = SlowCluster(), LeaseAt()
    cluster.node("n1")
    cluster.pod("db-0")
    cluster.before = lambda: setattr(held, "at", 10.0)
    writer = fenced(Writers(cluster), Membership(), held.lease).kubernetes
    assert writer is not None
    with pytest.raises(Unreachable, match="nothing is written by this worker: lease underhost-prod-binder is not held"):
        await writer.bind_pod("shop", "db-0", "pod-db-0", "n1")
    assert cluster.bound == []


async def test_the_records_of_a_source_carry_its_term() -> None:
    published, held = Published(), LeaseAt()
    await LeasedPublisher(published, Membership(), held.lease).publish(RECORD)
    await LeasedPublisher(published, Membership(), RoleLease()).publish(RECORD)
    assert [record.headers for record in published.records] == [{"ce_term": b"7"}, {}]


async def test_a_source_of_a_frozen_worker_publishes_nothing_until_it_is_a_member_again() -> None:
    published, membership = Published(), lapsed()
    publishing = asyncio.create_task(LeasedPublisher(published, membership, LeaseAt().lease).publish(RECORD))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert published.records == []
    membership.renewed(now())
    await asyncio.wait_for(publishing, 30)
    assert [record.headers for record in published.records] == [{"ce_term": b"7"}]


async def test_a_source_that_was_started_in_another_term_publishes_nothing_any_more() -> None:
    published, held = Published(), LeaseAt()
    of_before = LeasedPublisher(published, Membership(), held.lease)
    held.take(9)
    publishing = asyncio.create_task(of_before.publish(RECORD))
    await LeasedPublisher(published, Membership(), held.lease).publish(RECORD)
    assert [record.headers for record in published.records] == [{"ce_term": b"9"}]
    assert not publishing.done()
    publishing.cancel()


async def test_sources_go_on_in_their_last_term_while_the_api_server_is_away() -> None:
    published, held = Published(), LeaseAt()
    publisher = LeasedPublisher(published, Membership(), held.lease)
    held.at = 12.0
    held.election.unanswered(11.0, "https://c: no answer")
    await publisher.publish(RECORD)
    assert [record.headers for record in published.records] == [{"ce_term": b"7"}]


class SilentCluster(FakeCluster):
    """A cluster that takes requests and does not answer."""

    async def pod_node(self, namespace: str, name: str) -> tuple[str, str]:
        """See `ports.KubernetesWriter`."""
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_without_a_lease_a_request_ends_before_another_worker_may_be_a_member() -> None:
    membership = Membership(10)
    membership.renewed(now() - 9.9)
    writer = fenced(Writers(SilentCluster()), membership, RoleLease()).kubernetes
    assert writer is not None
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable, match="for as long as the consumer group counts on this worker"):
            await writer.pod_node("shop", "db-0")


async def test_with_a_lease_a_request_ends_with_it_though_the_worker_is_a_member() -> None:
    held = LeaseAt()
    writer = fenced(Writers(SilentCluster()), Membership(), held.lease).kubernetes
    assert writer is not None
    asking = asyncio.ensure_future(writer.pod_node("shop", "db-0"))
    await asyncio.sleep(0)
    held.at = 15.0
    held.lease.renewed()  # too late: its whole time is over
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable, match="no answer before the end of lease underhost-prod-binder"):
            await asking


def test_a_writer_that_is_not_there_stays_away() -> None:
    assert fenced(Writers(FakeCluster()), Membership(), RoleLease()).drs is None
