"""One namespace after another, each in its own order."""

import pytest

from underhost.agents.sinks.turns import in_turn


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param(["a/2", "a/1"], ["a/2", "a/1"], id="one alone keeps his order"),
        pytest.param(
            ["a/1", "a/2", "a/3", "b/1"], ["a/1", "b/1", "a/2", "a/3"], id="who comes last has the second turn"
        ),
        pytest.param(["a/1", "b/1", "b/2", "a/2", "c/1"], ["a/1", "b/1", "c/1", "b/2", "a/2"], id="round by round"),
    ],
)
def test_everybody_has_a_turn_before_anybody_has_two(items: list[str], expected: list[str]) -> None:
    assert in_turn(items, lambda one: one.partition("/")[0]) == expected
