"""What is heard of a group's coordinator, and what an error does that aiokafka keeps to itself."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, RebalanceInProgressError, UnknownMemberIdError
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest
from aiokafka.structs import OffsetAndMetadata
from aiokafka.util import commit_structure_validate
from faust.types import TP

from underhost.streams.faust.app import build_app
from underhost.streams.faust.membership import Membership
from underhost.streams.kafka.consumer import ConsumerThread, listen
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

HEARTBEAT = HeartbeatRequest("underhost", 3, "member")
SYNC = SyncGroupRequest("underhost", 3, "member", None, [])


class Coordinator:
    """The part of aiokafka's that is listened to; it answers every request with one error code."""

    def __init__(self, error: type[KafkaError] | None = None) -> None:
        self.group_id, self.member_id, self.generation = "underhost", "member", 3
        self.code = 0 if error is None else error.errno
        self.forgotten = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.pushed: list[BaseException] = []
        self.joining: list[float] = []
        self.failed: list[BaseException] = []
        self.membership = Membership(10)
        listen(self, self.membership, joining=self.joining.append, failed=self.failed.append)

    async def _send_req(self, request: Any) -> Any:
        self.meanwhile()
        return SimpleNamespace(error_code=self.code)

    def reset_generation(self) -> None:
        """aiokafka's."""
        self.forgotten += 1
        self.member_id, self.generation = "", OffsetCommitRequest.DEFAULT_GENERATION_ID

    def _push_error_to_user(self, error: BaseException) -> str:
        self.pushed.append(error)
        return "waits until it is taken"


@pytest.mark.parametrize(
    ("error", "member"),
    [(None, True), (RebalanceInProgressError, True), (UnknownMemberIdError, False)],
    ids=["accepted", "while a rebalance is under way", "unknown member"],
)
async def test_a_heartbeat_that_is_accepted_renews_the_membership(error: type[KafkaError] | None, member: bool) -> None:
    coordinator = Coordinator(error)
    answer = await coordinator._send_req(HEARTBEAT)
    assert answer.error_code == coordinator.code
    assert (coordinator.membership.doubt() is None) is member


async def test_a_heartbeat_of_a_member_that_is_forgotten_before_the_answer_renews_nothing() -> None:
    coordinator = Coordinator()
    coordinator.meanwhile = coordinator.reset_generation
    await coordinator._send_req(HEARTBEAT)
    assert coordinator.membership.doubt() is not None


async def test_joining_is_told_by_when_it_was_asked_for_and_is_no_membership_yet() -> None:
    coordinator = Coordinator()
    await coordinator._send_req(SYNC)
    assert len(coordinator.joining) == 1
    assert coordinator.membership.doubt() is not None, "the partitions of the new generation are not known yet"


async def test_a_member_that_its_coordinator_does_not_know_is_one_no_more() -> None:
    coordinator = Coordinator()
    await coordinator._send_req(HEARTBEAT)
    coordinator.reset_generation()
    assert coordinator.forgotten == 1
    assert coordinator.membership.doubt() == "its consumer group has gone on without it"


async def test_a_member_commits_and_who_was_forgotten_commits_nothing() -> None:
    coordinator = Coordinator()
    commit = OffsetCommitRequest("underhost", 3, "member", -1, [("underhost.pods", [(0, 1, "")])])
    assert (await coordinator._send_req(commit)).error_code == 0
    coordinator.reset_generation()
    with pytest.raises(UnknownMemberIdError):
        await coordinator._send_req(commit)


class Consumer:
    """The part of aiokafka's that commits for the partitions that are its own; an empty commit is an error."""

    def __init__(self, *mine: TopicPartition) -> None:
        self.mine = {*mine}
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def assignment(self) -> set[TopicPartition]:
        return self.mine

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.committed |= commit_structure_validate(offsets)


@pytest.mark.parametrize(
    ("mine", "committed"),
    [
        pytest.param([0, 1], {0: 7, 1: 9}, id="all are ours"),
        pytest.param([1], {1: 9}, id="one was taken meanwhile"),
        pytest.param([], {}, id="all were taken meanwhile"),
    ],
)
async def test_only_what_is_still_ours_is_committed(mine: list[int], committed: dict[int, int]) -> None:
    thread, consumer = ConsumerThread.__new__(ConsumerThread), Consumer(*(TopicPartition("pods", at) for at in mine))
    thread._consumer, thread.tp_last_committed_at = consumer, {}
    assert await thread._commit({TP("pods", 0): 7, TP("pods", 1): 9}) is bool(committed)
    assert {tp.partition: place.offset for tp, place in consumer.committed.items()} == committed


async def test_a_broker_keeps_an_empty_fetch_for_a_quarter_of_a_second() -> None:
    def ignore(*ignored: Any) -> None:
        """Nothing is read here."""

    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9092")
    transport = build_app(Settings(kafka=kafka), app_id="t").transport
    thread = ConsumerThread(
        transport.create_consumer(ignore, on_partitions_revoked=ignore, on_partitions_assigned=ignore)
    )
    consumer = thread._create_worker_consumer(transport)
    await consumer.stop()
    assert consumer._fetch_max_wait_ms == 250


def test_an_error_that_aiokafka_waits_to_hand_over_is_told_at_once() -> None:
    coordinator, error = Coordinator(), GroupAuthorizationFailedError("underhost")
    assert coordinator._push_error_to_user(error) == "waits until it is taken"
    assert (coordinator.failed, coordinator.pushed) == ([error], [error])


def test_a_stream_that_is_behind_its_topic_is_no_error_in_the_log() -> None:
    thread = ConsumerThread.__new__(ConsumerThread)  # it has no monitor, without which Faust's own check cannot know
    asked: list[TP] = []
    thread._verify_aiokafka_event_path = lambda now, place: asked.append(place)
    thread.verify_event_path(1000.0, TP("underhost.pods", 0))
    assert asked == [TP("underhost.pods", 0)]
