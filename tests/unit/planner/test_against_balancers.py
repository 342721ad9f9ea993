"""A repair never takes more vMotions than a balancer on the same site, where that leaves nothing else broken."""

import pytest
from support.answers.balancing import balanced, mended, of_puzzle
from support.answers.repair import broken, waves
from support.sites.movable import a_puzzle

from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options

ROUNDS, EACH = 6, 20


@pytest.mark.parametrize("first", range(0, ROUNDS * EACH, EACH))
def test_no_balancer_needs_fewer_moves(first: int) -> None:
    for seed in range(first, first + EACH):
        puzzle = a_puzzle(seed)
        ours = [
            move for wave in waves(repair(puzzle.snapshot(), Options(), RepairTerms(evictions=None))) for move in wave
        ]
        left = len(broken(puzzle, {**puzzle.at, **dict(ours)}))
        for way in (balanced, mended):
            theirs = way(of_puzzle(puzzle))
            stays = len(broken(puzzle, {**puzzle.at, **dict(theirs)}))
            assert (left, len(ours)) <= (stays, len(theirs)), (seed, way.__name__)
