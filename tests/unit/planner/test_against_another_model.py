"""Plans of small random sites against another exact model: equally cheap, safe at every moment, reasons minimal.

Here a share of the seeds; `make trust ARGS=repair` tries them all.
"""

import pytest
from support.answers.minimal import wrong_reasons
from support.answers.repair import cheapest, price, unsafe, waves
from support.sites.movable import Puzzle, a_puzzle

from underhost.agents.planner.plan import repair
from underhost.agents.site.snapshot import Options

SEEDS = range(0, 500, 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_is_cheaper_and_no_moment_of_it_breaks_anything(seed: int) -> None:
    puzzle: Puzzle = a_puzzle(seed)
    plan = repair(puzzle.snapshot(), Options())
    assert price(plan) == cheapest(puzzle, plan)
    assert unsafe(puzzle, waves(plan)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_fact_of_a_reason_could_be_left_out(seed: int) -> None:
    assert wrong_reasons(a_puzzle(seed)) == []
