"""When a pipeline is given up: out of its group for too long, or no nearer to what the topics held."""

import logging
from collections.abc import Hashable

import pytest

from underhost.agents.pipeline.gates.watchdog import STILL, Watchdog
from underhost.schemas.errors import KafkaAway
from underhost.streams.faust.membership import Membership


class Bench:
    """A watchdog of a member with a session of ten seconds, and a clock that the test moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self.membership = Membership(10, clock=lambda: self.time)
        self.membership.renewed(0.0)
        self.behind: Hashable | None = None
        self.failures: list[BaseException] = []
        self.watchdog = Watchdog(
            self.membership,
            10,
            behind=lambda: self.behind,
            failed=self.failures.append,
            clock=lambda: self.time,
        )

    def pass_by(self, seconds: float, *, beating: bool) -> list[str]:
        """Look once a second; what was given up, while the coordinator answers heartbeats or does not."""
        errors: list[str] = []
        for _ in range(int(seconds)):
            self.time += 1
            if beating:
                self.membership.renewed(self.time)
            error = self.watchdog.look()
            if error is not None:
                errors.append(str(error))
        return errors


def test_a_member_that_has_caught_up_is_left_alone() -> None:
    assert Bench().pass_by(3600, beating=True) == []


def test_a_worker_that_comes_back_to_its_group_within_four_sessions_is_left_alone() -> None:
    bench = Bench()
    assert bench.pass_by(10 + 40, beating=False) == []
    assert bench.pass_by(100, beating=True) == []
    assert bench.pass_by(10 + 40, beating=False) == [], "the time counts anew"


def test_a_worker_that_stays_out_of_its_group_is_given_up() -> None:
    bench = Bench()
    assert bench.pass_by(10 + 41, beating=False) == [
        "Kafka: this worker is out of its group: its consumer group has not answered for 51 s, "
        "and counts on it for 10 s"
    ]


def test_a_worker_that_its_group_does_not_know_any_more_is_given_up() -> None:
    bench = Bench()
    bench.membership.ended()
    assert bench.pass_by(42, beating=False)[-1] == (
        "Kafka: this worker is out of its group: its consumer group has gone on without it"
    )


def test_a_worker_that_was_frozen_has_the_time_to_join_again() -> None:
    bench = Bench()
    bench.time += 3600
    assert bench.pass_by(20, beating=False) == []
    assert bench.pass_by(20, beating=True) == []


def test_a_pipeline_that_comes_nearer_however_slowly_is_left_alone() -> None:
    bench = Bench()
    for left in range(20, 0, -1):
        bench.behind = f"{left} records of the topics are not read"
        assert bench.pass_by(STILL, beating=True) == []


def test_a_pipeline_that_stands_still_before_it_has_caught_up_is_given_up() -> None:
    bench = Bench()
    bench.behind = "2 records of the topics are not read"
    assert bench.pass_by(STILL + 2, beating=True) == [
        "Kafka: nothing was read for 60 s, though there is something to read: 2 records of the topics are not read"
    ]


def test_without_membership_nothing_can_be_read_and_that_is_not_held_against_it() -> None:
    bench = Bench()
    bench.behind = "2 records of the topics are not read"
    assert bench.pass_by(45, beating=False) == []
    assert bench.pass_by(STILL, beating=True) == []


async def test_what_it_gives_up_is_told_once() -> None:
    bench = Bench()
    bench.pass_by(40, beating=False)
    bench.time += 60
    await bench.watchdog.run()
    assert [type(error) for error in bench.failures] == [KafkaAway]


def test_a_doubt_is_one_line_when_it_begins_and_one_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench()
    bench.pass_by(5, beating=True)
    bench.pass_by(30, beating=False)
    bench.pass_by(5, beating=True)
    assert [record.getMessage() for record in caplog.records] == [
        "nothing is written by this worker: its consumer group has not answered for 10 s, and counts on it for 10 s",
        "this worker is a member of its consumer group",
    ]
