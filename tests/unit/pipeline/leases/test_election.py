"""Whose a lease is: what each has seen and when decides, never two at one moment."""

from collections.abc import Generator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.leases import FakeLeases

from underhost.agents.pipeline.leases.election import TERMS_BEGIN, Election
from underhost.schemas.errors import Conflict
from underhost.streams.kubernetes.leases import Lease

NAME, SECONDS = "underhost-prod-labeller", 15
WALL = TERMS_BEGIN + 1000
"""The time of the first moment, seconds since 1970: the first term is 1000."""


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    at: float = 0.0

    def __call__(self) -> float:
        return self.at


def an_election(clock: Clock, identity: str = "a", wall: float = WALL) -> Election:
    return Election(NAME, identity, SECONDS, clock=clock, wall=lambda: wall)


def held_by(holder: str, term: int = 7, version: str = "1") -> Lease:
    return Lease(holder, term, SECONDS, "", version)


def taken(election: Election, clock: Clock, version: str = "2") -> None:
    """The election's write, sent now, is accepted."""
    lease = election.candidate()
    assert lease is not None
    election.wrote(lease._replace(version=version), clock())


def test_before_anything_is_known_nothing_may_be_written() -> None:
    assert an_election(Clock()).doubt() == f"lease {NAME} is not held: it has not been asked for yet"


@pytest.mark.parametrize(
    ("there", "term"),
    [
        pytest.param(None, 1000, id="there is none: the seconds since 2020"),
        pytest.param(held_by("", 1234), 1235, id="given back"),
        pytest.param(held_by("a", 1234), 1235, id="our own, from before a restart"),
        pytest.param(held_by("", 3), 1000, id="an old one, restored: later than any term before"),
    ],
)
def test_a_lease_that_nobody_counts_on_is_taken_at_once_in_a_new_term(there: Lease | None, term: int) -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(there)
    taken(election, clock)
    assert (election.doubt(), election.term) == (None, term)


def test_anothers_lease_is_taken_when_it_has_not_changed_for_its_whole_length() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(held_by("b"))
    assert election.doubt() == f"lease {NAME} is held by b"
    clock.at = 14.9
    election.observe(held_by("b"))
    assert (election.candidate(), election.pause()) == (None, pytest.approx(0.1))
    election.observe(held_by("b", version="2"))  # it lives
    clock.at = 29.8
    assert election.candidate() is None
    clock.at = 29.9
    lease = election.candidate()
    assert lease is not None
    assert (lease.holder, lease.version) == ("a", "2")


def test_whoever_promised_to_hold_it_for_longer_is_waited_for_longer() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(held_by("b")._replace(seconds=60))
    clock.at = 59.9
    assert election.candidate() is None
    clock.at = 60.0
    assert election.candidate() is not None


def test_a_holder_acts_for_two_thirds_from_when_its_renewal_was_sent() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    lease = election.candidate()
    assert lease is not None
    clock.at = 4.0  # its answer took four seconds
    election.wrote(lease._replace(version="1"), 0.0)
    clock.at = 9.9
    assert (election.doubt(), election.left()) == (None, pytest.approx(5.1))
    clock.at = 10.0
    assert election.doubt() == f"lease {NAME} is not held: it is about to be taken"


def test_a_holder_goes_on_in_its_term_where_nobody_has_written_since() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    taken(election, clock)
    clock.at = 3600.0
    assert election.doubt() is not None
    election.unanswered(3600.0, "no answer")
    election.observe(election.candidate()._replace(version="2"))  # type: ignore[union-attr]
    taken(election, clock, "3")
    assert (election.doubt(), election.term) == (None, 1000)


def test_a_holder_that_sees_another_one_is_none() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    taken(election, clock)
    election.outrun()
    assert election.must_read
    election.observe(held_by("b", 1001, "9"))
    assert (election.term, election.doubt()) == (None, f"lease {NAME} is held by b")
    assert election.silence() == f"lease {NAME} is held by b"


def test_where_the_api_server_is_away_writes_stop_and_publishing_goes_on() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    taken(election, clock)
    clock.at = 12.0
    election.unanswered(12.0, "https://c: no answer in time")
    assert election.doubt() == f"lease {NAME} is not held: https://c: no answer in time"
    assert (election.silence(), election.term) == (None, 1000)
    clock.at = 40.0  # frozen: it asks before it publishes again
    assert election.silence() == election.doubt() == f"lease {NAME} is not held: https://c: no answer in time"


def test_who_never_held_it_does_not_publish_where_the_api_server_is_away() -> None:
    election = an_election(Clock())
    election.unanswered(0.0, "https://c: no answer in time")
    assert election.silence() == f"lease {NAME} is not held: https://c: no answer in time"
    assert not election.known


def test_a_right_that_is_missing_is_named_and_nobody_acts() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    taken(election, clock)
    election.refused("cannot update resource leases (403)")
    assert election.doubt() == election.silence() == f"lease {NAME} is not held: cannot update resource leases (403)"


