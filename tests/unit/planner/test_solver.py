"""The exact core, and how its search is ended."""

import random

import pytest

from underhost.agents.planner.solver import Program
from underhost.agents.schedule.progress import listen


class Enough(Exception):
    """Nobody waits for the answer any more."""


def a_hard_program() -> tuple[Program, dict[int, int]]:
    """A knapsack of many dimensions, and what each choice is worth (less is better): some seconds of search."""
    random_ = random.Random(1)
    program = Program()
    choices = [program.choice() for _ in range(60)]
    for _ in range(30):
        weights = {choice: random_.randint(20, 90) for choice in choices}
        program.at_most(weights, sum(weights.values()) // 2)
    return program, {choice: -random_.randint(50, 100) for choice in choices}


def test_the_best_by_one_objective_after_another() -> None:
    program = Program()
    one, other, third = (program.choice() for _ in range(3))
    program.at_most({one: -1, other: -1, third: -1}, -2)  # at least two of them
    assert program.best({one: 1, other: 1, third: 1}, {one: 3, other: 1, third: 2}) == [False, True, True]
    assert program.proven


def test_whoever_listens_ends_a_search_that_is_under_way() -> None:
    program, worth = a_hard_program()
    heard = list[str]()

    def listener(what: str, done: int, of: int) -> None:
        heard.append(what)
        if len(heard) == 20:  # the first is before the search, the others are in it
            raise Enough

    listen(listener)
    try:
        with pytest.raises(Enough):
            program.best(worth)
    finally:
        listen(None)
    assert heard == [""] * 20
