"""What is told of plans that were only late."""

import os
from collections.abc import Sequence

import pytest
from trust.sieve.play import Verdict
from trust.sieve.plays import played

LATE = Verdict(7, ["after vmotion: labels differ"], late=True)
WRONG = Verdict(7, ["db-0 was evicted 2 times"])
WELL = Verdict(7)


@pytest.mark.parametrize(
    ("verdicts", "processes", "told"),
    [
        pytest.param([WELL], 9, WELL, id="it was survived"),
        pytest.param([WRONG], 9, WRONG, id="a write that nothing excuses is no matter of time"),
        pytest.param([LATE], 1, LATE, id="late on a machine with time to spare"),
        pytest.param([LATE, WELL], 9, Verdict(7, repeated=LATE.wrong), id="late on a busy machine, and not again"),
        pytest.param([LATE, LATE], 9, Verdict(7, LATE.wrong, late=True, repeated=LATE.wrong), id="late twice"),
    ],
)
async def test_a_plan_that_was_late_on_a_busy_machine_is_played_once_more(
    verdicts: Sequence[Verdict], processes: int, told: Verdict
) -> None:
    left = iter(verdicts)

    async def play() -> Verdict:
        return next(left)

    assert await played(play, lambda: processes * (os.cpu_count() or 1)) == told
    assert list(left) == []