def test_a_right_to_write_that_is_missing_is_known_until_another_one_holds_it() -> None:
    clock = Clock()
    election = an_election(clock)
    why = "cannot create resource leases (403)"
    for _ in range(2):
        election.observe(None)
        assert election.candidate() is not None
        election.refused(why, forbidden=True)
    election.observe(None)
    assert (election.forbidden, election.doubt()) == (True, f"lease {NAME} is not held: {why}")
    assert election.pause() == SECONDS
    election.observe(held_by("b"))
    assert (election.forbidden, election.doubt()) == (False, f"lease {NAME} is held by b")


def test_a_right_that_is_granted_is_used() -> None:
    clock = Clock()
    election = an_election(clock)
    election.refused("cannot get resource leases (403)", forbidden=True)
    election.observe(None)
    taken(election, clock)
    assert (election.forbidden, election.doubt()) == (False, None)


def test_what_is_given_back_keeps_its_term_and_is_anybodys() -> None:
    clock = Clock()
    election = an_election(clock)
    election.observe(None)
    taken(election, clock)
    election.resign()
    assert election.doubt() is not None
    assert election.given_back() == Lease("", 1000, SECONDS, "", "2")


# ------------------------------------------------------------------------------------- every order in which it can go
@dataclass
class World:
    """Candidates with clocks of their own beside one API server, whose answers may come late or never."""

    server: FakeLeases = field(default_factory=FakeLeases)
    time: Clock = field(default_factory=Clock)
    late: list[Lease] = field(default_factory=list)
    terms: dict[int, str] = field(default_factory=dict)

    def put(self, lease: Lease) -> Lease | None:
        """As the server answers; None for a conflict."""
        try:
            return self.server.write(NAME, lease)
        except Conflict:
            return None


LONGEST = 10
"""Steps of a look, at most."""


class Candidate:
    """One worker: each `step` is one thing that happens to it."""

    def __init__(self, world: World, identity: str, offset: float) -> None:
        self.world, self.identity, self.offset = world, identity, offset
        self.begin()

    def begin(self) -> None:
        """Start, or start again after a crash: the same identity, no memory."""
        self.election = Election(
            NAME,
            self.identity,
            SECONDS,
            clock=lambda: self.world.time.at + self.offset,
            wall=lambda: WALL + self.world.time.at,
        )
        self.released = self.waits = False
        self._life = self._live()
        next(self._life)

    def step(self, *, lost: bool) -> None:
        """A request arrives, or an answer; or it is lost."""
        self._life.send(lost)

    def look(self) -> None:
        """A whole look, without a fault: to where it waits for the next one."""
        for _ in range(LONGEST):
            self._life.send(False)
            if self.waits:
                return

    def _live(self) -> Generator[None, bool, None]:
        election, world = self.election, self.world
        while True:
            self.waits = True
            yield
            self.waits = False
            sent = election.clock()
            if election.must_read:
                lost = yield
                found = world.server.held.get(NAME)
                lost = (yield) or lost
                if lost:
                    election.unanswered(sent, "lost")
                    continue
                election.observe(found)
            lease = election.candidate()
            if lease is None:
                continue
            sent = election.clock()
            if (yield):
                world.late.append(lease)  # given up, but it may arrive yet
                election.unanswered(sent, "lost")
                continue
            answer = world.put(lease)
            if (yield):
                election.unanswered(sent, "lost")
            elif answer is None:
                election.outrun()
            else:
                election.wrote(answer, sent)
                self.released = False

    def release(self) -> None:
        """Give it back, once nothing of its own is under way."""
        self.election.resign()
        lease = self.election.given_back()
        if lease is not None:
            self.world.put(lease)
        self.released = True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([0.1, 1.0, 3.0, 5.0, 9.9, 10.0, 14.9, 15.0, 30.0])),
        *[st.tuples(st.just("look"), st.integers(0, 2))] * 3,
        *[st.tuples(st.just("step"), st.integers(0, 2))] * 2,
        st.tuples(st.just("lost"), st.integers(0, 2)),
        st.tuples(st.just("crash"), st.integers(0, 2)),
        st.tuples(st.just("release"), st.integers(0, 2)),
        st.tuples(st.just("late"), st.integers(0, 5)),
    ),
    min_size=20,
    max_size=120,
)


@settings(max_examples=400)
@given(STEPS)
def test_never_two_hold_it_whatever_is_late_lost_or_frozen(steps: list[tuple[str, float]]) -> None:
    world = World()
    candidates = [Candidate(world, name, offset) for name, offset in (("a", 0.0), ("b", 5e3), ("c", -7e4))]
    for what, value in steps:
        if what == "pass":
            world.time.at += value
        elif what == "late":
            if world.late:
                world.put(world.late.pop(int(value) % len(world.late)))
        else:
            candidate = candidates[int(value)]
            if what == "crash":
                candidate.begin()
            elif what == "release":
                candidate.release()
            elif what == "look":
                candidate.look()
            else:
                candidate.step(lost=what == "lost")
        acting = [each for each in candidates if each.election.doubt() is None]
        assert len(acting) <= 1
        for holder in acting:
            # Whatever the others began as holders must have ended, or was ended by them.
            assert all(each.election.left() <= 0 for each in candidates if each is not holder and not each.released)
            term = holder.election.term
            assert term is not None
            assert world.terms.setdefault(term, holder.identity) == holder.identity
            assert term == max(world.terms)
