"""A worker that is killed in the middle and started again ends in the same state, with no command twice."""

from pathlib import Path

import pytest
from support.workers import killed as killed_worker
from support.workers.kill_story import EVERYTHING, finished, journal, killed, ordered

from underhost.schemas.topics import ACTIONS, PLACEMENTS

STALLS = ["before:0", "after:1", "before:4", "after:6", "after:9"]


@pytest.mark.parametrize("stalls", [*([stall] for stall in STALLS), ["after:2", "before:0", "after:3"]], ids=" ".join)
async def test_a_killed_worker_ends_in_the_same_state_without_repeating_a_command(
    tmp_path: Path, stalls: list[str]
) -> None:
    for stall in stalls:
        killed(tmp_path, stall)
    finished(tmp_path)
    assert journal(tmp_path) == EVERYTHING
    assert await ordered(tmp_path, ACTIONS) == {f"default/node//n{number}": 1 for number in range(killed_worker.NODES)}
    assert await ordered(tmp_path, PLACEMENTS) == {
        f"default/pod/shop/db-{number}": 1 for number in range(killed_worker.NODES)
    }
