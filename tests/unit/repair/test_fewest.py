"""The fewest pods that end a conflict, held against every choice there is."""

import random
from itertools import combinations

import pytest

from underhost.agents.repair.fewest import EXACT, fewest


@pytest.mark.parametrize(
    ("pods", "pairs", "expected"),
    [
        pytest.param("abc", ["ab", "bc", "ac"], "ab", id="of three that all refuse one another two go, the first"),
        pytest.param("abcd", ["ad", "bd", "cd"], "d", id="the one that all refuse"),
        pytest.param("abcde", ["ab", "bc", "cd", "de"], "bd", id="every second one of a chain, not the middle first"),
        pytest.param("bc", ["ab", "ac"], "bc", id="a may not go, so that both others do"),
        pytest.param("ab", ["xy"], "", id="neither may go"),
        pytest.param("ab", [], "", id="no conflict"),
    ],
)
def test_the_fewest_go_and_of_equal_choices_the_first(pods: str, pairs: list[str], expected: str) -> None:
    assert fewest(list(pods), [(pair[0], pair[1]) for pair in pairs]) == list(expected)


@pytest.mark.parametrize("seed", range(60))
def test_no_smaller_choice_would_do(seed: int) -> None:
    dice = random.Random(seed)
    pods = [f"p{number}" for number in range(dice.randint(2, 9))]
    pairs = [pair for pair in combinations(pods, 2) if dice.random() < 0.4]
    able = [pod for pod in pods if dice.random() < 0.85]
    solvable = [pair for pair in pairs if set(pair) & set(able)]
    covers = [
        some
        for size in range(len(able) + 1)
        for some in combinations(able, size)
        if all(set(pair) & set(some) for pair in solvable)
    ]
    chosen = fewest(able, pairs)
    assert set(chosen) <= set(able)
    assert all(set(pair) & set(chosen) for pair in solvable)
    assert len(chosen) == len(covers[0])


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param(lambda pods: combinations(pods, 2), slice(0, -1), id="all refuse all: the last stays"),
        pytest.param(lambda pods: [(pods[-1], pod) for pod in pods[:-1]], slice(-1, None), id="all refuse the last"),
    ],
)
def test_large_groups_of_the_usual_kinds_are_exact_as_well(pairs: object, expected: slice) -> None:
    pods = [f"p{number:03}" for number in range(4 * EXACT)]
    assert fewest(pods, pairs(pods)) == pods[expected]  # type: ignore[operator]
