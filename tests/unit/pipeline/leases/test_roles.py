"""What is begun as the holder of a role's lease ends with it; a role without a lease never doubts."""

import asyncio
import logging
from collections.abc import Callable, Collection

import pytest
from support.fakes.leases import FakeLeases
from support.workers.fleet import until

from underhost.agents.pipeline.leases.election import Election
from underhost.agents.pipeline.leases.roles import LeaseOrigin, RoleLease, RoleLeases
from underhost.agents.pipeline.roles import KUBERNETES
from underhost.schemas.errors import Forbidden, Unreachable
from underhost.streams.kubernetes.leases import Lease

NAME = "underhost-prod-labeller"


def held(at: list[float]) -> tuple[Election, RoleLease]:
    """A lease of fifteen seconds that was taken at the first moment; `at` holds the time."""
    election = Election(NAME, "a", 15, clock=lambda: at[0], wall=lambda: 0.0)
    election.observe(None)
    election.wrote(Lease("a", 7, 15, "", "1"), at[0])
    return election, RoleLease(election)


async def test_a_write_that_hangs_is_ended_with_the_lease() -> None:
    at = [0.0]
    _, lease = held(at)
    at[0] = 14.99
    with pytest.raises(Unreachable, match=f"no answer before the end of lease {NAME}"), lease.within():
        await asyncio.Event().wait()


async def test_a_write_goes_on_as_long_as_the_lease_is_renewed() -> None:
    at = [14.99]
    election, lease = held([0.0])
    election.clock = lambda: at[0]
    written = asyncio.Event()
    with lease.within():
        election.wrote(Lease("a", 7, 15, "", "2"), 14.99)
        lease.renewed()
        asyncio.get_running_loop().call_later(0.05, written.set)
        await written.wait()
    assert written.is_set()


async def test_what_the_write_itself_fails_of_is_not_the_leases_end() -> None:
    _, lease = held([0.0])
    with pytest.raises(TimeoutError, match="of its own"), lease.within():
        raise TimeoutError("of its own")


async def test_a_role_without_a_lease_acts_and_its_records_have_no_term() -> None:
    lease = RoleLease()
    assert (lease.is_ours, lease.doubt(), lease.silence(None), lease.term) == (True, None, None, None)


async def test_what_was_begun_in_another_term_is_not_published() -> None:
    at = [0.0]
    election, lease = held(at)
    assert lease.silence(7) is None
    election.wrote(Lease("a", 9, 15, "", "3"), 0.0)
    assert lease.silence(7) == f"lease {NAME} was lost since"


ANOTHERS = Lease("b", 7, 15, "", "1")


