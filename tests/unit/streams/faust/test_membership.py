"""Membership of a consumer group, by the worker's own clock: what a frozen worker sees when it goes on."""

import asyncio

import pytest

from underhost.streams.faust.membership import Membership, now


class Clock:
    """Stands still until the test moves it."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_without_a_group_there_is_no_doubt() -> None:
    assert Membership().doubt() is None


def test_before_it_has_joined_it_owns_nothing() -> None:
    assert Membership(10).doubt() == "it has not joined its consumer group yet"


@pytest.mark.parametrize(
    ("silent", "doubt"),
    [
        (0.0, None),
        (9.9, None),
        (10.0, "its consumer group has not answered for 10 s, and counts on it for 10 s"),
        (3600.0, "its consumer group has not answered for 3600 s, and counts on it for 10 s"),
    ],
)
def test_it_holds_for_the_session_timeout_from_when_the_last_heartbeat_was_sent(
    silent: float, doubt: str | None
) -> None:
    clock = Clock()
    membership = Membership(10, clock=clock)
    membership.renewed(clock.time)
    clock.time += silent
    assert membership.doubt() == doubt


def test_an_answer_that_was_frozen_on_its_way_counts_from_its_question() -> None:
    clock = Clock()
    membership = Membership(10, clock=clock)
    sent = clock.time
    clock.time += 60
    membership.renewed(sent)
    assert membership.doubt() is not None


def test_a_coordinator_that_does_not_know_us_ends_it_at_once_until_we_join_again() -> None:
    clock = Clock()
    membership = Membership(10, clock=clock)
    membership.renewed(clock.time)
    membership.ended()
    assert membership.doubt() == "its consumer group has gone on without it"
    membership.renewed(clock.time)
    assert membership.doubt() is None


async def test_whoever_waits_goes_on_once_it_is_confirmed() -> None:
    membership = Membership(10)
    waiting = asyncio.create_task(membership.confirmed())
    await asyncio.sleep(0)
    assert not waiting.done()
    membership.renewed(now())
    await asyncio.wait_for(waiting, 30)
