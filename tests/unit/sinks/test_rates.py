"""How many of something a minute or an hour may see, and when there is room for one more."""

from hypothesis import given
from hypothesis import strategies as st

from underhost.agents.sinks.rates import Rate


@given(st.lists(st.floats(0, 40), max_size=200), st.integers(1, 5))
def test_no_span_sees_more_than_there_may_be_and_none_waits_longer_than_it_must(pauses: list[float], most: int) -> None:
    now, made, rate = 0.0, list[float](), Rate(most, 60.0)
    for pause in pauses:
        now += pause
        recent = [at for at in made if at + 60.0 > now]
        assert rate.room_at(now) == (now if len(recent) < most else recent[-most] + 60.0)
        if len(recent) < most:
            made.append(now)
            rate.add(now)
    assert len(rate) <= most


def test_where_more_were_made_than_may_be_there_is_room_once_enough_are_old() -> None:
    rate = Rate(2, 60.0)  # as after a restart with a lower limit
    for at in (0.0, 10.0, 20.0):
        rate.add(at)
    assert rate.room_at(30.0) == 70.0
    assert rate.room_at(70.0) == 70.0


def test_what_turns_out_to_be_none_gives_back_its_own_place_and_no_other() -> None:
    rate = Rate(2, 60.0)
    rate.add(0.0, "a")
    rate.add(50.0, "b")
    rate.give_back("a")
    rate.give_back("never made")
    assert (len(rate), rate.last) == (1, 50.0)
    rate.give_back("b")
    assert (len(rate), rate.last) == (0, float("-inf"))


def test_what_was_made_twice_is_given_back_once() -> None:
    rate = Rate(2, 60.0)
    rate.add(0.0, "a")
    rate.add(1.0, "a")
    rate.give_back("a")
    assert (len(rate), rate.last) == (1, 0.0)