async def test_what_came_before_a_lease_is_taken_waits_and_is_ours() -> None:
    at = [3.0]
    election = Election(NAME, "a", 15, clock=lambda: at[0], wall=lambda: 0.0)
    election.observe(None)
    waiting = asyncio.ensure_future(RoleLease(election).falls_to_us(1.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    election.wrote(Lease("a", 7, 15, "", "1"), at[0])
    assert await waiting


@pytest.mark.parametrize(
    ("came", "renewed", "ours"),
    [
        pytest.param(3.0, 4.0, False, id="who holds it was alive after it came"),
        pytest.param(3.0, None, True, id="who holds it is dead, and this worker takes over"),
    ],
)
async def test_what_comes_while_another_holds_the_lease(came: float, renewed: float | None, ours: bool) -> None:
    at = [2.0]
    election = Election(NAME, "a", 15, clock=lambda: at[0], wall=lambda: 0.0)
    election.observe(ANOTHERS)
    waiting = asyncio.ensure_future(RoleLease(election).falls_to_us(came))
    at[0] = came
    await asyncio.sleep(0)
    assert not waiting.done()
    if renewed is not None:
        at[0] = renewed
        election.observe(ANOTHERS._replace(version="2"))
    else:
        at[0] = 30.0
        election.wrote(Lease("a", 8, 15, "", "2"), at[0])
    assert await waiting is ours


async def test_what_this_account_may_never_do_is_left_to_others() -> None:
    election = Election(NAME, "a", 15, clock=lambda: 0.0, wall=lambda: 0.0)
    election.refused("no right", forbidden=True)
    assert not await RoleLease(election).falls_to_us(0.0)


async def test_without_a_lease_everything_is_ours() -> None:
    assert await RoleLease().falls_to_us(0.0)


def of_role(
    server: FakeLeases,
    *roles: str,
    may_seek: bool,
    has_what_it_needs: Callable[[str], bool] = lambda role: True,
    publishing: Collection[str] = (),
) -> RoleLeases:
    """The leases of a worker `a` that has these roles, by which nobody acts."""

    async def changed(role: str) -> None:
        """Nobody is told."""

    origin = LeaseOrigin(server, "a")
    return RoleLeases(
        origin,
        "prod",
        15,
        roles,
        publishing=publishing,
        is_candidate=lambda: may_seek,
        may_seek=lambda role: may_seek and has_what_it_needs(role),
        changed=changed,
        ended=lambda task: None,
    )


async def test_who_does_not_own_the_site_says_who_holds_the_lease_and_does_not_seek_it() -> None:
    server = FakeLeases()
    server.give(NAME, "b")
    leases = of_role(server, "labeller", may_seek=False)
    assert leases.unknown() == {}
    leases.start()
    await until(lambda: bool(server.asked))
    assert leases.standby() == {f"lease {NAME}": f"lease {NAME} is held by b"}
    await leases.close()
    assert [lease.holder for _, lease in server.written] == ["b"]


async def test_leases_that_are_sought_already_are_sought_once() -> None:
    server = FakeLeases()
    leases = of_role(server, "labeller", may_seek=True)
    leases.start()
    leases.start()
    assert [task.get_name() for task in asyncio.all_tasks() if "lease" in task.get_name()] == ["lease of labeller"]
    await leases.close()


async def test_a_standby_says_in_one_line_which_leases_others_hold_and_who(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = FakeLeases()
    for role, holder in (("drs", "b"), ("labeller", "c")):
        server.give(f"underhost-prod-{role}", holder)
    leases = of_role(server, "kubernetes", "drs", "labeller", "mover", may_seek=True)
    for role, keeper in [*leases._keepers.items()] * 2:
        await keeper.look(only_look=role == "mover")  # whose lease is nobody's
    of_all = [record.message for record in caplog.records if record.name.endswith("leases.roles")]
    assert of_all == [f"standing by: lease underhost-prod-drs is held by b; lease {NAME} is held by c"]


async def test_a_missing_right_is_said_in_one_line_for_all_leases_and_again_for_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    why = "cannot get leases (403); grant get, create and update on leases in namespace a"
    server = FakeLeases(fails=Forbidden(why))
    leases = of_role(server, "kubernetes", "vsphere", "labeller", may_seek=True, publishing={"kubernetes", "vsphere"})
    for keeper in [*leases._keepers.values()] * 2:
        await keeper.look()
    assert [record.message for record in caplog.records] == [
        "a right to leases is missing; standing by: labeller; publishing all the same: kubernetes, vsphere; "
        f"lease underhost-prod-kubernetes is not held: {why}"
    ]
    assert leases.standby() == {f"lease {NAME}": f"lease {NAME} is not held: {why}"}
    assert leases.without() == {
        f"lease underhost-prod-{role}": f"it publishes without: lease underhost-prod-{role} is not held: {why}"
        for role in ("kubernetes", "vsphere")
    }
    assert (leases.of("kubernetes").is_ours, leases.of("labeller").is_ours) == (True, False)
    assert leases.of("kubernetes").silence(None) is None
    assert leases.of("labeller").doubt() is not None
    server.fails = None
    for keeper in leases._keepers.values():
        await keeper.look()
    assert (leases.standby(), leases.without()) == ({}, {})


async def test_a_watcher_without_a_group_publishes_nothing_where_its_lease_is_forbidden() -> None:
    leases = of_role(FakeLeases(fails=Forbidden("cannot get leases (403)")), "kubernetes", may_seek=True)
    await leases._keepers["kubernetes"].look()
    lease = leases.of("kubernetes")
    assert (lease.is_ours, lease.stands_by) == (False, True)
    assert lease.silence(None) == "lease underhost-prod-kubernetes is not held: cannot get leases (403)"


async def test_who_loses_the_source_labels_no_more_from_that_moment_on() -> None:
    """Its labeller's keeper may be waiting for the API server, and gives the lease back only after that."""
    server, watched = FakeLeases(), f"underhost-prod-{KUBERNETES}"
    leases = of_role(
        server,
        KUBERNETES,
        "labeller",
        may_seek=True,
        has_what_it_needs=lambda role: role == KUBERNETES or leases.of(KUBERNETES).is_ours,
    )

    async def look() -> None:
        for _ in range(2):  # who was outrun reads it first
            await leases._keepers[KUBERNETES].look()

    await look()
    await leases._keepers["labeller"].look()
    assert leases.of("labeller").doubt() is None
    server.give(watched, "b")
    await look()
    assert leases.of("labeller").doubt() == f"lease {NAME} is about to be given back"
    assert leases.held() == {KUBERNETES: False, "labeller": False}
    server.give(watched, "")
    await look()
    assert leases.of("labeller").doubt() is None


def test_a_lease_that_was_not_asked_for_yet_is_waited_for() -> None:
    leases = of_role(FakeLeases(), "drs", may_seek=True)
    why = "lease underhost-prod-drs is not held: it has not been asked for yet"
    assert (leases.unknown(), leases.standby()) == ({"lease underhost-prod-drs": why}, {})
    assert leases.held() == {"drs": False}


async def test_a_lease_that_is_not_to_be_sought_is_known_once_it_was_looked_at() -> None:
    leases = of_role(FakeLeases(), "drs", may_seek=True, has_what_it_needs=lambda role: False)
    await leases._keepers["drs"].look(only_look=True)
    assert leases.unknown() == {}


async def test_each_renewal_gives_the_writes_that_are_under_way_more_time() -> None:
    at = [0.0]
    leases = of_role(FakeLeases(), "labeller", may_seek=True)
    leases._elections["labeller"].clock = lambda: at[0]
    await leases._keepers["labeller"].look()
    at[0] = 14.99
    written = asyncio.Event()
    with leases.of("labeller").within():
        await leases._keepers["labeller"].look()
        asyncio.get_running_loop().call_later(0.05, written.set)
        await written.wait()
    assert written.is_set()
