"""How many writes a minute may see, and what becomes of the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underhost.agents.pipeline.gates.limits import WriteLimits
from underhost.agents.sinks.rates import MINUTE
from underhost.agents.sinks.registry import limits_of
from underhost.schemas.records import Action, Outcome
from underhost.streams.settings.model import Settings


def answer(kind: str, result: str) -> Outcome:
    return Outcome("id", kind, "target", result, "")


def held_back(limits: WriteLimits, kind: str) -> str:
    """Why a write of this kind may not be made, "" where it may."""
    refused = limits.refuses(Action("id", kind, "target", {}, "", {}))
    assert refused is None or refused.result == "failed"
    return refused.reason if refused is not None else ""


@given(st.lists(st.floats(0, 40), max_size=200), st.integers(1, 5))
def test_no_window_of_a_minute_sees_more_writes_than_the_limit(pauses: list[float], limit: int) -> None:
    now, made = 0.0, []
    limits = WriteLimits({"label": limit}, lambda: now)
    for pause in pauses:
        now += pause
        if not held_back(limits, "label"):
            made.append(now)
    assert all(sum(begin <= at < begin + MINUTE for at in made) <= limit for begin in made)


def test_what_is_held_back_says_why_and_goes_on_a_minute_later() -> None:
    now = [0.0]
    limits = WriteLimits({"label": 2}, lambda: now[0])
    assert [held_back(limits, "label") for _ in range(3)] == [
        "",
        "",
        "held back: 2 label writes in the last minute (limits)",
    ]
    now[0] = 59.9
    assert held_back(limits, "label")
    now[0] = 60.0
    assert held_back(limits, "label") == ""


def test_what_was_no_write_does_not_count_and_kinds_do_not_count_together() -> None:
    limits = WriteLimits({"label": 1, "bind": 1}, lambda: 0.0)
    for _ in range(5):
        assert held_back(limits, "label") == ""
        limits.answered(answer("label", "noop"))
    assert (held_back(limits, "label"), held_back(limits, "bind")) == ("", "")
    assert held_back(limits, "label") != ""
    assert [held_back(limits, "event") for _ in range(5)] == [""] * 5
    limits.answered(answer("event", "noop"))


def test_what_was_no_write_gives_back_its_own_place_and_no_later_one() -> None:
    now = [0.0]
    limits = WriteLimits({"label": 2}, lambda: now[0])
    for now[0], id_ in ((0.0, "a"), (50.0, "b")):
        assert limits.refuses(Action(id_, "label", "target", {}, "", {})) is None
    limits.answered(Outcome("a", "label", "target", "noop", ""))
    now[0] = 61.0
    assert [held_back(limits, "label") for _ in range(2)] == [
        "",
        "held back: 2 label writes in the last minute (limits)",
    ]


@pytest.mark.parametrize("result", ["applied", "failed"])
def test_what_was_a_write_or_may_have_been_one_counts(result: str) -> None:
    limits = WriteLimits({"label": 1}, lambda: 0.0)
    assert held_back(limits, "label") == ""
    limits.answered(answer("label", result))
    assert held_back(limits, "label") == "held back: 1 label writes in the last minute (limits)"


@pytest.mark.parametrize(
    ("sinks", "expected"),
    [
        pytest.param({}, {}, id="a dry run writes nothing that could be too much"),
        pytest.param({"labels": True}, {"label": 7}, id="one sink"),
        pytest.param(
            dict.fromkeys(("labels", "podLabels", "bindings", "drsRules", "evictions", "events", "reports"), True),
            {"label": 7, "pod-label": 3000, "bind": 30_000, "event": 3000, "drs-rule": 20, "evict": 20, "report": 6000},
            id="all of them",
        ),
    ],
)
def test_only_sinks_that_write_have_a_limit(sinks: dict[str, bool], expected: dict[str, int]) -> None:
    assert limits_of(Settings.model_validate({"sinks": sinks, "limits": {"labels": 7}})) == expected
