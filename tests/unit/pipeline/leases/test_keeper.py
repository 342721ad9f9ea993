"""A lease is sought, kept and given back, and whoever acts by it is told before anything else happens."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from support.fakes.leases import FakeLeases
from support.workers.fleet import until

from underhost.agents.pipeline.leases.election import Election
from underhost.agents.pipeline.leases.keeper import Keeper
from underhost.schemas.errors import Forbidden, Gone, Refused, UnderhostError, Unreachable

NAME = "underhost-prod-drs"


class Kept:
    """A worker's keeper over the server's leases; `changes` are the terms that it was told of."""

    def __init__(self, server: FakeLeases, identity: str = "a", *, may_seek: Callable[[], bool] = lambda: True) -> None:
        self.at = 0.0
        self.election = Election(NAME, identity, 15, clock=lambda: self.at, wall=lambda: 0.0)
        self.changes: list[int | None] = []
        self.keeper = Keeper(server, self.election, may_seek, self._changed)

    async def _changed(self) -> None:
        self.changes.append(self.election.term)


async def test_it_is_taken_then_renewed_without_reading_it_again() -> None:
    server = FakeLeases()
    worker = Kept(server)
    for _ in range(3):
        await worker.keeper.look()
    assert (server.asked, [lease.holder for _, lease in server.written]) == ([NAME], ["a", "a", "a"])
    assert (worker.changes, worker.election.doubt()) == ([0], None)


async def test_a_restarted_holder_takes_its_own_lease_at_once_in_a_new_term() -> None:
    server = FakeLeases()
    await Kept(server).keeper.look()
    again = Kept(server)
    await again.keeper.look()
    assert again.changes == [1]


async def test_another_one_stands_by_and_says_whose_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = FakeLeases()
    await Kept(server, "b").keeper.look()
    caplog.clear()
    worker = Kept(server)
    for _ in range(3):
        await worker.keeper.look()
    assert worker.changes == []
    assert [record.message for record in caplog.records] == [f"lease {NAME} is held by b"]


async def test_who_was_frozen_and_lost_it_is_told_that_its_hold_is_another_one() -> None:
    server = FakeLeases()
    worker, other = Kept(server), Kept(server, "b")
    await worker.keeper.look()
    await other.keeper.look()
    other.at = 15.0
    await other.keeper.look()
    await other.keeper.release()
    worker.at = 60.0  # it sees nothing of all that
    await worker.keeper.look()
    await worker.keeper.look()
    assert worker.changes == [0, 2]
    assert other.changes == [1, None]


async def test_a_conflict_is_read_before_anything_is_written() -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    server.give(NAME, "b")
    await worker.keeper.look()
    assert worker.election.term == 0  # its last write still counts for others, and so for it
    await worker.keeper.look()
    assert (worker.changes, worker.election.doubt()) == ([0, None], f"lease {NAME} is held by b")


async def test_what_is_given_back_is_free_at_once_and_is_told_before() -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    await worker.keeper.release()
    await worker.keeper.release()
    assert (worker.changes, server.held[NAME].holder) == ([0, None], "")


async def test_it_is_given_back_even_where_the_answer_to_its_last_write_was_lost() -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    server.give(NAME, "a")  # as a renewal that arrived and was not answered
    await worker.keeper.release()
    assert server.held[NAME].holder == ""


async def test_who_cannot_give_it_back_does_not_hold_it_any_more_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    server.fails = Unreachable("https://c: no answer in time")
    await worker.keeper.release()
    assert worker.changes == [0, None]
    assert [record.message for record in caplog.records] == [
        f"lease {NAME} was not given back, others wait until it ends: https://c: no answer in time"
    ]


async def test_what_is_anothers_by_now_is_not_given_back() -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    server.give(NAME, "b")
    await worker.keeper.release()
    assert server.held[NAME].holder == "b"


async def test_an_api_server_that_is_away_takes_nothing_away_at_once() -> None:
    server = FakeLeases()
    worker = Kept(server)
    await worker.keeper.look()
    server.fails = Unreachable("https://c: no answer in time")
    worker.at = 9.0
    await worker.keeper.look()
    assert (worker.changes, worker.election.doubt()) == ([0], None)
    worker.at = 11.0
    await worker.keeper.look()
    assert worker.election.doubt() == f"lease {NAME} is not held: https://c: no answer in time"
    assert worker.election.silence() is None


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Refused("its certificate is not trusted"), id="a certificate that is not trusted"),
        pytest.param(Gone("namespaces ops not found (404)"), id="a missing namespace"),
    ],
)
async def test_what_is_missing_is_said_once_and_nothing_is_held(
    caplog: pytest.LogCaptureFixture, error: UnderhostError
) -> None:
    worker = Kept(FakeLeases(fails=error))
    await worker.keeper.look()
    await worker.keeper.look()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert worker.election.doubt() == f"lease {NAME} is not held: {error}"


async def test_a_right_that_is_missing_is_told_once_and_not_said_for_each_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Kept(FakeLeases(fails=Forbidden("cannot get resource leases (403)")))
    for _ in range(3):
        await worker.keeper.look()
    assert (worker.changes, caplog.records) == ([None], [])


async def test_a_right_that_is_missing_is_told_to_who_may_not_seek_it_yet_too() -> None:
    worker = Kept(FakeLeases(fails=Forbidden("cannot get resource leases (403)")), may_seek=lambda: False)
    running = asyncio.create_task(worker.keeper.run())
    await until(lambda: worker.election.forbidden)
    running.cancel()
    assert worker.changes == [None]


async def test_who_may_seek_it_from_now_on_takes_it_if_it_was_watched_for_its_length() -> None:
    server, may = FakeLeases(), False
    await Kept(server, "b").keeper.look()
    worker = Kept(server, may_seek=lambda: may)
    running = asyncio.create_task(worker.keeper.run())
    await until(lambda: worker.election.holder == "b")
    worker.at = 15.0
    may = True
    await until(lambda: server.held[NAME].holder == "a")
    running.cancel()


async def test_who_may_not_seek_it_any_more_gives_it_back_and_takes_it_again_when_it_may() -> None:
    server, may = FakeLeases(), True
    worker = Kept(server, may_seek=lambda: may)
    running = asyncio.create_task(worker.keeper.run())
    await until(lambda: NAME in server.held)
    may = False
    await until(lambda: not server.held[NAME].holder)
    may = True
    await until(lambda: bool(server.held[NAME].holder))
    running.cancel()
    assert worker.changes == [0, None, 1]
